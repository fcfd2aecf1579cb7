"""Assembly text -> `Unit`, in the syntax of the SDK's assembler and of its clang's output.

`op rd, ra, rb|imm [, condition [, target]]`, labels, data and section directives, `.set`, `.loc`.
Comments start with `//` or `#`, or stand between `/*` and `*/`; `;` separates statements. Sections
that hold no part of a program (debug information, notes) are skipped. Printing is in disasm.py.
"""

from __future__ import annotations

import re

from upmem_sim.asm_directives import (
    DIRECTIVES,
    IGNORED,
    INT_SIZES,
    SECTION_DIRECTIVES,
    STRING,
    Directives,
)
from upmem_sim.asmexpr import NAME
from upmem_sim.disasm import disassemble, format_insn
from upmem_sim.errors import AsmError
from upmem_sim.isa import (
    CONDITION_INDEX,
    CONDITION_SPELLINGS,
    JUMP_SUGAR,
    MNEMONICS,
    OPERATIONS,
    REGISTERS,
    SUGAR_OPERANDS,
    Arg,
    Insn,
    Sym,
    split_mnemonic,
)
from upmem_sim.objfile import Unit
from upmem_sim.rows import to_row

__all__ = ["assemble", "disassemble", "format_insn"]

_BLOCK_COMMENT = re.compile(rf"{STRING}|/\*.*?\*/", re.DOTALL)
_LINE_COMMENT = re.compile(rf"{STRING}|(?://|#).*")
_STATEMENT = re.compile(rf"(?:{STRING}|[^;\"])+|\"")
_LABEL = re.compile(rf"\s*({NAME}|\d+)\s*:(?!:)")
_ASSIGN = re.compile(rf"\s*({NAME})\s*=\s*([^=].*)$")
_ENDIAN = re.compile(r"!\s*(big|little)\b\s*,?")
# Operands before the condition, by format; `call`, `jump` and store_id are read apart.
_OPERANDS = {
    "alu": 3, "shift": 3, "unary": 2, "shadd": 4, "step": 4, "movd": 2, "load": 3, "store": 3,
    "store_id": 3, "dma": 3, "acquire": 2, "thread": 2, "stop": 0, "time": 1, "time_cfg": 2,
    "fault": 1, "tell": 2, "nop": 0, "unit": 3, "unit_unary": 2,
}  # fmt: skip


def _zero(_: Sym) -> int:
    return 0


