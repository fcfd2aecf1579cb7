"""Loops whose machine code is known, DMA, and synchronisation: cycles beside measured ones."""

from __future__ import annotations

import functools

import numpy as np

from benchmarks.fidelity_rows import PROGRAMS, Group, Row, table
from upmem_sim import Dpu, DpuParams, Program, TransferModel, compile_c

__all__ = [
    "barriers",
    "dma",
    "launches",
    "loops",
    "multiplies",
    "per_round",
    "ranking",
    "va_levels",
]

ROUNDS = 96
HEAP = "DPU_MRAM_HEAP_POINTER_NAME"
TILE_DPUS = 32  # of the VA study by boundary level
STUDY = 100_000  # its elements are multiples of this


@functools.cache
def _loop(name: str, tasklets: int) -> Program:
    sources = [PROGRAMS / f"{name}.s", PROGRAMS / "parameters.s"]
    return compile_c(sources, nr_tasklets=tasklets, stack_bytes=128)


def _fill(dpu: Dpu, name: str, tasklets: int, count: int) -> None:
    """Operands: pixels of 10 bits against a factor of 9 bits; any row times a vector of ones."""
    for tasklet in range(tasklets):
        at = tasklet << 20
        if name == "histogram":
            dpu.mram[at : at + count].view("u4")[:] = 1000
        elif name == "gemv":
            dpu.mram[at : at + count].view("u4")[:] = 12345
            dpu.mram[(16 << 20) + at : (16 << 20) + at + count].view("u4")[:] = 1


def per_round(
    name: str, tasklets: int, size: int, params: DpuParams | None = None, rounds: int = ROUNDS
) -> tuple[float, float]:
    """(instructions, cycles) of a round of silicon/<name>.s in the steady state."""
    found = []
    for turns in (rounds, 2 * rounds):
        dpu = Dpu(_loop(name, tasklets), params)
        dpu.write("rounds", np.uint32(turns))
        dpu.write("bytes", np.uint32(size))
        _fill(dpu, name, tasklets, turns * size)
        result = dpu.run()
        found.append((result.instructions, result.cycles))
    (less, early), (more, late) = found
    return (more - less) / rounds, (late - early) / rounds


def loops(params: DpuParams | None = None) -> Group:
    """The rounds of VA, the sum of two arrays, histogram and GEMV."""
    group = Group("loops of known machine code", mean_limit=0.02, worst_limit=0.07)
    for line in table("loops"):
        tasklets, size = int(line["tasklets"]), int(line["bytes"])
        instructions, cycles = per_round(line["loop"], tasklets, size, params)
        if instructions != int(line["instructions"]):
            raise ArithmeticError(f"{line['loop']}: {instructions} instructions a round")
        name = f"{line['loop']}, T = {tasklets}, {size} B"
        group.rows.append(
            Row(name, float(line["cycles"]), cycles, "cycles/round", f"{instructions:,.0f} instr")
        )
    return group


def dma(params: DpuParams | None = None) -> Group:
    """Reads one after the other, and single reads."""
    group = Group("DMA reads", mean_limit=0.02, worst_limit=0.07)
    group.note = "single reads were measured within a loop and scatter by 10 cycles themselves"
    for line in table("dma"):
        size = int(line["bytes"])
        if line["kind"] == "saturated":
            cycles = per_round("reads", 16, size, params)[1] / (16 * 8)
        else:
            instructions, cycles = per_round("sum", 1, size, params, 4 * ROUNDS)
            cycles = (cycles - 11 * (instructions - 2)) / 2
        group.rows.append(Row(f"{line['kind']}, {size} B", float(line["cycles"]), cycles, "cycles"))
    return group


def multiplies() -> Group:
    """One tasklet alone, by bits of the smaller factor."""
    group = Group("32-bit multiply", mean_limit=0.02, worst_limit=0.07)
    for line in table("multiply"):
        bits = int(line["bits"])
        instructions, cycles = per_round("multiply", 1, (1 << bits) - 1)
        name = f"smaller factor of {bits} bits"
        group.rows.append(
            Row(name, float(line["cycles"]), cycles - 33, "cycles", f"{instructions - 3:.0f} instr")
        )
    return group


