"""Assembly text as it stands -> `Program`: no start-up code, no library, no linker.

Instruction 0 is the first of the text, every tasklet starts there, and tasklet 0 is booted. For
timing studies and tests, where every instruction counts.
"""

from __future__ import annotations

import numpy as np

from upmem_sim.asm import assemble
from upmem_sim.errors import AsmError
from upmem_sim.isa import ROW, Insn, Label, Sym
from upmem_sim.program import Program, Symbol
from upmem_sim.rows import to_row

__all__ = ["bare_program", "booted"]


def booted(body: str, tasklets: int) -> str:
    """`body` run by that many tasklets: each boots the next, then goes to `body`."""
    return f"jgeu id, {tasklets - 1}, main\nboot id, 1\nmain:\n{body}\n"


def bare_program(
    text: str,
    *,
    name: str = "text",
    tasklets: int = 1,
    wram: bytes = b"",
    mram: bytes = b"",
    symbols: dict[str, Symbol] | None = None,
) -> Program:
    """A program of the first text section. Raises AsmError; line n of the list is `name`:n."""
    sections = [s for s in assemble(text, name).sections if s.insns]
    if len(sections) != 1:
        raise AsmError(f"{name}: {len(sections)} sections with instructions, limit exactly 1")
    insns: list[Insn] = []
    labels: dict[str, int] = {}
    for item in sections[0].insns:
        if isinstance(item, Label):
            labels[item.name] = len(insns)
        else:
            insns.append(item)

    def resolve(symbol: Sym) -> int:
        if symbol.name not in labels:
            raise AsmError(f"{name}: label {symbol.name!r} is not defined")
        return labels[symbol.name] + symbol.addend

    rows = np.array([to_row(insn, resolve, pc) for pc, insn in enumerate(insns)], ROW)
    lines: list[tuple[str, int] | None] = [(name, pc + 1) for pc in range(len(insns))]
    words = np.zeros(len(rows), np.uint64)
    return Program(words, rows, wram, mram, symbols or {}, tasklets, lines)
