"""Instruction words -> instructions: the inverse of encoding.py, whose docstring has the layout.

A word decodes only if encoding the result gives the same word or its synonym: what is accepted is
exactly what `encode` and `synonym` make, and no two instructions share a word.
"""

from __future__ import annotations

from collections.abc import Callable

from upmem_sim.encoding import (
    DMA,
    E_OP,
    E_OTHER,
    E_SUM,
    L_CALL,
    L_MOVES,
    L_REG,
    L_SHIFT,
    L_UNARY,
    LOADS,
    LOGIC,
    M_SINGLE,
    MOVES,
    NOP_WORD,
    PAIR_HIGH,
    REG,
    SHIFT,
    SHIFTED,
    STEPS,
    STORES,
    UNARY,
    UNIT,
    UNIT_MAJOR,
    WIDE,
    WIDE_FLAGS,
    WIDE_PAIR,
    WIDE_REVERSED,
    encode,
    synonym,
)
from upmem_sim.errors import AsmError
from upmem_sim.isa import (
    JUMP_CLASSES,
    JUMP_CODES,
    NO_REG,
    OPERATIONS,
    SET_CODES,
    SINGLE_NAMES,
    Arg,
    Insn,
)

_REVERSED4 = [int(f"{i:04b}"[::-1], 2) for i in range(16)]
_JUMP_NAMES = {c: {JUMP_CODES[n]: n for n in names} for c, names in JUMP_CLASSES.items()}
_SET_NAMES = {c: {code: n for n, code in codes.items()} for c, codes in SET_CODES.items()}
_WIDE_NAMES = {major: name for name, major in (WIDE | WIDE_REVERSED).items()}
_WIDE_PAIR_NAMES = {major: name for name, major in WIDE_PAIR.items()}
_E_NAMES = [*E_OP, "sub", "subc"]  # the last two: set forms with 6-bit codes
_E_REVERSED = {"rsub": "sub", "rsubc": "subc"}  # with an immediate: imm - ra
_LOGIC_NAMES = {number: name for name, number in LOGIC.items()}
_REG_NAMES = {number: name for name, number in REG.items()}
_SHIFT_NAMES = {number: name for name, number in SHIFT.items()}
_SHIFTED_NAMES = {number: name for name, number in SHIFTED.items()}
_STEP_NAMES = {number: name for name, number in STEPS.items()}
_LOAD_NAMES = {number: name for name, number in LOADS.items()}


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


def _rb_name(w: int) -> str:
    return _general(_rb_number(w))


def _has_rb(w: int) -> bool:
    return w >> 32 & 3 != 3


def _pick(names: list[str], number: int) -> str:
    if number >= len(names):
        raise _NoInsn
    return names[number]


def _look(names: dict[int, str], number: int) -> str:
    if number not in names:
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
    if major == 6 and rc >= 24:
        source, imm = _rb_name(w), _signed(_imm32_rb(w), 32)
        args: list[Arg] = ["zero", imm, source] if w >> 37 & 1 else ["zero", source, imm]
        return Insn(_pick(WIDE_FLAGS, rc & 7), args)
    if _has_rb(w):
        op = _look(_WIDE_PAIR_NAMES, major) + (".s" if rc & 1 else ".u")
        return Insn(op, [_even(rc & ~1), _rb_name(w), _signed(_imm32_rb(w), 32)])
    if major == 5 and w >> 37 & 3 == 3:
        op = "and" + (".s" if rc & 1 else ".u")
        return Insn(op, [_even(rc & ~1), ra, _signed(_imm32(w), 32)])
    name, imm = _WIDE_NAMES[major], _signed(_imm32(w), 32)
    return Insn(name, [_general(rc), imm, ra] if major in (2, 3) else [_general(rc), ra, imm])


def _dest_e(w: int) -> tuple[str, str]:
    """(suffix, destination) of group E."""
    major, low = w >> 44, w >> 39 & 7
    if major >= 4:
        number = (low & 6) | (2 if major == PAIR_HIGH else major & 3) << 3
        return ".s" if low & 1 else ".u", _even(number)
    number = low | major << 3
    return "", _general(number) if number < 24 else "zero"


def _group_e(w: int) -> Insn:
    if _has_rb(w) and w >> 20 & 15 != E_SUM:
        return _group_e_other(w)
    suffix, dest = _dest_e(w)
    number = w >> 29 & 7
    name = _E_NAMES[number]
    reverse = not _has_rb(w) and name in _E_REVERSED
    name = _E_REVERSED[name] if reverse else name
    row = OPERATIONS[name]
    code = (w >> 24 & 31) | (number >= 6) << 5
    cc, jump = _condition(w, code, row.jump, "zero" if reverse else row.set)
    second: Arg = _rb_name(w) if _has_rb(w) else _immediate(w, jump, dest == "zero", False)
    args = [dest, second, _ra(w)] if reverse else [dest, _ra(w), second]
    return _finish(name + suffix, args, w, cc, jump)


