"""The three loops and the Python interpreter agree, to the bit and to the cycle.

Programs differ in how much the tasklets share: tasklets that run ahead must notice every access to
a word that another one uses at the same time.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from harness import rows_of
from programs import every_form, racy_program, random_program
from upmem_sim._core import Code, Exit, Machine

from upmem_sim.interpreter import Interpreter
from upmem_sim.isa import Insn
from upmem_sim.params import DPU_PRESETS, DpuParams

LIMIT = 6000
STATE = ("registers", "pc", "zero", "carry", "running")
UNITS = {f"{name}_slots": 1 for name in ("multiply32", "float_add", "float_mul", "float_div")}
PARAMS = DpuParams(silicon_dma_alignment=True, mram_bytes=1 << 17, **UNITS)  # less to clear


def image(rng: Random, size: int) -> bytes:
    """Random memory, words of few bits as likely as full ones."""
    words = [rng.getrandbits(rng.choice([1, 4, 8, 16, 31, 32, 32])) for _ in range(size // 4)]
    return np.array(words, np.uint32).tobytes()


def machine(code: Code, wram: bytes, params: DpuParams = PARAMS) -> Machine:
    made = Machine(code, params.resolved())
    made.wram[: len(wram)] = np.frombuffer(wram, np.uint8)
    made.mram[: len(wram)] = np.frombuffer(wram, np.uint8)[::-1]
    made.start()
    return made


def snapshot(m: Machine) -> dict[str, object]:
    tasklets = [m.tasklet(t) for t in range(24)]
    return {
        "cycle": m.cycle,
        "instructions": m.instructions,
        "tasklets": [{key: t[key] for key in STATE} for t in tasklets],
        "counters": [m.counters(t) for t in range(24)],
        "dma": m.dma,
        "wram": m.wram.tobytes(),
        "mram": m.mram[:65536].tobytes(),
        "atomic": m.atomic.tobytes(),
    }


def case(seed: int, tasklets: int) -> tuple[list[Insn], Code, bytes]:
    rng = Random(seed)
    insns = random_program(rng, tasklets, rng.choice([0, 0, 0.02, 0.1, 0.5]))
    return insns, Code(rows_of(insns).tobytes()), image(rng, 16384)


def compare_loops(seed: int, code: Code, wram: bytes, params: DpuParams = PARAMS) -> None:
    plain = machine(code, wram, params)
    status = plain.advance(LIMIT, plain=True)
    wanted = snapshot(plain)
    for interleaved in (False, True):
        made = machine(code, wram, params)
        assert made.advance(LIMIT, interleaved=interleaved) == status, f"seed {seed}"
        assert snapshot(made) == wanted, f"seed {seed}, interleaved {interleaved}"


@pytest.mark.parametrize("tasklets", [1, 2, 3, 8, 11, 16, 24])
def test_all_loops_agree(tasklets: int) -> None:
    for seed in range(50):
        compare_loops(seed, *case(seed, tasklets)[1:])


@pytest.mark.parametrize("preset", sorted(DPU_PRESETS))
def test_loops_agree_for_every_chip(preset: str) -> None:
    params = replace(
        DPU_PRESETS[preset], silicon_dma_alignment=True, issue_distance_cycles=9, **UNITS
    )
    for seed in range(20):
        compare_loops(seed, *case(1000 + seed, 12)[1:], params)


@pytest.mark.parametrize("tasklets", [2, 3, 5, 12])
def test_loops_agree_on_races(tasklets: int) -> None:
    for seed in range(100):
        code = Code(rows_of(racy_program(Random(seed), tasklets)).tobytes())
        compare_loops(seed, code, bytes(range(1, 129)))


def test_a_run_in_pieces_is_the_same_run() -> None:
    for seed in range(30):
        _, code, wram = case(seed, 16)
        whole, pieces = machine(code, wram), machine(code, wram)
        whole.advance(LIMIT)
        rng = Random(seed)
        status, until = Exit.BUDGET, 0
        while status == Exit.BUDGET and until < LIMIT:
            until = min(LIMIT, until + rng.choice([1, 2, 7, 100, 1000]))
            loop = rng.choice([{}, {}, {"plain": True}, {"interleaved": True}])
            status = pieces.advance(until, **loop)
        assert snapshot(pieces) == snapshot(whole), f"seed {seed}"


def compare_with_interpreter(seed: object, insns: list[Insn], code: Code, wram: bytes) -> None:
    oracle = Interpreter(insns, wram, wram[::-1], PARAMS)
    finished = False
    with contextlib.suppress(TimeoutError):
        oracle.run(LIMIT)
        finished = True
    made = machine(code, wram)
    made.advance(LIMIT + 1)
    for t in range(24):
        ours, theirs = made.tasklet(t), oracle.threads[t]
        seen = (ours["registers"], ours["pc"], ours["zero"], ours["carry"], ours["running"])
        wanted = (theirs.regs, theirs.pc, bool(theirs.zf), bool(theirs.cf), theirs.run)
        assert seen == wanted, f"seed {seed}, tasklet {t}"
    assert made.wram.tobytes() == bytes(oracle.wram), f"seed {seed}"
    assert made.mram[:65536].tobytes() == bytes(oracle.mram[:65536]), f"seed {seed}"
    assert made.instructions == oracle.instructions, f"seed {seed}"
    assert made.cycle == (oracle.cycle if finished else LIMIT + 1), f"seed {seed}"


@pytest.mark.parametrize("tasklets", [1, 4, 12])
def test_engine_and_interpreter_agree(tasklets: int) -> None:
    for seed in range(40):
        compare_with_interpreter(seed, *case(seed, tasklets))


def test_every_form_agrees_with_the_interpreter() -> None:
    for seed in range(2):
        rng = Random(seed)
        for number, insns in enumerate(every_form(rng)):
            code = Code(rows_of(insns).tobytes())
            compare_with_interpreter((seed, number), insns, code, image(rng, 16384))