class _Assembler(Directives):
    # ------------------------------------------------------------------ statements

    def run(self, text: str) -> Unit:
        if "/*" in text:
            text = _BLOCK_COMMENT.sub(
                lambda m: m.group() if m.group()[0] == '"' else " " + "\n" * m.group().count("\n"),
                text,
            )
        try:
            for lineno, line in enumerate(text.split("\n"), 1):
                self.lineno = lineno
                self._line(line)
            for lineno, action in self.deferred:
                self.lineno = lineno
                action()
        except AsmError as error:
            raise AsmError(f"{self.unit.name}:{self.lineno}: {error}") from None
        self.unit.sections = [s for s in self.unit.sections if s.insns or s.bytes_used or s.labels]
        return self.unit

    def _line(self, line: str) -> None:
        if "#" in line or "//" in line:
            line = _LINE_COMMENT.sub(lambda m: m.group() if m.group()[0] == '"' else "", line)
        if ";" in line:
            for statement in _STATEMENT.findall(line):
                self._statement(statement)
        else:
            self._statement(line)

    def _statement(self, text: str) -> None:
        while ":" in text and (match := _LABEL.match(text)):
            if not self.skipping:
                self._define(match.group(1))
            text = text[match.end() :]
        words = text.split(None, 1)
        if not words:
            return
        head, rest = words[0], words[1].strip() if len(words) > 1 else ""
        if "=" in text and (match := _ASSIGN.match(text)):
            self._set(f"{match.group(1)}, {match.group(2)}")
        elif head[0] == ".":
            self._directive(head, rest)
        elif not self.skipping:
            self._instruction(head, rest)

    def _directive(self, name: str, rest: str) -> None:
        action = DIRECTIVES.get(name)
        if action is not None and (not self.skipping or name in SECTION_DIRECTIVES):
            action(self, rest)
        elif self.skipping or name in IGNORED or name.startswith(".cfi_"):
            pass
        elif name in INT_SIZES:
            self._integers(rest, INT_SIZES[name])
        else:
            raise AsmError(f"unknown directive {name[:40]}")

    # ------------------------------------------------------------------ instructions

    def _instruction(self, op: str, rest: str) -> None:
        if not self.section.is_text:
            raise AsmError(f"instruction {op[:40]} in data section {self.section.name}")
        big = False
        if "!" in rest and (endian := _ENDIAN.search(rest)):
            big = endian.group(1) == "big"
            rest = (rest[: endian.start()] + rest[endian.end() :]).strip().removesuffix(",")
        operands = [self._operand(part.strip()) for part in rest.split(",")] if rest else []
        insn = self._build(op, operands)
        insn.big, insn.line = big, self.line
        to_row(insn, _zero)  # refuses what does not exist, here where the line is known
        self.section.insns.append(insn)

    def _operand(self, text: str) -> Arg:
        if text in REGISTERS:
            return text
        if text in CONDITION_INDEX or text in CONDITION_SPELLINGS:
            return Sym(text)  # a condition or a symbol: its position tells
        if text[:1] == "@":  # documentation spells targets "@12", "@self", "@next"
            text = {"@self": ".", "@next": ".+1"}.get(text, text[1:])
        if not text:
            raise AsmError("an operand is missing")
        return self._expression(text)

    def _build(self, op: str, operands: list[Arg]) -> Insn:
        base, _ = split_mnemonic(op)
        if base not in MNEMONICS:
            raise AsmError(f"unknown instruction {op[:40]!r}")
        if base in JUMP_SUGAR:
            if not operands:
                raise AsmError(f"{op}: takes two operands and a target")
            return Insn(op, operands[:-1], None, _not_register(op, operands[-1]))
        row = OPERATIONS.get(base)
        if base == "jump" or (row and row.fmt == "call"):
            return _build_call(op, operands, destination=base == "call")
        count = _OPERANDS[row.fmt] if row else SUGAR_OPERANDS[base]
        if row and row.fmt == "store_id":
            count = min(len(operands), 3)
        args, rest = operands[:count], operands[count:]
        if len(rest) > 2:
            raise AsmError(f"{op}: {len(operands)} operands, at most {count + 2}")
        cc = None
        if rest:
            cc = rest[0].name if isinstance(rest[0], Sym) and not rest[0].addend else None
            if cc not in CONDITION_INDEX and cc not in CONDITION_SPELLINGS:
                raise AsmError(f"{op}: {rest[0]} is not a condition")
        target = _not_register(op, rest[1]) if len(rest) == 2 else None
        return Insn(op, args, cc, target)


def _not_register(op: str, arg: Arg) -> Arg:
    if isinstance(arg, str):
        raise AsmError(f"{op}: the target must be a label or a number, not {arg}")
    return arg


def _build_call(op: str, operands: list[Arg], *, destination: bool) -> Insn:
    """`call rc, [ra,] off|rb` and `jump [ra,] off`: without a base the offset is the target."""
    args, rest = operands[:destination], operands[destination:]
    if len(rest) == 1 and not isinstance(rest[0], str):
        return Insn(op, args, None, rest[0])
    return Insn(op, operands, None, None)


def assemble(text: str, name: str) -> Unit:
    """Assemble one file.

    text  assembly source
    name  file name, for messages and as the unit's name
    Errors: AsmError "name:line: what, limit, value".
    """
    return _Assembler(name).run(text)
