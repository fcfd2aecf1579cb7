"""Instructions as written -> engine rows.

In: `Insn` with sugar, symbols and "."; out: tuples in the order of `ROW`. Everything that depends
only on operation, registers and condition is planned once and cached; per instruction the numbers
are resolved, checked against their widths and put in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from upmem_sim.errors import AsmError
from upmem_sim.isa import (
    BIG,
    CONDITION_INDEX,
    GENERAL,
    JUMP,
    JUMP_CLASSES,
    NO_REG,
    OP_INDEX,
    OPERATIONS,
    PAIRS,
    RIR,
    SET,
    SET_CLASSES,
    SIGNED,
    SINGLES,
    UNSIGNED,
    USE_IMM,
    Insn,
    Operation,
    Sym,
    split_mnemonic,
)
from upmem_sim.program import MRAM_BASE
from upmem_sim.sugar import canonical, need

Resolve = Callable[[Sym], int]
_REGISTER_KINDS = {"any": SINGLES, "general": GENERAL, "pair": PAIRS}
_IMM, _OFF, _TARGET, _IGNORED = 0, 1, 2, 3
_U32 = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where one numeric operand of an instruction goes in the row, and its limits."""

    place: int  # _IMM, _OFF, _TARGET or _IGNORED
    bits: int
    low: int
    high: int
    wrap: bool = False  # the field's bits count, not the value: keep them sign-extended


@dataclass(slots=True)
class _Plan:
    """A row with holes: everything but the numbers of one (operation, registers, condition)."""

    op: int
    cc: int = 0
    rd: int = NO_REG
    ra: int = NO_REG
    rb: int = USE_IMM
    flags: int = 0
    imm: int = 0
    slots: tuple[_Slot, ...] = ()


