"""What registers hold, in terms of other registers: the knowledge behind fold.py."""

from __future__ import annotations

from dataclasses import dataclass, field

from upmem_sim.cc.flow import Node, base_format
from upmem_sim.cc.translate import READ_ONLY, signed
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


def copy_of(state: State, operand: str | Const, special: bool) -> str | Const:
    """The register this one is a copy of, if it may stand here."""
    value = state.get(operand)
    if value is None or value.kind != "add" or value.off != 0:
        return operand
    return value.reg if special or value.reg not in READ_ONLY else operand


def fits(number: Const, bits: int) -> bool:
    """Whether a signed field of that many bits holds the number (a symbol never counts)."""
    return isinstance(number, int) and -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def sum_of(a: Const, b: Const) -> Const | None:
    """a + b if it is a constant the linker can fill in."""
    if isinstance(a, int) and isinstance(b, int):
        return signed(a + b)
    if isinstance(a, Sym) and isinstance(b, int):
        return Sym(a.name, a.addend + b)
    if isinstance(a, int) and isinstance(b, Sym):
        return Sym(b.name, b.addend + a)
    return None


def record(state: State, node: Node) -> None:
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
            total = sum_of(value.off, -step)
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
