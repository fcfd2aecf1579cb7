"""Instructions and programs -> assembly text that assembles to the same instructions."""

from __future__ import annotations

import re

from upmem_sim.asmexpr import NAME
from upmem_sim.decoding import decode
from upmem_sim.isa import OPERATIONS, REGISTERS, Arg, Insn, Sym, split_mnemonic
from upmem_sim.program import IRAM_BASE, IRAM_INSN_BYTES, Program, Symbol
from upmem_sim.sugar import sugared


def format_insn(insn: Insn) -> str:
    """One instruction as the assembler reads it."""
    parts = [str(arg) for arg in insn.args]
    if insn.cc is not None:
        parts.append(insn.cc)
    if insn.target is not None:
        parts.append(str(insn.target))
    op = insn.op + (" !big" if insn.big else "")
    return f"{op} {', '.join(parts)}" if parts else op


def _labels(program: Program, insns: list[Insn]) -> dict[int, list[str]]:
    """Instruction index -> names: code symbols, and `.L<index>` for other jump targets."""
    names: dict[int, list[str]] = {}
    for symbol in program.symbols.values():
        index, rest = divmod(symbol.address - IRAM_BASE, IRAM_INSN_BYTES)
        usable = symbol.name not in REGISTERS and re.fullmatch(NAME, symbol.name)
        if symbol.section == ".text" and usable and rest == 0 and 0 <= index <= len(insns):
            names.setdefault(index, []).append(symbol.name)
    for insn in insns:
        target = insn.target
        if isinstance(target, int) and target not in names and 0 <= target < len(insns):
            names[target] = [f".L{target}"]
    return names


def _named(insn: Insn, names: dict[int, list[str]]) -> Arg | None:
    target = insn.target
    return Sym(names[target][0]) if isinstance(target, int) and target in names else target


def _variable(insn: Insn, variables: list[Symbol]) -> str:
    """Name of the WRAM variable that a load or store from `zero` reaches, as a comment."""
    row = OPERATIONS.get(split_mnemonic(insn.op)[0])
    if row is None or row.fmt not in ("load", "store", "store_id"):
        return ""
    base = 1 if row.fmt == "load" else 0
    offset = insn.args[base + 1]
    if insn.args[base] != "zero" or not isinstance(offset, int):
        return ""
    found = (s for s in variables if s.address <= offset < s.address + s.size)
    symbol = next(found, None)
    return "" if symbol is None else f" {Sym(symbol.name, offset - symbol.address)}"


def disassemble(program: Program) -> str:
    """Text of a program's code, with symbols, addresses and C lines as comments.

    Assembling it again gives the same words. Errors: AsmError for a word that is no instruction.
    """
    insns = [sugared(decode(int(word))) for word in program.words]
    names = _labels(program, insns)
    functions = {s.name: s for s in program.symbols.values() if s.section == ".text"}
    outside = (".text", "*ABS*", ".atomic", ".mram", ".mram.noinit")
    variables = [s for s in program.symbols.values() if s.section not in outside]
    lines = ["\t.text"]
    line: tuple[str, int] | None = None
    for index, insn in enumerate(insns):
        for name in names.get(index, ()):
            if name in functions:
                lines.append(f"\t.globl {name}")
            lines.append(f"{name}:")
        at = program.lines[index] if index < len(program.lines) else None
        if at is not None and at != line:
            lines.append(f"\t// {at[0]}:{at[1]}")
        line = at
        insn.target = _named(insn, names)
        note = _variable(insn, variables)
        lines.append(f"\t{format_insn(insn):<40}// {index:#06x}{note}")
    for name in names.get(len(insns), ()):
        lines.append(f"{name}:")
    return "\n".join(lines) + "\n"