def _group_e_other(w: int) -> Insn:
    suffix, dest = _dest_e(w)
    name = _pick(E_OTHER, w >> 20 & 15)
    row = OPERATIONS[name]
    cc, jump = _condition(w, w >> 24 & 31, row.jump, row.set)
    args: list[Arg] = [dest]
    if name != "time":
        args += [_rb_name(w)] if name == "time_cfg" else [_ra(w), _rb_name(w)]
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
    if kind == L_CALL:
        imm = _signed(_imm24(w), 24)
        if dest == "zero":
            imm = _immediate(w, False, True, True)
        if _ra(w) == "zero":
            return Insn("call", [dest], None, imm)
        return Insn("call", [dest, _ra(w), imm])
    if kind == L_UNARY:
        name = _pick(UNARY, w >> 20 & 15)
        cc, jump = _condition(w, w >> 24 & 15, OPERATIONS[name].jump, "zero")
        return _finish(name + suffix, [dest, _ra(w)], w, cc, jump)
    if kind & 12 == L_SHIFT:
        name = _look(_SHIFT_NAMES, w >> 16 & 15)
        cc, jump = _condition(w, (w >> 24 & 15) | (w >> 29 & 1) << 4, "imm_shift", "zero")
        shift = (w >> 20 & 15) | (w >> 28 & 1) << 4
        return _finish(name + suffix, [dest, _ra(w), shift], w, cc, jump)
    name = _look(_LOGIC_NAMES, kind)
    cc, jump = _condition(w, w >> 24 & 15, OPERATIONS[name].jump, "zero")
    imm = _immediate(w, jump, dest == "zero", True)
    return _finish(name + suffix, [dest, _ra(w), imm], w, cc, jump)


def _group_l_shifted(w: int) -> Insn:
    number, pair = w >> 29 & 3, w >> 16 & 1
    if pair and number == L_MOVES:
        name = _pick(MOVES, w >> 20 & 15)
        cc, jump = _condition(w, w >> 24 & 15, OPERATIONS[name].jump, None)
        return _finish(name, [_even(w >> 39 & 31), _even(_rb_number(w))], w, cc, jump)
    name = _look(_STEP_NAMES if pair else _SHIFTED_NAMES, number)
    shift = (w >> 20 & 15) | (w >> 28 & 1) << 4
    cc, jump = _condition(w, w >> 24 & 15, OPERATIONS[name].jump, None)
    if pair:
        args: list[Arg] = [_even(w >> 39 & 31), _ra(w), _even(_rb_number(w)), shift]
        return _finish(name, args, w, cc, jump)
    suffix, dest = _dest_l(w)
    return _finish(name + suffix, [dest, _rb_name(w), _ra(w), shift], w, cc, jump)


def _group_l(w: int) -> Insn:
    if not _has_rb(w):
        return _group_l_imm(w)
    if not w >> 31 & 1:
        return _group_l_shifted(w)
    number = w >> 20 & 15
    name = _look(_REG_NAMES if w >> 28 & 15 == L_REG else _SHIFT_NAMES, number)
    row = OPERATIONS[name]
    suffix, dest = _dest_l(w)
    args: list[Arg] = [dest, _ra(w), _rb_name(w)]
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
    if not w >> 30 & 1:
        return _single_register(w)
    name = STORES[w >> 25 & 3]
    imm = (w >> 16 & 15) | (w & 0xFFF) << 4
    args: list[Arg] = [_ra(w), _signed(_store_offset(w), 12)]
    op = name + "_id" if w >> 28 & 1 else name
    args.append(_signed(imm & 0xFF, 8) if name == "sb" else _signed(imm, 16))
    return Insn(op, args, big=bool(w >> 27 & 1))


def _single_register(w: int) -> Insn:
    """Threads, fault and tell."""
    name = _pick(M_SINGLE, w >> 39 & 7)
    if name == "fault":
        return Insn(name, [_signed(_imm24(w), 24)])
    if name == "tell":
        return Insn(name, [_ra(w), _signed(_imm24(w), 24)])
    cc, jump = _condition(w, w >> 24 & 15, "step", None)
    args: list[Arg] = [] if name == "stop" else [_ra(w), _signed(_imm8(w), 8)]
    return _finish(name, args, w, cc, jump)


def _load(w: int) -> Insn:
    name, rc = _look(_LOAD_NAMES, w >> 24 & 7), w >> 39 & 31
    if w >> 29 & 1:
        op, dest = name + (".s" if rc & 1 else ".u"), _even(rc & ~1)
    else:
        op, dest = name, _even(rc) if name == "ld" else _general(rc)
    return Insn(op, [dest, _ra(w), _signed(_imm24(w), 24)], big=bool(w >> 27 & 1))


def _group_m(w: int) -> Insn:
    rc = w >> 39 & 31
    if not _has_rb(w):
        return _memory_immediate(w) if rc >= 24 else _load(w)
    if rc >= 24:
        name = STORES[w >> 25 & 3]
        offset = _signed(_store_offset(w) | (w & 0xFFF) << 12, 24)
        number = _rb_number(w)
        source = _even(number) if name == "sd" else _general(number)
        return Insn(name, [_ra(w), offset, source], big=bool(w >> 27 & 1))
    return Insn(_pick(DMA, w & 3), [_ra(w), _rb_name(w), w >> 24 & 0xFF])


def _group_h(w: int) -> Insn:
    name = _pick(UNIT, w >> 20 & 31)
    rc = w >> 39 & 31
    args: list[Arg] = ["zero" if rc == NO_REG else _general(rc), _ra(w)]
    return Insn(name, [*args, _rb_name(w)] if _has_rb(w) else args)


def _decoder(w: int) -> Callable[[int], Insn]:
    major, escape = w >> 44, w >> 42 & 3 == 3
    if major == 7:
        return _group_m
    if major in (8, 9):
        return _group_l
    if major == UNIT_MAJOR:
        return _group_h
    if escape and (major < 6 or major == PAIR_HIGH):
        return _group_e
    if major <= 6:
        return _wide
    raise _NoInsn


def decode(word: int) -> Insn:
    """The canonical instruction of a 48-bit word (no sugar, targets as instruction indices).

    Errors: AsmError for a word that `encode` and `synonym` never make.
    """
    if word == NOP_WORD:
        return Insn("nop")
    if 0 <= word < 1 << 48:
        try:
            insn = _decoder(word)(word)
            if encode(insn) == word or synonym(insn) == word:
                return insn
        except (_NoInsn, AsmError):
            pass
    raise AsmError(f"word {word:#014x} is not an instruction")
