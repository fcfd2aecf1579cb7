"""Assembly text -> `Program`, and single steps of a DPU that prove when an instruction may issue.

steps = Steps(program("lw r0, zero, 0\nadd r0, r0, 1\nend: stop true, end"))
steps.assert_earliest_issue_at(0)    # blocked in cycle -1, issues in cycle 0
steps.assert_earliest_issue_at(11)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from upmem_sim.bare import bare_program, booted
from upmem_sim.dpu import Dpu
from upmem_sim.encoding import encode_row
from upmem_sim.interpreter import Interpreter
from upmem_sim.isa import ROW, Insn, Sym
from upmem_sim.params import DpuParams
from upmem_sim.program import Program, Symbol
from upmem_sim.rows import to_row

__all__ = ["Steps", "booted", "oracle", "program", "rows_of"]


def rows_of(insns: list[Insn], labels: dict[str, int] | None = None) -> np.ndarray:
    """Engine rows of instructions whose labels are known."""
    known = labels or {}

    def resolve(symbol: Sym) -> int:
        return known[symbol.name] + symbol.addend

    return np.array([to_row(insn, resolve, pc) for pc, insn in enumerate(insns)], ROW)


def program(
    text: str,
    *,
    tasklets: int = 1,
    wram: bytes = b"",
    mram: bytes = b"",
    symbols: dict[str, Symbol] | None = None,
) -> Program:
    """The text alone, at instruction 0; the lines of instruction pc are ("test.s", pc + 1)."""
    return bare_program(
        text, name="test.s", tasklets=tasklets, wram=wram, mram=mram, symbols=symbols
    )


def oracle(loaded: Program, params: DpuParams | None = None) -> Interpreter:
    """The plain interpreter with a program of `program`, which has rows but no words."""
    words = [encode_row(tuple(map(int, row))) for row in loaded.rows]  # type: ignore[arg-type]
    return Interpreter.of(replace(loaded, words=np.array(words, np.uint64)), params)


class Steps:
    """One DPU, advanced an instruction at a time."""

    def __init__(self, loaded: Program, params: DpuParams | None = None) -> None:
        self.dpu = Dpu(loaded, params)
        self.machine = self.dpu.machine
        self.machine.start()

    def probe(self, cycle: int) -> int | None:
        """The tasklet that issues in `cycle` if nothing issues before; changes nothing."""
        tasklet, at = self.machine.next_issue()
        return int(tasklet) if tasklet >= 0 and at == cycle else None

    def issue(self) -> tuple[int, int]:
        """Executes the next instruction; (tasklet, cycle) of it."""
        tasklet, at = self.machine.next_issue()
        assert tasklet >= 0, "no tasklet can issue"
        self.machine.step()
        return int(tasklet), int(at)

    def skip(self, instructions: int) -> None:
        """Executes some instructions, wherever they issue."""
        for _ in range(instructions):
            self.issue()

    def assert_earliest_issue_at(self, cycle: int, tasklet: int = 0) -> None:
        """The tasklet is blocked in cycle - 1 and issues in `cycle`; the instruction executes."""
        assert self.probe(cycle - 1) is None, f"not blocked in cycle {cycle - 1}"
        assert self.probe(cycle) == tasklet, f"next issue is {self.machine.next_issue()}"
        assert self.issue() == (tasklet, cycle)

    def register(self, number: int, tasklet: int = 0) -> int:
        return int(self.machine.tasklet(tasklet)["registers"][number])