def _signed(place: int, bits: int) -> _Slot:
    return _Slot(place, bits, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _either(place: int, bits: int) -> _Slot:
    """Signed or unsigned spelling of the same bits."""
    return _Slot(place, bits, -(1 << (bits - 1)), (1 << bits) - 1, wrap=True)


def _unsigned(place: int, bits: int) -> _Slot:
    return _Slot(place, bits, 0, (1 << bits) - 1)


def register(insn: Insn, position: int, kind: str) -> int:
    """Number of the register at `position`; AsmError unless it is one of `kind`."""
    arg = insn.args[position]
    number = _REGISTER_KINDS[kind].get(arg) if isinstance(arg, str) else None
    if number is None:
        names = {"any": "a register", "general": "r0-r23", "pair": "an even pair d0-d22"}[kind]
        raise AsmError(f"{insn.op}: operand {position + 1} must be {names}, not {arg}")
    return number


def _destination(insn: Insn, pair: bool) -> int:
    if pair:
        return register(insn, 0, "pair")
    return NO_REG if insn.args[0] == "zero" else register(insn, 0, "general")


def alu_immediate(row: Operation, insn: Insn, ra: int, reverse: bool) -> _Slot:
    """Width of the immediate of an `alu` form (the tables' rri, rric, rrici, zri, ... rows)."""
    pair = insn.op[-2] == "."
    logic = row.zero == 12
    if insn.args[0] == "zero" and not pair:
        if insn.target is not None:
            return _signed(_IMM, row.zero)
        if insn.cc is None and ra < NO_REG and (row.imm == 32 or row.jump == "sub"):
            return _either(_IMM, 32)
        return _signed(_IMM, 28 if logic else 27)
    if insn.target is not None:
        return _signed(_IMM, 8)
    if insn.cc is not None:
        return _signed(_IMM, 24)
    if reverse and not pair:
        return _either(_IMM, 32)
    if not pair:
        wide = row.imm == 32 and not (row.name == "and" and ra >= NO_REG)
    elif row.name == "and":
        wide = ra >= NO_REG
    else:
        wide = row.name in ("add", "or") and ra < NO_REG
    return _either(_IMM, 32) if wide else _signed(_IMM, 24)


def _plan_alu(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 3)
    plan.rd = _destination(insn, pair)
    first, second = insn.args[1], insn.args[2]
    if not isinstance(first, str):
        if row.name not in ("sub", "subc"):
            raise AsmError(f"{insn.op}: operand 2 must be a register, not {first}")
        plan.ra, plan.flags = register(insn, 2, "any"), plan.flags | RIR
        if insn.cc is not None and insn.target is None and insn.cc not in SET_CLASSES["zero"]:
            raise AsmError(f"{insn.op}: no set form of immediate - register with {insn.cc}")
        plan.slots = (alu_immediate(row, insn, plan.ra, True),)
        return
    plan.ra = register(insn, 1, "any")
    if isinstance(second, str):
        plan.rb = register(insn, 2, "general")
        return
    if not row.imm:
        raise AsmError(f"{insn.op}: operand 3 must be r0-r23, not {second}")
    plan.slots = (alu_immediate(row, insn, plan.ra, False),)


def _plan_shift(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 3)
    plan.rd, plan.ra = _destination(insn, pair), register(insn, 1, "any")
    if isinstance(insn.args[2], str):
        plan.rb = register(insn, 2, "general")
    else:
        plan.slots = (_unsigned(_IMM, 5),)


def _plan_unary(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 2)
    plan.rd, plan.ra = _destination(insn, pair), register(insn, 1, "any")


def _plan_shadd(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 4)
    plan.rd, plan.rb = _destination(insn, pair), register(insn, 1, "general")
    plan.ra, plan.slots = register(insn, 2, "any"), (_unsigned(_OFF, 5),)


def _plan_step(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 4)
    plan.rd, plan.ra = register(insn, 0, "pair"), register(insn, 1, "any")
    plan.rb, plan.slots = register(insn, 2, "pair"), (_unsigned(_OFF, 5),)


def _plan_movd(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 2)
    plan.rd, plan.rb = register(insn, 0, "pair"), register(insn, 1, "pair")


def _plan_load(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 3)
    plan.rd = register(insn, 0, "pair" if pair or row.name == "ld" else "general")
    plan.ra, plan.slots = register(insn, 1, "any"), (_signed(_OFF, 24),)


def _stored(row: Operation) -> _Slot:
    return _either(_IMM, row.imm) if row.name[:2] in ("sb", "sh") else _signed(_IMM, row.imm)


def _plan_store(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 3)
    plan.ra = register(insn, 0, "any")
    if isinstance(insn.args[2], str):
        plan.rb = register(insn, 2, "pair" if row.name == "sd" else "general")
        plan.slots = (_signed(_OFF, 24),)
    else:
        plan.slots = (_signed(_OFF, 12), _stored(row))


def _plan_store_id(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 2, 3)
    plan.ra = register(insn, 0, "any")
    plan.slots = (_signed(_OFF, 12), _stored(row))[: len(insn.args) - 1]


def _plan_dma(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 3)
    plan.ra, plan.rb = register(insn, 0, "any"), register(insn, 1, "general")
    plan.slots = (_unsigned(_OFF, 8),)


def _plan_acquire(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 2)
    if insn.target is None:
        raise AsmError(f"{insn.op}: needs a condition and a target")
    plan.ra, plan.slots = register(insn, 0, "any"), (_either(_IMM, 16),)


def _plan_thread(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 2)
    plan.ra, plan.slots = register(insn, 0, "any"), (_signed(_IMM, 8),)


def _plan_time(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 1)
    plan.rd = _destination(insn, pair)


def _plan_time_cfg(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    need(insn, 2)
    plan.rd, plan.rb = _destination(insn, pair), register(insn, 1, "general")


def _plan_call(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    if not insn.args or len(insn.args) > 3 or (len(insn.args) == 3 and insn.target is not None):
        raise AsmError(f"{insn.op}: takes a destination, a base and an offset")
    plan.rd = _destination(insn, False)
    rest = insn.args[1:]
    if rest and isinstance(rest[0], str):
        plan.ra, rest = register(insn, 1, "any"), rest[1:]
    bits = 28 if plan.rd == NO_REG else 24
    if not rest:
        if insn.target is None and len(insn.args) == 1:
            raise AsmError(f"{insn.op}: needs a target")
    elif isinstance(rest[0], str):
        plan.rb = register(insn, len(insn.args) - 1, "general")
    elif len(rest) > 1:
        raise AsmError(f"{insn.op}: takes a destination, a base and an offset")
    else:
        plan.slots = (_signed(_IMM, bits),)


def _plan_number(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    if row.fmt == "tell":
        need(insn, 2)
        plan.ra, plan.slots = register(insn, 0, "any"), (_signed(_IMM, 24),)
    elif row.fmt == "fault":
        need(insn, 1)
        plan.slots = (_either(_IMM, 24),)
    else:
        need(insn, 0)


_PLANNERS: dict[str, Callable[[Operation, Insn, _Plan, bool], None]] = {
    "alu": _plan_alu, "shift": _plan_shift, "unary": _plan_unary, "shadd": _plan_shadd,
    "step": _plan_step, "movd": _plan_movd, "load": _plan_load, "store": _plan_store,
    "store_id": _plan_store_id, "dma": _plan_dma, "acquire": _plan_acquire,
    "thread": _plan_thread, "time": _plan_time, "time_cfg": _plan_time_cfg, "call": _plan_call,
    "unit": _plan_alu, "unit_unary": _plan_unary,
    "stop": _plan_number, "fault": _plan_number, "tell": _plan_number, "nop": _plan_number,
}  # fmt: skip


def _plan_condition(row: Operation, insn: Insn, plan: _Plan) -> None:
    """Check condition and target against the classes of the operation; set flags and slot."""
    if insn.target is None and insn.cc is None:
        return
    if row.fmt == "call":
        if insn.cc is not None:
            raise AsmError(f"{insn.op}: takes no condition, {insn.cc} given")
        plan.slots = (_signed(_IMM, 28 if plan.rd == NO_REG else 24),)
        return
    if insn.cc is None:
        raise AsmError(f"{insn.op}: a jump target needs a condition")
    if insn.target is None:
        allowed = SET_CLASSES[row.set] if row.set else ()
        plan.flags |= SET
    else:
        kind = "imm_shift" if row.fmt == "shift" and plan.rb == USE_IMM else row.jump
        allowed = JUMP_CLASSES[kind] if kind else ()
        plan.flags |= JUMP
        plan.slots = (*plan.slots, _unsigned(_TARGET, 16))
    if insn.cc not in allowed:
        form = "set" if insn.target is None else "jump"
        raise AsmError(
            f"{insn.op}: condition {insn.cc} in a {form} form, allowed: "
            f"{' '.join(allowed) or 'none'}"
        )
    plan.cc = CONDITION_INDEX[insn.cc]


def _plan(written: Insn) -> _Plan:
    insn = canonical(written)
    try:
        return _plan_canonical(written, insn)
    except AsmError as error:
        if insn.op == written.op:
            raise
        operands = ", ".join(map(str, insn.args))
        raise AsmError(f"{written.op} (that is {insn.op} {operands}): {error}") from None


def _plan_canonical(written: Insn, insn: Insn) -> _Plan:
    base, suffix = split_mnemonic(insn.op)
    row = OPERATIONS.get(base)
    if row is None or (suffix and not row.pair):
        raise AsmError(f"unknown instruction {insn.op!r}")
    plan = _Plan(OP_INDEX[base])
    if suffix:
        plan.flags = SIGNED if suffix == ".s" else UNSIGNED
    if insn.big:
        if row.fmt not in ("load", "store", "store_id"):
            raise AsmError(f"{insn.op}: !big is for loads and stores")
        plan.flags |= BIG
    _PLANNERS[row.fmt](row, insn, plan, bool(suffix))
    _plan_condition(row, insn, plan)
    _plan_constants(written, insn, plan)
    return plan


def _plan_constants(written: Insn, insn: Insn, plan: _Plan) -> None:
    """The number that sugar supplies goes into the plan; slots stay for the written ones."""
    constants = [a for a in insn.args if not isinstance(a, str)]
    given = len(constants) + (insn.target is not None)
    if given != len(plan.slots):
        raise AsmError(f"{insn.op}: {len(plan.slots)} operands must be numbers, {given} are")
    if len(constants) > sum(not isinstance(a, str) for a in written.args):
        plan.imm = int(constants[0])  # type: ignore[arg-type]
        plan.slots = plan.slots[1:]
    if insn.target is None and written.target is not None:
        plan.slots = (*plan.slots, _unsigned(_IGNORED, 16))  # never jumped to: only checked


_PLANS: dict[tuple[object, ...], _Plan] = {}
_PLANS_LIMIT = 100_000
RowTuple = tuple[int, int, int, int, int, int, int, int, int]


def to_row(insn: Insn, resolve: Resolve, pc: int = 0) -> RowTuple:
    """The engine row of an instruction, as a tuple in the order of `ROW`.

    resolve  Sym -> number (instruction index for code, address for data)
    pc       index of this instruction, what "." stands for
    Errors: AsmError for operands, widths or conditions that the instruction does not have.
    """
    args, target = insn.args, insn.target
    key = (insn.op, insn.cc, target is None, insn.big, *[a if type(a) is str else 0 for a in args])
    plan = _PLANS.get(key)
    if plan is None:
        plan = _plan(insn)
        if len(_PLANS) >= _PLANS_LIMIT:
            _PLANS.clear()
        _PLANS[key] = plan
    if not plan.slots:
        return (plan.op, plan.cc, plan.rd, plan.ra, plan.rb, plan.flags, 0, plan.imm, 0)
    values: list[Any] = [a for a in args if type(a) is not str]
    if target is not None:
        values.append(Sym(target) if type(target) is str else target)
    out = [plan.imm, 0, 0, 0]
    for slot, value in zip(plan.slots, values, strict=True):
        if type(value) is Sym:
            value = _resolve(value, resolve, pc, insn)
        if not slot.low <= value <= slot.high:
            raise AsmError(_range_message(insn, slot, value))
        if slot.wrap and value >> (slot.bits - 1) > 0:
            value -= 1 << slot.bits
        out[slot.place] = value
    if plan.op == _CALL and plan.ra == NO_REG and plan.rb == USE_IMM:
        out[_TARGET] = out[_IMM] & 0xFFFF
    imm, off, jump, _ = out
    return (plan.op, plan.cc, plan.rd, plan.ra, plan.rb, plan.flags, jump, imm, off)


_CALL = OP_INDEX["call"]


def _resolve(symbol: Sym, resolve: Resolve, pc: int, insn: Insn) -> int:
    if symbol.name == ".":
        return pc + symbol.addend
    value = resolve(symbol)
    if insn.op in ("acquire", "release"):
        value &= 0xFFFF  # the bit index; the address of an atomic bit has the region's base
    return value


def _range_message(insn: Insn, slot: _Slot, value: object) -> str:
    fmt = OPERATIONS[split_mnemonic(canonical(insn).op)[0]].fmt
    what = ("immediate", "offset", "target", "target")[slot.place]
    if fmt in ("shift", "shadd", "step", "dma") and slot.place in (_IMM, _OFF):
        what = "length field" if fmt == "dma" else "shift"
    if isinstance(value, int) and what == "offset" and value >> 26 == MRAM_BASE >> 26:
        return f"{insn.op} at {value:#x}: an MRAM address used as WRAM, use an __mram_ptr pointer"
    return f"{insn.op}: {what} {value}, limit {slot.low} to {slot.high} ({slot.bits} bits)"
