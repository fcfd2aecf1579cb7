"""Instruction words -> instructions: the inverse of encoding.py, whose docstring has the layout.

A word decodes only if encoding the result gives the same word, so what is accepted is exactly what
`encode` makes, and no two instructions share a word.
"""

from __future__ import annotations

from collections.abc import Callable

from upmem_sim.encoding import (
    DMA,
    E_REG,
    L_REG,
    L_SHIFTED,
    LOADS,
    LOGIC,
    M_SINGLE,
    NOP_WORD,
    STORES,
    UNARY,
    WIDE,
    WIDE_FLAGS,
    WIDE_PAIR,
    WIDE_REVERSED,
    encode,
)
from upmem_sim.errors import AsmError
from upmem_sim.isa import (
    JUMP_CLASSES,
    JUMP_CODES,
    OPERATIONS,
    SET_CODES,
    SHIFTS,
    SINGLE_NAMES,
    Arg,
    Insn,
)

_REVERSED4 = [int(f"{i:04b}"[::-1], 2) for i in range(16)]
_JUMP_NAMES = {c: {JUMP_CODES[n]: n for n in names} for c, names in JUMP_CLASSES.items()}
_SET_NAMES = {c: {code: n for n, code in codes.items()} for c, codes in SET_CODES.items()}
_WIDE_NAMES = {major: name for name, major in (WIDE | WIDE_REVERSED).items()}
_WIDE_PAIR_NAMES = {major: name for name, major in WIDE_PAIR.items()}
_E_IMM_NAMES = ["add", "sub", "addc", "subc", "sub", "sub", "subc", "subc"]


class _NoInsn(Exception):
    """The word lies in a hole of the layout."""


def _imm8(w: int) -> int:
    return (w >> 20 & 15) | (w >> 16 & 15) << 4


def _imm24(w: int) -> int:
    return _imm8(w) | _REVERSED4[w >> 12 & 15] << 8 | (w & 0xFFF) << 12


def _imm32(w: int) -> int:
    return _imm24(w) | (w >> 24 & 0xFF) << 24


def _imm32_rb(w: int) -> int:
    return _imm32(w) & ~0xE0 | (w >> 34 & 7) << 5


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _single(number: int) -> str:
    return SINGLE_NAMES[number]


def _general(number: int) -> str:
    if number >= 24:
        raise _NoInsn
    return f"r{number}"


def _even(number: int) -> str:
    if number >= 24 or number & 1:
        raise _NoInsn
    return f"d{number}"


def _ra(w: int) -> str:
    return _single(w >> 34 & 31)


def _rb_number(w: int) -> int:
    return (w >> 17 & 7) | (w >> 32 & 3) << 3


def _has_rb(w: int) -> bool:
    return w >> 32 & 3 != 3


def _pick(names: list[str], number: int) -> str:
    if number >= len(names):
        raise _NoInsn
    return names[number]


def _condition(w: int, code: int, jump: str | None, set_: str | None) -> tuple[str | None, bool]:
    """(name, is a jump) of a condition code; (None, False) for the plain form."""
    if code == 0:
        return None, False
    if set_ and code in _SET_NAMES[set_]:
        return _SET_NAMES[set_][code], False
    if jump and code in _JUMP_NAMES[jump]:
        return _JUMP_NAMES[jump][code], True
    raise _NoInsn


def _finish(op: str, args: list[Arg], w: int, cc: str | None, jump: bool) -> Insn:
    return Insn(op, args, cc, w & 0xFFFF if jump else None)


def _immediate(w: int, jump: bool, no_dest: bool, logic: bool) -> int:
    """Immediate of E and L forms that have a condition field."""
    high = (w >> 39 & 7) | (w >> 44 & 1) << 3 if logic else w >> 39 & 7
    extra = 4 if logic else 3
    low, bits = (_imm8(w), 8) if jump else (_imm24(w), 24)
    return _signed(low | high << bits, bits + extra) if no_dest else _signed(low, bits)


