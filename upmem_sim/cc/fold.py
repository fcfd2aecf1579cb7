"""Forward value tracking: constants, copies, offsets and shifts move into the users' operands.

Walks each block, and on into blocks it alone leads to, remembering what each register holds in
terms of other registers. Operands are replaced by simpler ones of equal value; definitions that
lose their last reader are dropped afterwards (dead.py). Nothing is moved, so it is always sound.
"""

from __future__ import annotations

from collections.abc import Callable

from upmem_sim.cc.addresses import fold_load, fold_store
from upmem_sim.cc.flow import CF, ZF, Block, Node, base_format, live_after_each, replace
from upmem_sim.cc.translate import READ_ONLY, SHIFTS, SWAPPED, alu, signed
from upmem_sim.cc.values import Const, State, copy_of, fits, record, sum_of
from upmem_sim.isa import GENERAL, OPERATIONS, UNIT_OF


def fold(blocks: list[Block], address_taken: frozenset[str]) -> None:
    """Rewrite operands in every block; successors and liveness must be known."""
    predecessors: list[list[int]] = [[] for _ in blocks]
    for k, block in enumerate(blocks):
        for s in block.successors:
            predecessors[s].append(k)
    out: list[State | None] = [None] * len(blocks)
    for k, block in enumerate(blocks):
        source = predecessors[k][0] if len(predecessors[k]) == 1 and k else None
        if address_taken.intersection(block.labels):
            source = None
        before = out[source] if source is not None else None
        state = before.copy() if before is not None else State()
        _walk(block, state)
        out[k] = state


def _walk(block: Block, state: State) -> None:
    after = live_after_each(block)
    kept = []
    for node, live in zip(block.nodes, after, strict=True):
        if not node.fixed:
            if not live & node.defs & (ZF | CF):
                _rewrite(state, node)
            else:
                _rewrite_carry(state, node)
            if node.op == "move" and _changes_nothing(state, node):
                continue
        record(state, node)
        kept.append(node)
    block.nodes = kept


def _changes_nothing(state: State, node: Node) -> bool:
    d, a = node.args
    if d == a:
        return True
    held, new = state.get(d), state.const(a)
    return held is not None and held.kind == "const" and new is not None and held.off == new


# ------------------------------------------------------------------------ operands


def _become(node: Node, other: Node) -> None:
    replace(node, other.op, *other.args)


def _rewrite(state: State, node: Node) -> None:
    base, fmt = base_format(node.op)
    if node.op != base and not (node.op in ("move",) or fmt == "compare"):
        return  # .s, .u and other sugar: left as they are
    if fmt == "compare":
        _compare(state, node)
    elif node.target is None and node.cc is None:
        handler = _HANDLERS.get(node.op)
        if handler is not None:
            handler(state, node)
    elif node.target is None and node.op in ("sub", "subc"):
        _set(state, node)


def _rewrite_carry(state: State, node: Node) -> None:
    """Flags of this one are read: only its operands may change, not what it computes."""
    if node.op in ("add", "addc", "sub", "subc") and node.cc is None and node.target is None:
        _, a, b = node.args
        a, b = copy_of(state, a, True), copy_of(state, b, False)
        constant = state.const(b)
        wide = node.op in ("add", "addc")
        if node.args[0] == "zero" and a in READ_ONLY:
            constant = None  # flags alone: the first source is then a general register
        if isinstance(b, str) and constant is not None and (wide or fits(constant, 24)):
            b = constant
        if isinstance(b, str) or isinstance(a, str):
            replace(node, node.op, node.args[0], a, b)


def _compare(state: State, node: Node) -> None:
    cc = node.op[1:]
    a, b = node.args
    a, b = copy_of(state, a, True), copy_of(state, b, False)
    left, right = state.const(a), state.const(b)
    swap = left is not None and right is None and isinstance(b, str) and cc in SWAPPED
    if swap and left is not None and fits(left, 11):
        a, b, cc, right = b, left, SWAPPED[cc], left
    if isinstance(b, str) and right is not None and fits(right, 11):
        b = right
    replace(node, "j" + cc, a, b)


