"""Assembler sugar: `move`, `not`, `neg`, `jump`, `bkp` and the `jCC` jumps, both ways.

`canonical` rewrites sugar to operations of the table; `sugared` spells a canonical instruction the
way programmers write it. Equivalences: UPMEM SDK manual, assembler chapter.
"""

from __future__ import annotations

from collections.abc import Callable

from upmem_sim.errors import AsmError
from upmem_sim.isa import (
    CONDITION_SPELLINGS,
    JUMP_SUGAR,
    ONE_OPERAND_JUMPS,
    OPERATIONS,
    Arg,
    Insn,
    split_mnemonic,
)


def _sugar_move(insn: Insn, suffix: str) -> tuple[str, list[Arg]]:
    need(insn, 2)
    rd, source = insn.args
    if isinstance(source, str):
        return "or" + suffix, [rd, source, 0]
    if suffix == ".s":
        return "and.s", [rd, "lneg", source]
    if suffix == ".u":
        return "and.u", [rd, "lneg", source]
    return "or", [rd, "zero", source]


def _sugar_jump(insn: Insn, suffix: str) -> tuple[str, list[Arg]]:
    return "call" + suffix, ["zero", *insn.args]


def _sugar_bkp(insn: Insn, suffix: str) -> tuple[str, list[Arg]]:
    need(insn, 0)
    return "fault" + suffix, [0]


def _sugar_one(op: str, *extra: int, first: bool = False) -> Callable[..., tuple[str, list[Arg]]]:
    def rewrite(insn: Insn, suffix: str) -> tuple[str, list[Arg]]:
        need(insn, 2)
        rd, ra = insn.args
        return op + suffix, [rd, *extra, ra] if first else [rd, ra, *extra]

    return rewrite


SUGAR: dict[str, Callable[[Insn, str], tuple[str, list[Arg]]]] = {
    "move": _sugar_move,
    "not": _sugar_one("xor", -1),
    "neg": _sugar_one("sub", 0, first=True),
    "jump": _sugar_jump,
    "bkp": _sugar_bkp,
}


def need(insn: Insn, *counts: int) -> None:
    if len(insn.args) not in counts:
        wanted = " or ".join(map(str, counts))
        raise AsmError(f"{insn.op}: takes {wanted} operands, {len(insn.args)} given")


def canonical(insn: Insn) -> Insn:
    """The same instruction without sugar: operations of `OPERATIONS` only.

    Errors: AsmError for an unknown mnemonic or a wrong operand count of sugar.
    """
    base, suffix = split_mnemonic(insn.op)
    op, args, cc, target = insn.op, insn.args, insn.cc, insn.target
    if base in OPERATIONS:
        pass
    elif base in SUGAR:
        op, args = SUGAR[base](insn, suffix)
    elif base in JUMP_SUGAR and not suffix:
        cc = JUMP_SUGAR[base]
        if len(args) == 1 and cc in ONE_OPERAND_JUMPS:
            args = [*args, 0]
        if len(args) != 2 or insn.cc is not None or target is None:
            raise AsmError(f"{insn.op}: takes two operands and a target")
        op, args = "sub", ["zero", *args]
    else:
        raise AsmError(f"unknown instruction {insn.op!r}")
    if op == "call" and len(args) == 2 and isinstance(args[1], str) and target is None:
        args = [*args, 0]
    cc = CONDITION_SPELLINGS.get(cc, cc) if cc else cc
    if cc == "false" and target is not None:  # a jump form that never jumps is the plain form
        cc = target = None
    return Insn(op, args, cc, target, insn.big, insn.line)


_JUMP_NAMES = {"z": "jeq", "nz": "jneq"}
_Spelling = tuple[str, list[Arg]]


def _is_number(arg: Arg) -> bool:
    return not isinstance(arg, str)


def _spell_call(insn: Insn, suffix: str) -> _Spelling | None:
    args = insn.args
    if args[0] != "zero" or (insn.target is None and args[1] == "zero"):
        return None
    return "jump", args[1:2] if args[2:] == [0] else args[1:]


def _spell_sub(insn: Insn, suffix: str) -> _Spelling | None:
    args = insn.args
    if not suffix and args[0] == "zero" and insn.target is not None:
        if insn.cc == "true" or _is_number(args[1]):
            return None
        return _JUMP_NAMES.get(insn.cc or "", f"j{insn.cc}"), args[1:]
    return ("neg" + suffix, [args[0], args[2]]) if _is_number(args[1]) and args[1] == 0 else None


def _spell_or(insn: Insn, suffix: str) -> _Spelling | None:
    rd, ra, second = insn.args
    if _is_number(second) and second == 0 and (ra != "zero" or suffix):
        return "move" + suffix, [rd, ra]
    return ("move", [rd, second]) if ra == "zero" and _is_number(second) and not suffix else None


def _spell_and(insn: Insn, suffix: str) -> _Spelling | None:
    rd, ra, second = insn.args
    return (
        ("move" + suffix, [rd, second]) if suffix and ra == "lneg" and _is_number(second) else None
    )


def _spell_xor(insn: Insn, suffix: str) -> _Spelling | None:
    return ("not" + suffix, insn.args[:2]) if insn.args[2] == -1 else None


_SPELLERS: dict[str, Callable[[Insn, str], _Spelling | None]] = {
    "call": _spell_call,
    "sub": _spell_sub,
    "or": _spell_or,
    "and": _spell_and,
    "xor": _spell_xor,
}


def sugared(insn: Insn) -> Insn:
    """The usual spelling of a canonical instruction; `canonical` of the result is the argument."""
    base, suffix = split_mnemonic(insn.op)
    speller = _SPELLERS.get(base)
    spelling = speller(insn, suffix) if speller else None
    if spelling is None:
        return insn
    op, args = spelling
    cc = None if op[0] == "j" else insn.cc
    return Insn(op, args, cc, insn.target, insn.big, insn.line)