def _wide(w: int) -> Insn:
    major, rc, ra = w >> 44, w >> 39 & 31, _ra(w)
    if major in _WIDE_PAIR_NAMES:
        op = _WIDE_PAIR_NAMES[major] + (".s" if rc & 1 else ".u")
        return Insn(op, [_even(rc & ~1), _general(_rb_number(w)), _signed(_imm32_rb(w), 32)])
    if major == 5 and w >> 37 & 3 == 3:
        op = "and" + (".s" if rc & 1 else ".u")
        return Insn(op, [_even(rc & ~1), ra, _signed(_imm32(w), 32)])
    if major == 6 and rc >= 24:
        source, imm = _general(_rb_number(w)), _signed(_imm32_rb(w), 32)
        args: list[Arg] = ["zero", imm, source] if w >> 37 & 1 else ["zero", source, imm]
        return Insn(_pick(WIDE_FLAGS, rc & 7), args)
    name, imm = _WIDE_NAMES[major], _signed(_imm32(w), 32)
    return Insn(name, [_general(rc), imm, ra] if major in (2, 3) else [_general(rc), ra, imm])


def _dest_e(w: int) -> tuple[str, str]:
    """(suffix, destination) of group E."""
    number = (w >> 39 & 7) | (w >> 44 & 3) << 3
    if w >> 46 == 3:
        return ".s" if number & 1 else ".u", _even(number & ~1)
    return "", _general(number) if number < 24 else "zero"


def _group_e(w: int) -> Insn:
    suffix, dest = _dest_e(w)
    if not _has_rb(w):
        number = w >> 29 & 7
        name = _E_IMM_NAMES[number]
        reverse = number in (1, 3)
        code = (w >> 24 & 31) | ((number & 1) << 5 if number >= 4 else 0)
        row = OPERATIONS[name]
        cc, jump = _condition(w, code, row.jump, "zero" if reverse else row.set)
        imm = _immediate(w, jump, dest == "zero", False)
        args: list[Arg] = [dest, imm, _ra(w)] if reverse else [dest, _ra(w), imm]
        return _finish(name + suffix, args, w, cc, jump)
    name = _pick(E_REG, (w >> 20 & 15) | (w >> 16 & 1) << 4)
    row = OPERATIONS[name]
    code = w >> 24 & (63 if row.set == "sub" else 31)
    cc, jump = _condition(w, code, row.jump, row.set)
    if name == "time":
        args = [dest]
    elif name == "time_cfg":
        args = [dest, _general(_rb_number(w))]
    else:
        args = [dest, _ra(w), _general(_rb_number(w))]
    return _finish(name + suffix, args, w, cc, jump)


def _dest_l(w: int) -> tuple[str, str]:
    rc = w >> 39 & 31
    if rc >= 24:
        return "", "zero"
    if w >> 44 == 9:
        return ".s" if rc & 1 else ".u", _even(rc & ~1)
    return "", _general(rc)


def _group_l_imm(w: int) -> Insn:
    suffix, dest = _dest_l(w)
    kind = w >> 28 & 15
    if kind == 9:
        imm = _signed(_imm24(w), 24)
        if dest == "zero":
            imm = _immediate(w, False, True, True)
        if _ra(w) == "zero":
            return Insn("call", [dest], None, imm)
        return Insn("call", [dest, _ra(w), imm])
    if kind == 10:
        name = _pick(UNARY, w >> 16 & 15)
        cc, jump = _condition(w, w >> 24 & 15, OPERATIONS[name].jump, "zero")
        return _finish(name + suffix, [dest, _ra(w)], w, cc, jump)
    if kind >= 12:
        name = _pick(SHIFTS, w >> 16 & 15)
        cc, jump = _condition(w, (w >> 24 & 15) | (w >> 29 & 1) << 4, "imm_shift", "zero")
        shift = (w >> 20 & 15) | (w >> 28 & 1) << 4
        return _finish(name + suffix, [dest, _ra(w), shift], w, cc, jump)
    name = _pick(LOGIC, kind)
    cc, jump = _condition(w, w >> 24 & 15, OPERATIONS[name].jump, "zero")
    imm = _immediate(w, jump, dest == "zero", True)
    return _finish(name + suffix, [dest, _ra(w), imm], w, cc, jump)


def _group_l_shifted(w: int) -> Insn:
    name = L_SHIFTED[(w >> 30 & 3) * 2 + (w >> 16 & 1) - 2]
    shift = (w >> 20 & 15) | (w >> 28 & 1) << 4
    cc, jump = _condition(w, w >> 24 & 15, OPERATIONS[name].jump, None)
    if OPERATIONS[name].fmt == "step":
        args: list[Arg] = [_even(w >> 39 & 31), _ra(w), _even(_rb_number(w)), shift]
        return _finish(name, args, w, cc, jump)
    suffix, dest = _dest_l(w)
    return _finish(name + suffix, [dest, _general(_rb_number(w)), _ra(w), shift], w, cc, jump)