def _set(state: State, node: Node) -> None:
    """sub with a condition and no target: 1 if it holds, else 0."""
    d, a, b = node.args
    assert node.cc is not None
    if node.op == "subc":
        _set_wide(state, node)
        return
    if node.cc == "nz" and b == 0 and isinstance(a, str) and state.width(a) <= 1:
        node.cc = None
        replace(node, "move", d, a)
        _move(state, node)
        return
    cc = {"z": "eq", "nz": "neq"}.get(node.cc, node.cc)
    if cc not in SWAPPED or not isinstance(a, str):
        return
    a, b = copy_of(state, a, True), copy_of(state, b, False)
    left, right = state.const(a), state.const(b)
    if left is not None and right is None and fits(left, 24):
        a, b, cc = b, left, SWAPPED[cc]
    elif isinstance(b, str) and right is not None and fits(right, 24):
        b = right
    if isinstance(a, str):
        node.cc = {"eq": "z", "neq": "nz"}.get(cc, cc)
        replace(node, "sub", d, a, b)


def _set_wide(state: State, node: Node) -> None:
    """The high words of a comparison: their order stays."""
    d, a, b = node.args
    a, b = copy_of(state, a, True), copy_of(state, b, False)
    right = state.const(b)
    if isinstance(b, str) and isinstance(right, int) and fits(right, 11):
        b = right
    replace(node, "subc", d, a, b)


def _add(state: State, node: Node) -> None:
    d, a, b = node.args
    a, b = copy_of(state, a, True), copy_of(state, b, True)
    if state.const(a) is not None or (isinstance(b, str) and b in READ_ONLY):
        a, b = b, a
    constant, other = state.const(b), state.const(a)
    if constant is not None:
        total = sum_of(other, constant) if other is not None else None
        if total is not None:
            replace(node, "move", d, total)
            return
        value = state.get(a)
        if value is not None and value.kind == "add":
            total = sum_of(value.off, constant)
            if total is not None:
                a, constant = value.reg, total
        if isinstance(a, str):
            _become(node, alu("add", str(d), a, constant))
        return
    if isinstance(b, str) and b in READ_ONLY:
        return  # two read-only registers
    if not _shift_add(state, node, d, a, b) and not _shift_add(state, node, d, b, a):
        replace(node, "add", d, a, b)


def _shift_add(state: State, node: Node, d: str | Const, addend: object, shifted: object) -> bool:
    """addend + (x << k) or addend + (x >> k) in one instruction."""
    value = state.get(shifted)
    if value is None or value.kind not in ("lsl", "lsr") or addend not in GENERAL:
        return False
    assert isinstance(addend, str)
    replace(node, value.kind + "_add", d, addend, value.reg, value.off)
    return True


def _sub(state: State, node: Node) -> None:
    d, a, b = node.args
    if not isinstance(b, str):
        if isinstance(b, int) and isinstance(a, str):
            replace(node, "add", d, a, signed(-b))
            _add(state, node)
        return
    b = copy_of(state, b, False)
    if not isinstance(a, str):
        replace(node, "sub", d, a, b)
        return
    a = copy_of(state, a, True)
    left, right = state.const(a), state.const(b)
    if isinstance(right, int) and isinstance(a, str):
        replace(node, "add", d, a, signed(-right))
        _add(state, node)
    elif isinstance(left, int):
        replace(node, "sub", d, left, b)
    else:
        value = state.get(b)
        if value is not None and value.kind == "lsl" and a in GENERAL:
            replace(node, "lsl_sub", d, a, value.reg, value.off)
        else:
            replace(node, "sub", d, a, b)


def _logic(state: State, node: Node) -> None:
    op = node.op
    d, a, b = node.args
    a, b = copy_of(state, a, True), copy_of(state, b, False)
    if state.const(a) is not None and state.const(b) is None:
        a, b = b, a
    constant = state.const(b)
    if isinstance(constant, int) and isinstance(a, str):
        if a not in READ_ONLY or op != "and":
            _become(node, alu(op, str(d), a, constant))
        return
    if op in ("or", "xor") and (_disjoint(state, node, d, a, b) or _disjoint(state, node, d, b, a)):
        return
    if isinstance(a, str) and isinstance(b, str) and b not in READ_ONLY:
        replace(node, op, d, a, b)


