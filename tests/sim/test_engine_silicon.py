"""Loops of known machine code against cycles measured on a real 350 MHz DPU.

Each kernel works in rounds: every tasklet reads its chunks of B bytes by DMA, runs an inner loop of
known length over them, and writes back. Published per kernel: instructions of a round over all
tasklets, cycles of a round. `fixed` instructions surround the inner loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from harness import booted, program

from upmem_sim.dpu import Dpu
from upmem_sim.params import DPU_PRESETS, DpuParams

ROUNDS = 24


@dataclass(frozen=True)
class Kernel:
    """Reads and writes of a round, instructions of the inner loop and around it."""

    reads: int
    writes: int
    inner: int
    fixed: int


KERNELS = {
    "va": Kernel(reads=2, writes=1, inner=9, fixed=16),
    "sum": Kernel(reads=2, writes=0, inner=7, fixed=13),
    "histogram": Kernel(reads=1, writes=0, inner=26, fixed=10),
    "gemv": Kernel(reads=2, writes=0, inner=14, fixed=18),
}

# kernel, tasklets, bytes, instructions, cycles on silicon
SILICON = [
    ("va", 1, 32, 88, 1157),
    ("va", 1, 512, 1168, 13793),
    ("va", 4, 64, 640, 2053),
    ("va", 4, 512, 4672, 13802),
    ("va", 16, 32, 1408, 2602),
    ("va", 16, 64, 2560, 3373),
    ("va", 16, 256, 9472, 9560),
    ("va", 16, 512, 18688, 18803),
    ("sum", 1, 32, 69, 912),
    ("sum", 1, 512, 909, 10658),
    ("sum", 4, 64, 500, 1555),
    ("sum", 4, 512, 3636, 10711),
    ("sum", 16, 32, 1104, 1781),
    ("sum", 16, 64, 2000, 2340),
    ("sum", 16, 512, 14544, 14628),
    ("histogram", 1, 512, 3338, 37093),
    ("histogram", 16, 32, 3488, 3513),
    ("histogram", 16, 512, 53408, 53542),
    ("gemv", 16, 32, 2080, 2139),
    ("gemv", 16, 512, 28960, 29075),
]


def text(kernel: Kernel, rounds: int, size: int) -> str:
    """The kernel in assembly; instructions beside loop control and DMA are fillers."""
    transfers = kernel.reads + kernel.writes
    fillers = kernel.fixed - 2 * transfers - 2
    lines = ["lsl r0, id8, 8", f"move r20, {rounds}", "round:"]
    for k in range(kernel.reads):
        lines += [f"add r4, r2, {4096 * k}", f"ldma r0, r4, {size // 8 - 1}"]
    lines += [f"move r1, {size // 4}", *["nop"] * (fillers // 2), "inner:"]
    lines += ["add r5, r5, r6"] * (kernel.inner - 1) + ["add r1, r1, -1, nz, inner"]
    for _ in range(kernel.writes):
        lines += ["add r4, r2, 8192", f"sdma r0, r4, {size // 8 - 1}"]
    lines += ["nop"] * (fillers - fillers // 2) + ["add r20, r20, -1, nz, round"]
    return "\n".join([*lines, "end: stop true, end"])


def round_of(name: str, tasklets: int, size: int, params: DpuParams) -> tuple[float, float]:
    """(instructions, cycles) of one round in the steady state."""
    runs = []
    for rounds in (ROUNDS, 2 * ROUNDS):
        loaded = program(booted(text(KERNELS[name], rounds, size), tasklets), tasklets=tasklets)
        result = Dpu(loaded, params).run()
        runs.append((result.instructions, result.cycles))
    return (runs[1][0] - runs[0][0]) / ROUNDS, (runs[1][1] - runs[0][1]) / ROUNDS


def error(row: tuple[str, int, int, int, int], params: DpuParams) -> float:
    name, tasklets, size, instructions, silicon = row
    executed, cycles = round_of(name, tasklets, size, params)
    assert executed == instructions
    return cycles / silicon - 1


@pytest.mark.parametrize("row", SILICON, ids=lambda r: f"{r[0]}-T{r[1]}-B{r[2]}")
def test_default_timing_is_close_to_silicon(row: tuple[str, int, int, int, int]) -> None:
    tight = row[1] == 1 or row[3] > 0.99 * row[4]  # one tasklet, or bound by issue slots
    assert abs(error(row, DpuParams())) < (0.02 if tight else 0.06)


@pytest.mark.parametrize("preset", ["v1A", "v1A without refresh"])
def test_mean_error_is_below_2_percent(preset: str) -> None:
    errors = [abs(error(row, DPU_PRESETS[preset])) for row in SILICON]
    assert sum(errors) / len(errors) < 0.02


def test_single_tasklet_round_is_instructions_plus_transfers() -> None:
    """VA, 32 bytes: 88 instructions, two reads of 87.44 and one write of 57.44 cycles."""
    _, cycles = round_of("va", 1, 32, DPU_PRESETS["v1A without refresh"])
    assert cycles == 85 * 11 + 2 * 88 + 58


@pytest.mark.parametrize(
    ("switch", "row", "low"),
    [
        ({"dma_steal_bytes": 8}, ("va", 16, 512, 18688, 18803), 0.08),
        ({"taken_jump_cycles": 3}, ("sum", 16, 512, 14544, 14628), 0.25),
    ],
)
def test_rejected_rules_are_contradicted(
    switch: dict[str, int], row: tuple[str, int, int, int, int], low: float
) -> None:
    assert error(row, DpuParams(**switch)) > low
