"""Random programs: the engine and the plain interpreter agree on all state and on every cycle."""

from __future__ import annotations

import pytest

from benchmarks.program_generator import generate
from benchmarks.random_programs import assembled, differences, interpreter_state
from upmem_sim import interpreter_alu
from upmem_sim.interpreter import Interpreter, Timing
from upmem_sim.isa import Insn
from upmem_sim.params import DpuParams

PROGRAMS = 300


@pytest.mark.parametrize("start", range(0, PROGRAMS, 50))
def test_engine_agrees_with_interpreter(start: int) -> None:
    for seed in range(start, start + 50):
        assert differences(seed) == [], f"program of seed {seed}"


def test_programs_are_the_same_for_the_same_seed() -> None:
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)


def test_programs_do_something() -> None:
    states = [interpreter_state(assembled(generate(seed))) for seed in range(20)]
    finished = [state["instructions"] for state in states if "cycles" in state]
    assert len(finished) > 15
    assert sum(finished) > 200 * len(finished)


def test_a_wrong_shift_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(interpreter_alu.SHIFT, "lsr", lambda a, s: a >> (s + 1))
    assert any(differences(seed) for seed in range(10))


def test_a_cycle_of_difference_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    longer = Timing.of(DpuParams(dma_read_latency_cycles=65.0))
    monkeypatch.setattr(Timing, "of", lambda params: longer)
    assert any(differences(seed) for seed in range(30))


def test_interpreter_keeps_eleven_cycles_between_issues() -> None:
    machine = Interpreter([Insn("move", ["r0", 1]), Insn("stop", [], "true", 1)])
    assert machine.run() == 12