def _group_l(w: int) -> Insn:
    if not _has_rb(w):
        return _group_l_imm(w)
    if w >> 30 & 3:
        return _group_l_shifted(w)
    name = _pick(L_REG, (w >> 20 & 15) | (w >> 16 & 1) << 4)
    row = OPERATIONS[name]
    if row.fmt == "movd":
        cc, jump = _condition(w, w >> 24 & 15, row.jump, None)
        return _finish(name, [_even(w >> 39 & 31), _even(_rb_number(w))], w, cc, jump)
    suffix, dest = _dest_l(w)
    args: list[Arg] = [dest, _ra(w), _general(_rb_number(w))]
    if name == "call":
        return Insn(name, args)
    cc, jump = _condition(w, (w >> 24 & 15) | (w >> 29 & 1) << 4, row.jump, row.set)
    return _finish(name + suffix, args, w, cc, jump)


def _store_offset(w: int) -> int:
    return (w >> 20 & 15) | (w >> 39 & 7) << 4 | (w >> 24 & 1) << 7 | _REVERSED4[w >> 12 & 15] << 8


def _memory_immediate(w: int) -> Insn:
    """Major 7 without rb and with rc >= 24: acquire, release, stores of constants."""
    if w >> 31 & 1:
        imm = _imm8(w) | (w >> 26 & 31) << 8 | (w >> 39 & 7) << 13
        code = w >> 24 & 3
        name, cc = ("acquire", _JUMP_NAMES["acquire"][code]) if code else ("release", "nz")
        return Insn(name, [_ra(w), _signed(imm, 16)], cc, w & 0xFFFF)
    name = STORES[w >> 28 & 3]
    imm = (w >> 16 & 15) | (w & 0xFFF) << 4
    args: list[Arg] = [_ra(w), _signed(_store_offset(w), 12)]
    op = name + "_id" if w >> 26 & 1 else name
    args.append(_signed(imm & 0xFF, 8) if name == "sb" else _signed(imm, 16))
    return Insn(op, args, big=bool(w >> 27 & 1))


def _load(w: int) -> Insn:
    name, rc = _pick(LOADS, w >> 28 & 7), w >> 39 & 31
    if w >> 31 & 1:
        op, dest = name + (".s" if rc & 1 else ".u"), _even(rc & ~1)
    else:
        op, dest = name, _even(rc) if name == "ld" else _general(rc)
    return Insn(op, [dest, _ra(w), _signed(_imm24(w), 24)], big=bool(w >> 27 & 1))


def _group_m(w: int) -> Insn:
    rc = w >> 39 & 31
    if not _has_rb(w):
        return _memory_immediate(w) if rc >= 24 else _load(w)
    if rc >= 24:
        name = STORES[w >> 28 & 3]
        offset = _signed(_store_offset(w) | (w & 0xFFF) << 12, 24)
        number = _rb_number(w)
        source = _even(number) if name == "sd" else _general(number)
        return Insn(name, [_ra(w), offset, source], big=bool(w >> 27 & 1))
    if rc == 0:
        return Insn(_pick(DMA, w & 3), [_ra(w), _general(_rb_number(w)), w >> 24 & 0xFF])
    name = _pick(M_SINGLE, rc)
    if name == "fault":
        return Insn(name, [_signed(_imm24(w), 24)])
    if name == "tell":
        return Insn(name, [_ra(w), _signed(_imm24(w), 24)])
    cc, jump = _condition(w, w >> 24 & 31, "step", None)
    args: list[Arg] = [] if name == "stop" else [_ra(w), _signed(_imm8(w), 8)]
    return _finish(name, args, w, cc, jump)


def _decoder(w: int) -> Callable[[int], Insn]:
    major, escape = w >> 44, w >> 42 & 3 == 3
    if major == 7:
        return _group_m
    if major in (8, 9):
        return _group_l
    if (major < 4 and escape) or major in (12, 13, 14):
        return _group_e
    if major in (10, 11) or major <= 6:
        return _wide
    raise _NoInsn


def decode(word: int) -> Insn:
    """The canonical instruction of a 48-bit word (no sugar, targets as instruction indices).

    Errors: AsmError for a word that `encode` never makes.
    """
    if word == NOP_WORD:
        return Insn("nop")
    if 0 <= word < 1 << 48:
        try:
            insn = _decoder(word)(word)
            if encode(insn) == word:
                return insn
        except (_NoInsn, AsmError):
            pass
    raise AsmError(f"word {word:#014x} is not an instruction of this simulator's encoding")
