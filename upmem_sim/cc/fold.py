"""Forward value tracking: constants, copies, offsets and shifts move into the users' operands.

Walks each block, and on into blocks it alone leads to, remembering what each register holds in
terms of other registers. Operands are replaced by simpler ones of equal value; definitions that
lose their last reader are dropped afterwards (dead.py). Nothing is moved, so it is always sound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from upmem_sim.cc.flow import CF, ZF, Block, Node, base_format, live_after_each, replace
from upmem_sim.cc.translate import READ_ONLY, SHIFTS, SWAPPED, alu, signed
from upmem_sim.isa import GENERAL, Sym

Const = int | Sym


@dataclass(frozen=True, slots=True)
class Value:
    """What a register holds: kind "const" (off), "add" (reg + off), "lsl"/"lsr" (reg by off).

    version   of `reg` when the value was made: stale when the register has been written since
    """

    kind: str
    off: Const
    reg: str = ""
    version: int = 0


@dataclass(slots=True)
class State:
    """Known values at a point of the program."""

    values: dict[str, Value] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    bits: dict[str, int] = field(default_factory=dict)  # upper bound of significant bits

    def copy(self) -> State:
        return State(dict(self.values), dict(self.versions), dict(self.bits))

    def get(self, name: object) -> Value | None:
        """Valid value of a register, None if unknown. `zero` is the constant 0."""
        if not isinstance(name, str):
            return None
        if name == "zero":
            return _ZERO
        value = self.values.get(name)
        if value is None or (value.reg and self.versions.get(value.reg, 0) != value.version):
            return None
        return value

    def const(self, operand: object) -> Const | None:
        if isinstance(operand, int | Sym):
            return operand
        value = self.get(operand)
        return value.off if value is not None and value.kind == "const" else None

    def width(self, name: object) -> int:
        return self.bits.get(name, 32) if isinstance(name, str) else 32

    def version(self, name: str) -> int:
        return self.versions.get(name, 0)


_ZERO = Value("const", 0)
_counter = iter(range(1, 1 << 62))


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
        _record(state, node)
        kept.append(node)
    block.nodes = kept


def _changes_nothing(state: State, node: Node) -> bool:
    d, a = node.args
    if d == a:
        return True
    held, new = state.get(d), state.const(a)
    return held is not None and held.kind == "const" and new is not None and held.off == new


# ------------------------------------------------------------------------ operands


def _copy_of(state: State, operand: str | Const, special: bool) -> str | Const:
    """The register this one is a copy of, if it may stand here."""
    value = state.get(operand)
    if value is None or value.kind != "add" or value.off != 0:
        return operand
    return value.reg if special or value.reg not in READ_ONLY else operand


def _fits(number: Const, bits: int) -> bool:
    return isinstance(number, int) and -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def _sum(a: Const, b: Const) -> Const | None:
    """a + b if it is a constant the linker can fill in."""
    if isinstance(a, int) and isinstance(b, int):
        return signed(a + b)
    if isinstance(a, Sym) and isinstance(b, int):
        return Sym(a.name, a.addend + b)
    if isinstance(a, int) and isinstance(b, Sym):
        return Sym(b.name, b.addend + a)
    return None


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
    elif node.target is None and node.op == "sub":
        _set(state, node)


def _rewrite_carry(state: State, node: Node) -> None:
    """Flags of this one are read: only its operands may change, not what it computes."""
    if node.op in ("add", "addc", "sub", "subc") and node.cc is None and node.target is None:
        _, a, b = node.args
        a, b = _copy_of(state, a, True), _copy_of(state, b, False)
        constant = state.const(b)
        wide = node.op in ("add", "addc")
        if isinstance(b, str) and constant is not None and (wide or _fits(constant, 24)):
            b = constant
        if isinstance(b, str) or isinstance(a, str):
            replace(node, node.op, node.args[0], a, b)


def _compare(state: State, node: Node) -> None:
    cc = node.op[1:]
    a, b = node.args
    a, b = _copy_of(state, a, True), _copy_of(state, b, False)
    left, right = state.const(a), state.const(b)
    swap = left is not None and right is None and isinstance(b, str) and cc in SWAPPED
    if swap and left is not None and _fits(left, 11):
        a, b, cc, right = b, left, SWAPPED[cc], left
    if isinstance(b, str) and right is not None and _fits(right, 11):
        b = right
    replace(node, "j" + cc, a, b)


def _set(state: State, node: Node) -> None:
    """sub with a condition and no target: 1 if it holds, else 0."""
    d, a, b = node.args
    assert node.cc is not None
    cc = {"z": "eq", "nz": "neq"}.get(node.cc, node.cc)
    if cc not in SWAPPED or not isinstance(a, str):
        return
    a, b = _copy_of(state, a, True), _copy_of(state, b, False)
    left, right = state.const(a), state.const(b)
    if left is not None and right is None and _fits(left, 24):
        a, b, cc = b, left, SWAPPED[cc]
    elif isinstance(b, str) and right is not None and _fits(right, 24):
        b = right
    if isinstance(a, str):
        node.cc = {"eq": "z", "neq": "nz"}.get(cc, cc)
        replace(node, "sub", d, a, b)


def _add(state: State, node: Node) -> None:
    d, a, b = node.args
    a, b = _copy_of(state, a, True), _copy_of(state, b, True)
    if state.const(a) is not None or (isinstance(b, str) and b in READ_ONLY):
        a, b = b, a
    constant, other = state.const(b), state.const(a)
    if constant is not None:
        total = _sum(other, constant) if other is not None else None
        if total is not None:
            replace(node, "move", d, total)
            return
        value = state.get(a)
        if value is not None and value.kind == "add":
            total = _sum(value.off, constant)
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
    b = _copy_of(state, b, False)
    if not isinstance(a, str):
        replace(node, "sub", d, a, b)
        return
    a = _copy_of(state, a, True)
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
    a, b = _copy_of(state, a, True), _copy_of(state, b, False)
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
    a, b = _copy_of(state, a, True), _copy_of(state, b, False)
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
    a = _copy_of(state, a, True)
    constant = state.const(a)
    replace(node, "move", d, constant if constant is not None else a)


def _lsl_add(state: State, node: Node) -> None:
    d, addend, shifted, amount = node.args
    addend, shifted = _copy_of(state, addend, False), _copy_of(state, shifted, True)
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
    a = _copy_of(state, a, True)
    narrow = {"extub": 8, "extuh": 16, "extsb": 7, "extsh": 15}[node.op]
    replace(node, "move" if state.width(a) <= narrow else node.op, d, a)


def _unary(state: State, node: Node) -> None:
    replace(node, node.op, node.args[0], _copy_of(state, node.args[1], True))


def _two_sources(state: State, node: Node) -> None:
    d, a, b = node.args
    replace(node, node.op, d, _copy_of(state, a, True), _copy_of(state, b, False))


# ------------------------------------------------------------------------- memory


def _address(state: State, base: str | Const, off: Const) -> tuple[str | Const, Const]:
    """(base, offset) of the same address with additions moved into the offset."""
    value = state.get(base)
    if value is None or value.kind not in ("add", "const"):
        return base, off
    total = _sum(value.off, off)
    if total is None or (isinstance(total, int) and not _fits(total, 24)):
        return base, off
    return (value.reg or "zero"), total


def _load(state: State, node: Node) -> None:
    d, base, off = node.args
    assert not isinstance(off, str)
    base, off = _address(state, base, off)
    replace(node, node.op, d, base, off)


_IMMEDIATE_BITS = {"sb": 8, "sh": 16, "sw": 16}


def _store(state: State, node: Node) -> None:
    base, off, stored = node.args
    assert not isinstance(off, str)
    new_base, new_off = _address(state, base, off)
    stored = _copy_of(state, stored, False)
    constant = _stored_constant(state, node.op, stored)
    if constant is not None and _fits(new_off, 12):
        replace(node, node.op, new_base, new_off, constant)
    elif constant is not None and _fits(off, 12):
        replace(node, node.op, base, off, constant)
    elif isinstance(stored, str):
        replace(node, node.op, new_base, new_off, stored)


def _stored_constant(state: State, op: str, stored: str | Const) -> int | None:
    if op == "sd":
        if isinstance(stored, int):
            return stored
        return _pair_constant(state, str(stored))
    constant = state.const(stored)
    if not isinstance(constant, int):
        return None
    bits = 8 * {"sb": 1, "sh": 2, "sw": 4}[op]
    constant &= (1 << bits) - 1
    constant -= (constant >> (bits - 1)) << bits
    return constant if _fits(constant, _IMMEDIATE_BITS[op]) else None


def _pair_constant(state: State, name: str) -> int | None:
    """Value of a pair that is a sign-extended 16-bit constant."""
    number = int(name[1:])
    high, low = state.const(f"r{number}"), state.const(f"r{number + 1}")
    if isinstance(low, int) and isinstance(high, int) and _fits(low, 16):
        return low if high == (-1 if low < 0 else 0) else None
    return None


_HANDLERS: dict[str, Callable[[State, Node], None]] = {
    "add": _add,
    "sub": _sub,
    "move": _move,
    "lsl_add": _lsl_add,
    **dict.fromkeys(("and", "or", "xor"), _logic),
    **dict.fromkeys(SHIFTS, _shift),
    **dict.fromkeys(("extub", "extuh", "extsb", "extsh"), _extend),
    **dict.fromkeys(("clz", "clo", "cls", "cao"), _unary),
    **dict.fromkeys(("nxor", "nand", "nor", "andn", "orn"), _two_sources),
    **dict.fromkeys(("lw", "lhs", "lhu", "lbs", "lbu", "ld"), _load),
    **dict.fromkeys(("sw", "sh", "sb", "sd"), _store),
}


# --------------------------------------------------------------------- bookkeeping


def _record(state: State, node: Node) -> None:
    """Forget what `node` overwrites, remember what it computes."""
    value, bits, shift = None, 32, None
    if not node.fixed and node.target is None:
        value, bits = _result(state, node), _result_bits(state, node)
        if node.op == "add" and node.args[0] == node.args[1] and isinstance(node.args[2], int):
            shift = (str(node.args[0]), state.version(str(node.args[0])), node.args[2])
    defs = node.defs
    for name, number in GENERAL.items():
        if defs >> number & 1:
            state.versions[name] = next(_counter)
            state.values.pop(name, None)
            state.bits.pop(name, None)
    if shift is not None:
        _rebase(state, *shift)
    if node.args and isinstance(node.args[0], str) and node.args[0] in GENERAL:
        name = node.args[0]
        if value is not None and value.reg != name:
            state.values[name] = value
        if bits < 32:
            state.bits[name] = bits


def _rebase(state: State, name: str, old: int, step: int) -> None:
    """After `add r, r, step`, values relative to the old r are relative to the new one."""
    new = state.version(name)
    for other, value in list(state.values.items()):
        if value.reg == name and value.version == old and value.kind == "add":
            total = _sum(value.off, -step)
            if total is not None:
                state.values[other] = Value("add", total, name, new)


def _result(state: State, node: Node) -> Value | None:
    if node.cc is not None or len(node.args) < 2:
        return None
    a = node.args[1]
    if node.op == "move":
        if not isinstance(a, str):
            return Value("const", a)
        return _ZERO if a == "zero" else Value("add", 0, a, state.version(a))
    if len(node.args) == 3 and isinstance(a, str) and not isinstance(node.args[2], str):
        if node.op == "add":
            return Value("add", node.args[2], a, state.version(a))
        if node.op in ("lsl", "lsr") and a != "zero":
            return Value(node.op, node.args[2], a, state.version(a))
    return None


_LOAD_BITS = {"lbu": 8, "lhu": 16, "extub": 8, "extuh": 16, "clz": 6, "cao": 6, "clo": 6, "cls": 5}


def _result_bits(state: State, node: Node) -> int:
    """Upper bound of the significant bits of the (unsigned) result."""
    if node.cc is not None:
        return 1 if base_format(node.op)[1] == "alu" else 32
    op, args = node.op, node.args
    if op in _LOAD_BITS:
        return _LOAD_BITS[op]
    if op == "move":
        if isinstance(args[1], int):
            return args[1].bit_length() if args[1] >= 0 else 32
        return state.width(args[1])
    if len(args) != 3 or not isinstance(args[1], str):
        return 32
    left, b = state.width(args[1]), args[2]
    if op == "and":
        right = state.width(b)
        if isinstance(b, int) and b >= 0:
            right = b.bit_length()
        return min(left, right)
    if op in ("or", "xor") and isinstance(b, str):
        return max(left, state.width(b))
    if op == "lsr" and isinstance(b, int):
        return max(0, left - b)
    if op == "lsl" and isinstance(b, int):
        return min(32, left + b)
    return 32
