"""RV32 instructions -> DPU instructions, one table row per mnemonic.

Register mapping: RV even/odd pairs become DPU odd/even pairs, so that RV32 `ld`/`sd` are the DPU's
(low word in the odd register), and callee-saved registers stay callee-saved. `lui %hi(x)` gives the
whole address and `%lo(x)` adds nothing to it, which later passes fold into one instruction.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping

from upmem_sim.cc.flow import Node, make
from upmem_sim.cc.rv32 import Line, constant, symbol
from upmem_sim.errors import CompileError
from upmem_sim.isa import Label, Sym

# (even RV register, odd RV register) -> (odd DPU register, even DPU register), in order r1 r0, ...
_RV_PAIRS = (
    ("a0", "a1"), ("a2", "a3"), ("a4", "a5"), ("a6", "a7"), ("t1", "t2"), ("t3", "t4"),
    ("t5", "t6"), ("s0", "s1"), ("s2", "s3"), ("s4", "s5"), ("s6", "s7"),
)  # fmt: skip
REGISTERS: dict[str, str] = {"zero": "zero", "sp": "r22", "ra": "r23", "fp": "r15"}
for _i, (_low, _high) in enumerate(_RV_PAIRS):
    REGISTERS[_low], REGISTERS[_high] = f"r{2 * _i + 1}", f"r{2 * _i}"
READ_ONLY = frozenset(("zero", "one", "lneg", "mneg", "id", "id2", "id4", "id8"))
# Bytes of WRAM reserved for each tasklet at link time, used to swap bytes through memory.
SCRATCH_CELL = "__sw_cache_buffer"

Item = Node | Label
Value = int | Sym
_labels: Iterator[int] = itertools.count()

SWAPPED = {
    "eq": "eq", "neq": "neq", "lts": "gts", "ges": "les", "ltu": "gtu", "geu": "leu",
    "gts": "lts", "les": "ges", "gtu": "ltu", "leu": "geu",
}  # fmt: skip
COMMUTATIVE = frozenset(("add", "and", "or", "xor", "nxor", "nand", "nor"))
SHIFTS = frozenset(("lsl", "lsr", "asr", "rol", "ror"))


def fresh_label() -> str:
    """A label that no C unit and no other call uses."""
    return f".Lu{next(_labels)}"


def register(text: str) -> str:
    """DPU register of an RV32 register name. Errors: CompileError."""
    found = REGISTERS.get(text)
    if found is None:
        raise CompileError(f"assembly: register {text!r} does not exist on a DPU")
    return found


def pair(text: str) -> str:
    """DPU pair dN of an RV32 even register."""
    name = register(text)
    if name == "zero":
        return name
    return f"d{int(name[1:]) & ~1}"


def value(text: str) -> Value:
    """An immediate: number, symbol, `%hi(x)` (the whole address) or `%lo(x)` (what is left: 0)."""
    number = constant(text)
    if number is not None:
        return number
    match = re.fullmatch(r"%(hi|lo)\((.*)\)", text)
    if match is None:
        if "%" in text:
            raise CompileError(f"assembly: {text!r} has no meaning on a DPU")
        return symbol(text)
    sym = symbol(match[2])
    # %hi may be shared by accesses to x and x+4: the whole constant goes with %lo
    return Sym(sym.name) if match[1] == "hi" else sym.addend


def signed(number: int) -> int:
    """The number as a signed 32-bit value."""
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


# ------------------------------------------------------------------------- forms


def alu(op: str, d: str, a: str, b: str | Value) -> Node:
    """A two-source operation with its operands where the DPU takes them.

    Special registers exist as first source only; `zero` as second source is the constant 0.
    """
    if b == "zero":
        b = 0
    if isinstance(b, str) and b in READ_ONLY:
        if op not in COMMUTATIVE:
            raise CompileError(f"assembly: {op} cannot take {b} as second operand")
        a, b = b, a
        if b in READ_ONLY:
            raise CompileError(f"assembly: {op} cannot take two read-only registers")
    if a == "zero" and op == "and":
        return make("move", d, 0)
    if a == "zero" and op == "sub" and b != 0:
        return make("sub", d, 0, b)
    if b == 0 and op in ("add", "or", "xor", "sub", *SHIFTS):
        return make("move", d, a)
    if op == "and" and b in (0xFF, 0xFFFF):
        return make("extub" if b == 0xFF else "extuh", d, a)
    if a == "zero" and op in ("add", "or", "xor"):
        return make("move", d, b)
    return make(op, d, a, b)


def compare(cc: str, a: str, b: str | Value, target: str) -> Node:
    """Compare and jump, special registers moved to the first place."""
    if a == "zero" and isinstance(b, str):
        a, b, cc = b, a, SWAPPED[cc]
    if b == "zero":
        b = 0
    return make("j" + cc, a, b, target=target)


def set_if(cc: str, d: str, a: str, b: str | Value) -> Node:
    """d = 1 if the comparison holds, else 0."""
    if a == "zero" and isinstance(b, str):
        a, b, cc = b, 0, SWAPPED[cc]
    if b == "zero":
        b = 0
    return make("sub", d, a, b, cc={"eq": "z", "neq": "nz"}.get(cc, cc))


def memory(text: str) -> tuple[str, Value]:
    """(base register, offset) of `off(reg)`."""
    match = re.fullmatch(r"(.*)\((\w+)\)", text)
    if match is None:
        raise CompileError(f"assembly: cannot understand the address {text!r}")
    return register(match[2]), value(match[1] or "0")


Handler = Callable[[list[str], str], list[Item]]


def _alu(op: str) -> Handler:
    return lambda o, _: [alu(op, register(o[0]), register(o[1]), register(o[2]))]


def _alu_swapped(op: str) -> Handler:
    """andn, orn: the DPU complements its first operand, RV32 its second."""

    def handle(o: list[str], _: str) -> list[Item]:
        d, a, b = register(o[0]), register(o[1]), register(o[2])
        if a == "zero":
            return [make("xor", d, b, -1)] if op == "orn" else [make("move", d, 0)]
        return [make(op, d, b, a)]

    return handle


def _immediate(op: str) -> Handler:
    return lambda o, _: [alu(op, register(o[0]), register(o[1]), value(o[2]))]


def _unary(op: str) -> Handler:
    return lambda o, _: [make(op, register(o[0]), register(o[1]))]


def _load(op: str) -> Handler:
    def handle(o: list[str], _: str) -> list[Item]:
        return [make(op, pair(o[0]) if op == "ld" else register(o[0]), *memory(o[1]))]

    return handle


def _store(op: str) -> Handler:
    def handle(o: list[str], _: str) -> list[Item]:
        stored: str | int = pair(o[0]) if op == "sd" else register(o[0])
        return [make(op, *memory(o[1]), 0 if stored == "zero" else stored)]

    return handle


def _shift_add(amount: int) -> Handler:
    def handle(o: list[str], _: str) -> list[Item]:
        d, shifted, addend = register(o[0]), register(o[1]), register(o[2])
        if addend == "zero":
            return [make("lsl", d, shifted, amount)]
        return [make("lsl_add", d, addend, shifted, amount)]

    return handle


def _branch(cc: str) -> Handler:
    return lambda o, _: [compare(cc, register(o[0]), register(o[1]), o[2])]


def _branch_zero(cc: str) -> Handler:
    return lambda o, _: [compare(cc, register(o[0]), 0, o[1])]


def _set(cc: str) -> Handler:
    return lambda o, _: [set_if(cc, register(o[0]), register(o[1]), register(o[2]))]


def _set_immediate(cc: str) -> Handler:
    return lambda o, _: [set_if(cc, register(o[0]), register(o[1]), value(o[2]))]


def _set_zero(cc: str) -> Handler:
    return lambda o, _: [set_if(cc, register(o[0]), register(o[1]), 0)]


def _minmax(cc: str) -> Handler:
    """`cc` holds when the first operand is the answer."""

    def handle(o: list[str], _: str) -> list[Item]:
        d, a, b = register(o[0]), register(o[1]), register(o[2])
        if a == b:
            return [make("move", d, a)]
        if d == b or a in READ_ONLY:  # both orders are the same answer
            a, b = b, a
        label = fresh_label()
        out: list[Item] = [] if d == a else [make("move", d, a)]
        other: str | int = 0 if b == "zero" else b
        return [
            *out,
            compare(cc, a, other, label),
            make("move", d, other),
            Label(label),
        ]

    return handle


def _count_trailing(o: list[str], _: str) -> list[Item]:
    """ctz = number of ones in ~x & (x - 1)."""
    d, s = register(o[0]), register(o[1])
    if d != s:
        return [make("add", d, s, -1), make("andn", d, s, d), make("cao", d, d)]
    # one register only: keep x in the tasklet's cell while x - 1 takes its place
    other = "r0" if d != "r0" else "r1"
    return [
        make("sw", "id8", Sym(SCRATCH_CELL), other),
        make("add", other, s, -1),
        make("andn", d, s, other),
        make("lw", other, "id8", Sym(SCRATCH_CELL)),
        make("cao", d, d),
    ]


def _reverse_bytes(o: list[str], _: str) -> list[Item]:
    return [
        make("sw", "id8", Sym(SCRATCH_CELL), register(o[1])),
        make("lw", register(o[0]), "id8", Sym(SCRATCH_CELL), big=True),
    ]


def _or_combine(o: list[str], _: str) -> list[Item]:
    """orc.b: 0xFF in every byte that is not zero. y = bytes equal to 0; (y ^ 0x01010101) * 255."""
    d, s = register(o[0]), register(o[1])
    other = "r0" if d != "r0" and s != "r0" else "r1" if "r1" not in (d, s) else "r2"
    return [
        make("sw", "id8", Sym(SCRATCH_CELL), other),
        make("move", other, 0),
        make("cmpb4", d, s, other),
        make("lw", other, "id8", Sym(SCRATCH_CELL)),
        make("xor", d, d, 0x01010101),
        make("lsl_sub", d, d, d, 8),
        make("sub", d, 0, d),
    ]


def _load_constant(o: list[str], _: str) -> list[Item]:
    number = value(o[1])
    return [make("move", register(o[0]), signed(number) if isinstance(number, int) else number)]


def _upper(o: list[str], _: str) -> list[Item]:
    number = value(o[1])
    whole = signed(number << 12) if isinstance(number, int) else number
    return [make("move", register(o[0]), whole)]


def _jump_register(o: list[str], _: str) -> list[Item]:
    return [make("jump", register(o[0]))]


def _call_register(o: list[str], _: str) -> list[Item]:
    link, target = ("ra", o[0]) if len(o) == 1 else (o[0], o[1])
    if "(" in target:
        base, offset = memory(target)
        if offset != 0:
            raise CompileError(f"assembly: jalr with offset {offset}")
    else:
        base = register(target)
    if link in ("zero", "x0"):
        return [make("jump", base)]
    return [make("call", register(link), base)]


def _local_jump(target: str) -> Node:
    return make("jump", target=target)


_BRANCHES = {
    "beq": "eq", "bne": "neq", "blt": "lts", "bge": "ges", "bltu": "ltu", "bgeu": "geu",
    "bgt": "gts", "ble": "les", "bgtu": "gtu", "bleu": "leu",
}  # fmt: skip
_ZERO_BRANCHES = {"beqz": "eq", "bnez": "neq", "bltz": "lts", "bgez": "ges", "blez": "les",
                  "bgtz": "gts"}  # fmt: skip
_ALU = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "xnor": "nxor",
        "sll": "lsl", "srl": "lsr", "sra": "asr", "rol": "rol", "ror": "ror"}  # fmt: skip
_IMMEDIATES = {"addi": "add", "andi": "and", "ori": "or", "xori": "xor", "slli": "lsl",
               "srli": "lsr", "srai": "asr", "rori": "ror"}  # fmt: skip
_UNARY = {"mv": "move", "sext.b": "extsb", "sext.h": "extsh", "zext.h": "extuh",
          "zext.b": "extub", "clz": "clz", "cpop": "cao"}  # fmt: skip
_LOADS = {"lw": "lw", "lb": "lbs", "lbu": "lbu", "lh": "lhs", "lhu": "lhu", "ld": "ld"}

TABLE: dict[str, Handler] = {
    **{rv: _alu(op) for rv, op in _ALU.items()},
    **{rv: _immediate(op) for rv, op in _IMMEDIATES.items()},
    **{rv: _unary(op) for rv, op in _UNARY.items()},
    **{rv: _load(op) for rv, op in _LOADS.items()},
    **{op: _store(op) for op in ("sb", "sh", "sw", "sd")},
    **{rv: _branch(cc) for rv, cc in _BRANCHES.items()},
    **{rv: _branch_zero(cc) for rv, cc in _ZERO_BRANCHES.items()},
    **{f"sh{n}add": _shift_add(n) for n in (1, 2, 3)},
    "andn": _alu_swapped("andn"),
    "orn": _alu_swapped("orn"),
    "slt": _set("lts"),
    "sltu": _set("ltu"),
    "slti": _set_immediate("lts"),
    "sltiu": _set_immediate("ltu"),
    "seqz": _set_zero("eq"),
    "snez": _set_zero("neq"),
    "sltz": _set_zero("lts"),
    "sgtz": _set_zero("gts"),
    "sgt": _set("gts"),
    "sgtu": _set("gtu"),
    "neg": lambda o, _: [make("sub", register(o[0]), 0, register(o[1]))],
    "not": lambda o, _: [make("xor", register(o[0]), register(o[1]), -1)],
    "min": _minmax("lts"),
    "max": _minmax("gts"),
    "minu": _minmax("ltu"),
    "maxu": _minmax("gtu"),
    "ctz": _count_trailing,
    "rev8": _reverse_bytes,
    "orc.b": _or_combine,
    "li": _load_constant,
    "la": _load_constant,
    "lla": _load_constant,
    "lui": _upper,
    "j": lambda o, _: [_local_jump(o[0])],
    "tail": lambda o, _: [_local_jump(o[0])],
    "call": lambda o, _: [make("call", "r23", target=o[0])],
    "ret": lambda o, _: [make("jump", "r23")],
    "jr": _jump_register,
    "jalr": _call_register,
    "nop": lambda o, _: [],
    "fence": lambda o, _: [],
    "unimp": lambda o, _: [make("fault", 4)],
    "ebreak": lambda o, _: [make("fault", 0)],
}


def translate(line: Line, table: Mapping[str, Handler] = TABLE) -> list[Item]:
    """DPU instructions of one RV32 instruction, by the table of mnemonics.

    Errors: CompileError for an instruction that the DPU cannot express.
    """
    handler = table.get(line.op)
    text = f"{line.op} {', '.join(line.operands)}"
    if handler is None:
        raise CompileError(f"no DPU form of the RV32 instruction {text!r}")
    try:
        items = handler(line.operands, text)
    except IndexError:
        raise CompileError(f"RV32 instruction {text!r}: operand missing") from None
    if line.place is not None:
        for item in items:
            if isinstance(item, Node):
                item.line = line.place
    return items