def ranking(quick: bool = False) -> Group:
    """For each loop: what the choice of (tasklets, bytes) that ours finds fastest costs on silicon
    an element, beside the fastest choice measured."""
    group = Group("fastest (tasklets, bytes) of a loop", worst_limit=0.01)
    group.note = "published: the fastest measured choice; simulated: what ours chooses, as measured"
    for loop in ("va", "sum", "histogram", "gemv"):
        measured, ours = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
        for line in table("loops"):
            if line["loop"] != loop:
                continue
            choice = int(line["tasklets"]), int(line["bytes"])
            elements = choice[0] * choice[1] / 4
            measured[choice] = float(line["cycles"]) / elements
            ours[choice] = per_round(loop, *choice, rounds=24 if quick else ROUNDS)[1] / elements
        chosen = min(ours, key=lambda c: ours[c])
        work = f"chosen T = {chosen[0]}, {chosen[1]} B of {len(ours)}"
        group.rows.append(
            Row(loop, min(measured.values()), measured[chosen], "cycles/element", work)
        )
    return group


def _study(level: int, count: int) -> tuple[int, int]:
    """(instructions, cycles) of the VA study's kernel on `count` elements a DPU."""
    program = compile_c(PROGRAMS / "va_levels.c", nr_tasklets=16, defines={"LEVEL": level})
    dpu, span = Dpu(program), (count * 4 + 4096) & ~7
    a, b = (np.random.default_rng(level).integers(0, 1000, (2, count))).astype("i4")
    dpu.write(HEAP, a)
    dpu.write(HEAP, b, span)
    dpu.write("count", np.uint32(count))
    result = dpu.run()
    if not np.array_equal(dpu.read(HEAP, "i4", count, 2 * span), a + b):
        raise ArithmeticError(f"va_levels at level {level}: wrong results")
    return result.instructions, result.cycles


def va_levels() -> tuple[Group, Group]:
    """ATiM's VA by boundary level: cycles an element (slope over the sizes), and milliseconds."""
    slopes = Group("ATiM VA, slope, by level", mean_limit=None, worst_limit=0.07)
    slopes.note = "o0: four DMAs of 8 B an element; o4: three of 256 B each 64 elements, DMA-bound"
    times = Group("ATiM VA, milliseconds, launch included")
    times.note = "the tail of the smallest o0 run and o1's code are not known"
    launch = TransferModel.preset().launch(TILE_DPUS) * 1e3
    clock = DpuParams().clock_mhz * 1e3
    for line in table("atim_va"):
        level = int(line.pop("level")[1:])
        sizes = np.array([int(size) for size in line])
        published = np.array([float(value) for value in line.values()])
        runs = [_study(level, int(size) * STUDY // TILE_DPUS) for size in sizes]
        elements = sizes * STUDY // TILE_DPUS
        cycles = [cycles for _, cycles in runs]
        slope = [float(np.polyfit(elements, y, 1)[0]) for y in (published * clock, cycles)]
        work = f"{runs[-1][0] / elements[-1]:.2f} instr/element"
        if level != 1:
            slopes.rows.append(Row(f"o{level}", slope[0], slope[1], "cycles/element", work))
        for size, ms, cycle in zip(sizes, published, cycles, strict=True):
            name = f"o{level}, {size} x {STUDY:,}"
            times.rows.append(Row(name, float(ms), launch + cycle / clock, "ms", work))
    return slopes, times


def barriers() -> Group:
    """Cycles of a barrier at which all tasklets arrive at once."""
    group = Group("barrier_wait, all tasklets at once")
    for line in table("barrier"):
        tasklets, found = int(line["tasklets"]), dict[str, float]()
        for kind, defines in (("barrier", {}), ("empty", {"EMPTY": 1})):
            program = compile_c(
                PROGRAMS / "barrier.c", nr_tasklets=tasklets, stack_bytes=128, defines=defines
            )
            counts = []
            for turns in (100, 300):
                dpu = Dpu(program)
                dpu.write("turns", np.uint32(turns))
                counts.append(dpu.run().cycles)
            found[kind] = (counts[1] - counts[0]) / 200
        cycles = found["barrier"] - found["empty"]
        group.rows.append(Row(f"T = {tasklets}", float(line["cycles"]), cycles, "cycles"))
    return group


def launches() -> Group:
    """What a synchronous launch adds, beside what published kernel times leave for it."""
    group = Group("launch")
    group.note = (
        "two parameters for all systems; +-0.05 ms on one rank, 0.2 ms on 4 DPUs unexplained"
    )
    model = TransferModel.preset()
    for line in table("launch"):
        dpus = int(line["dpus"])
        name = f"{line['where']}, {dpus} DPUs"
        low, high = float(line["low"]), float(line["high"])
        group.rows.append(Row(name, low, model.launch(dpus) * 1e3, "ms", high=high))
    return group