def _disjoint(state: State, node: Node, d: str | Const, low: object, high: object) -> bool:
    """low | (x << k) with low < 2^k is a sum."""
    value = state.get(high)
    if value is None or value.kind != "lsl" or not isinstance(value.off, int):
        return False
    return state.width(low) <= value.off and _shift_add(state, node, d, low, high)


def _shift(state: State, node: Node) -> None:
    op = node.op
    d, a, b = node.args
    a, b = copy_of(state, a, True), copy_of(state, b, False)
    amount = state.const(b)
    if not isinstance(amount, int):
        replace(node, op, d, a, b)
        return
    amount &= 31
    left = state.const(a)
    if isinstance(left, int) and op in ("lsl", "lsr", "asr"):
        unsigned = left & 0xFFFFFFFF
        result = {"lsl": unsigned << amount, "lsr": unsigned >> amount, "asr": left >> amount}[op]
        replace(node, "move", d, signed(result))
        return
    a, amount = _joined_shift(state, op, a, amount)
    if isinstance(a, str):
        _become(node, alu(op, str(d), a, amount))


def _joined_shift(
    state: State, op: str, shifted: str | Const, amount: int
) -> tuple[str | Const, int]:
    """(register, amount) of two shifts in the same direction as one."""
    value = state.get(shifted)
    if value is None or value.kind != op or not isinstance(value.off, int):
        return shifted, amount
    total = value.off + amount
    return (value.reg, total) if total < 32 else (shifted, amount)


def _move(state: State, node: Node) -> None:
    d, a = node.args
    a = copy_of(state, a, True)
    constant = state.const(a)
    replace(node, "move", d, constant if constant is not None else a)


def _lsl_add(state: State, node: Node) -> None:
    d, addend, shifted, amount = node.args
    addend, shifted = copy_of(state, addend, False), copy_of(state, shifted, True)
    assert isinstance(amount, int)
    if state.const(addend) == 0 and isinstance(shifted, str):
        replace(node, "lsl", d, shifted, amount)
        _shift(state, node)
        return
    constant = state.const(shifted)
    if isinstance(constant, int) and isinstance(addend, str):
        replace(node, "add", d, addend, signed(constant << amount))
        _add(state, node)
        return
    shifted, amount = _joined_shift(state, "lsl", shifted, amount)
    replace(node, "lsl_add", d, addend, shifted, amount)


def _extend(state: State, node: Node) -> None:
    d, a = node.args
    a = copy_of(state, a, True)
    narrow = {"extub": 8, "extuh": 16, "extsb": 7, "extsh": 15}[node.op]
    replace(node, "move" if state.width(a) <= narrow else node.op, d, a)


def _unary(state: State, node: Node) -> None:
    replace(node, node.op, node.args[0], copy_of(state, node.args[1], True))


def _two_sources(state: State, node: Node) -> None:
    d, a, b = node.args
    replace(node, node.op, d, copy_of(state, a, True), copy_of(state, b, False))


def _units(name: str) -> Callable[[State, Node], None]:
    return _unary if OPERATIONS[name].fmt == "unit_unary" else _two_sources


_HANDLERS: dict[str, Callable[[State, Node], None]] = {
    "add": _add,
    "sub": _sub,
    "move": _move,
    "lsl_add": _lsl_add,
    **dict.fromkeys(("and", "or", "xor"), _logic),
    **dict.fromkeys(SHIFTS, _shift),
    **dict.fromkeys(("extub", "extuh", "extsb", "extsh"), _extend),
    **dict.fromkeys(("clz", "clo", "cls", "cao"), _unary),
    **{name: _units(name) for name in UNIT_OF},
    **dict.fromkeys(("nxor", "nand", "nor", "andn", "orn"), _two_sources),
    **dict.fromkeys(("lw", "lhs", "lhu", "lbs", "lbu", "ld"), fold_load),
    **dict.fromkeys(("sw", "sh", "sb", "sd"), fold_store),
}
