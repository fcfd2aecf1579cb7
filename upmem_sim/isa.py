"""The instruction set as tables: operations, operand formats, conditions.

In: instructions as written in assembly (`Insn`). Out: engine rows (`ROW`), one per instruction.
The three tables are independent: an operation names its format and its condition classes, a format
says which operands it takes and how wide they are, a condition class says which conditions exist.
Widths and classes follow the instruction tables of UPMEM's SDK (upmem/llvm-project,
llvm/lib/Target/DPU/DPUInstrFormats.td; upmem/qemu, target/dpu/conditions.h).

Row of each format (`ra` 24 = zero, `rd` 24 = no destination, `rb` 255 = use `imm`):

    alu, shift   rd, ra, rb | imm           `sub rd, imm, ra` has flag RIR
    unary        rd, ra
    shadd        rd, rb (addend), ra (shifted), off (shift)
    step         rd (pair), ra, rb (pair), off (shift)
    movd         rd (pair), rb (pair)
    load         rd, ra, off                store   ra, off, rb | imm     store_id   ra, off, imm
    dma          ra (WRAM side), rb (MRAM side), off (n)
    acquire, thread, tell   ra, imm         fault   imm                   stop   nothing
    time         rd                         time_cfg   rd, rb
    call         rd, ra, rb | imm           pc = (ra + (rb or imm)) mod 4096; target = imm
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from upmem_sim.errors import AsmError

try:
    from upmem_sim._core import CONDITIONS as _CONDITIONS
    from upmem_sim._core import OPS as _OPS
except ImportError:  # until the extension builds
    _OPS = """add addc sub subc rsub rsubc and or xor nand nor nxor andn orn lsl lsr asr rol ror
        lsl1 lsr1 lslx lsrx lsl1x lsr1x lsl_add lsl_sub lsr_add rol_add clz clo cls cao extsb
        extsh extub extuh cmpb4 sats hash mul_sl_sl mul_sl_sh mul_sh_sl mul_sh_sh mul_sl_ul
        mul_sl_uh mul_sh_ul mul_sh_uh mul_ul_ul mul_ul_uh mul_uh_ul mul_uh_uh mul_step div_step
        movd swapd lbs lbu lhs lhu lw ld sb sh sw sd sb_id sh_id sw_id sd_id ldma ldmai sdma
        acquire release boot resume read_run clr_run stop time time_cfg call fault tell
        nop""".split()
    _CONDITIONS = """false true z nz xz xnz pl mi max nmax sz snz spl smi ov nov c nc nc5 nc6 nc7
        nc8 nc9 nc10 nc11 nc12 nc13 nc14 ltu geu lts ges les gts leu gtu xles xgts xleu xgtu e o
        nsh32 sh32 se so small large""".split()

# Numbers in a row are positions in these lists; core/isa.def is their only source.
OPS: tuple[str, ...] = tuple(_OPS)
CONDITIONS: tuple[str, ...] = tuple(_CONDITIONS)
OP_INDEX = {name: i for i, name in enumerate(OPS)}
CONDITION_INDEX = {name: i for i, name in enumerate(CONDITIONS)}

# One instruction as the engine sees it: 16 bytes, the same struct in core/.
ROW = np.dtype(
    [
        ("op", "u1"),
        ("cc", "u1"),
        ("rd", "u1"),
        ("ra", "u1"),
        ("rb", "u1"),
        ("flags", "u1"),
        ("target", "<u2"),
        ("imm", "<i4"),
        ("off", "<i4"),
    ]
)
SET, JUMP, SIGNED, UNSIGNED, BIG, RIR = 1, 2, 4, 8, 16, 32
NO_REG = 24
USE_IMM = 255
IRAM_INSNS = 4096

SPECIAL = {"zero": 24, "one": 25, "lneg": 26, "mneg": 27, "id": 28, "id2": 29, "id4": 30, "id8": 31}
GENERAL = {f"r{i}": i for i in range(24)}
PAIRS = {f"d{i}": i for i in range(0, 24, 2)}
SINGLES = GENERAL | SPECIAL
REGISTERS = SINGLES | PAIRS
SINGLE_NAMES = {number: name for name, number in SINGLES.items()}


@dataclass(frozen=True, slots=True)
class Sym:
    """A symbol plus a constant. The name "." is the instruction's own index."""

    name: str
    addend: int = 0

    def __str__(self) -> str:
        return f"{self.name}{self.addend:+d}" if self.addend else self.name


@dataclass(slots=True)
class Label:
    """A named place in a text section: the index of the instruction that follows."""

    name: str


Arg = str | int | Sym


@dataclass(slots=True)
class Insn:
    """One instruction as written.

    op      mnemonic, with `.s`/`.u`, sugar allowed ("and.s", "move", "jneq")
    args    operands in assembly order; a `str` is always a register name
    cc      condition name, or None
    target  jump, fused-jump or call target: index, label name, Sym, or None
    big     big-endian load or store (`!big`)
    line    (C file, line) the instruction comes from, or None
    """

    op: str
    args: list[Arg] = field(default_factory=list)
    cc: str | None = None
    target: Arg | None = None
    big: bool = False
    line: tuple[str, int] | None = None


# ---------------------------------------------------------------------------------- conditions

_ZERO = ("z", "nz", "xz", "xnz")
_SOURCE = ("sz", "snz", "spl", "smi")
_LOG = ("true", *_ZERO, "pl", "mi", *_SOURCE)
_COMPARE = ("ltu", "geu", "lts", "ges", "les", "gts", "leu", "gtu", "xles", "xgts", "xleu", "xgtu")

# Condition class -> conditions its jump forms accept ("false" in a jump form is no condition).
JUMP_CLASSES: dict[str, tuple[str, ...]] = {
    "add": (*_LOG, "ov", "nov", "c", "nc", *(f"nc{n}" for n in range(5, 15))),
    "sub": (*_LOG, "ov", "nov", *_COMPARE),
    "log": _LOG,
    "shift": (*_LOG, "e", "o", "se", "so", "nsh32", "sh32"),
    "imm_shift": (*_LOG, "e", "o", "se", "so"),
    "mul": ("true", *_ZERO, *_SOURCE, "small", "large"),
    "count": ("true", *_ZERO, "max", "nmax", *_SOURCE),
    "shadd": ("true", *_SOURCE),
    "step": ("false", "true", *_ZERO, *_SOURCE),
    "div": ("false", "true", *_SOURCE),
    "acquire": ("true", "z", "nz"),
    "release": ("nz",),
    "true": ("true",),
    "move2": ("false", "true"),
}
# Condition class -> conditions its set forms accept (rd = 1 if the condition holds, else 0).
SET_CLASSES: dict[str, tuple[str, ...]] = {
    "zero": _ZERO,
    "sub": JUMP_CLASSES["sub"],
}
# Code in the condition field of jump forms; equal codes belong to different classes.
JUMP_CODES: dict[str, int] = {
    "false": 0, "true": 1, "z": 2, "nz": 3, "xz": 4, "xnz": 5, "pl": 8, "mi": 9, "max": 8,
    "nmax": 9, "sz": 12, "snz": 13, "spl": 14, "smi": 15, "ov": 18, "nov": 19, "c": 20, "nc": 21,
    **{f"nc{n}": 17 + n for n in range(5, 15)},
    **{name: 20 + i for i, name in enumerate(_COMPARE)},
    "e": 24, "o": 25, "nsh32": 28, "sh32": 29, "se": 30, "so": 31, "small": 30, "large": 31,
}  # fmt: skip
SET_CODES: dict[str, dict[str, int]] = {
    "zero": {"z": 6, "nz": 7, "xz": 10, "xnz": 11},
    "sub": {name: 32 + JUMP_CODES[name] for name in SET_CLASSES["sub"]},
}
CONDITION_SPELLINGS = {"eq": "z", "neq": "nz"}

# ---------------------------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the operation table.

    fmt      operand format (key of the format table below)
    jump     condition class of the fused-jump form, None if there is none
    set      condition class of the set form, None if there is none
    imm      bits of the plain immediate, 0 if the second source is always a register
    zero     bits of the immediate when the destination is zero and there is a jump target
    pair     has `.s` and `.u` forms
    """

    name: str
    fmt: str
    jump: str | None = None
    set: str | None = None
    imm: int = 0
    zero: int = 0
    pair: bool = False


_MULS = [f"sl_s{x}" for x in "lh"] + [f"sh_s{x}" for x in "lh"]
_MULS += [f"s{x}_u{y}" for x in "lh" for y in "lh"] + [f"u{x}_u{y}" for x in "lh" for y in "lh"]

_TABLE: list[Operation] = [
    *(Operation(n, "alu", "add", "zero", 32, 11, True) for n in ("add", "addc")),
    *(Operation(n, "alu", "sub", "sub", 24, 11, True) for n in ("sub", "subc")),
    *(Operation(n, "alu", "sub", "zero", 0, 0, True) for n in ("rsub", "rsubc")),
    *(Operation(n, "alu", "log", "zero", 32, 12, True) for n in ("and", "or", "xor")),
    *(Operation(n, "alu", "log", "zero", 24, 12, True) for n in "nand nor nxor andn orn".split()),
    Operation("hash", "alu", "log", "zero", 24, 12, True),
    Operation("cmpb4", "alu", "log", "zero", 0, 0, True),
    *(Operation(f"mul_{n}", "alu", "mul", "zero", 0, 0, True) for n in _MULS),
    *(
        Operation(n, "shift", "shift", "zero", 5, 5, True)
        for n in "lsl lsr asr rol ror lsl1 lsr1 lslx lsrx lsl1x lsr1x".split()
    ),
    *(Operation(n, "unary", "count", "zero", 0, 0, True) for n in ("clz", "clo", "cls", "cao")),
    *(
        Operation(n, "unary", "log", "zero", 0, 0, True)
        for n in ("extsb", "extsh", "extub", "extuh", "sats")
    ),
    *(
        Operation(n, "shadd", "shadd", None, 5, 5, True)
        for n in ("lsl_add", "lsl_sub", "lsr_add", "rol_add")
    ),
    Operation("mul_step", "step", "step", None, 5, 5),
    Operation("div_step", "step", "div", None, 5, 5),
    *(Operation(n, "movd", "move2") for n in ("movd", "swapd")),
    *(Operation(n, "load", imm=24, pair=True) for n in ("lbs", "lbu", "lhs", "lhu", "lw")),
    Operation("ld", "load", imm=24),
    *(Operation(n, "store", imm=bits) for n, bits in (("sb", 8), ("sh", 16), ("sw", 16))),
    Operation("sd", "store", imm=16),
    *(Operation(n, "store_id", imm=bits) for n, bits in (("sb_id", 8), ("sh_id", 16))),
    *(Operation(n, "store_id", imm=16) for n in ("sw_id", "sd_id")),
    *(Operation(n, "dma", imm=8) for n in ("ldma", "ldmai", "sdma")),
    Operation("acquire", "acquire", "acquire", imm=16),
    Operation("release", "acquire", "release", imm=16),
    *(Operation(n, "thread", "step", imm=8) for n in ("boot", "resume", "read_run", "clr_run")),
    Operation("stop", "stop", "step"),
    Operation("time", "time", "true", pair=True),
    Operation("time_cfg", "time_cfg", "true", pair=True),
    Operation("call", "call", imm=24),
    Operation("fault", "fault", imm=24),
    Operation("tell", "tell", imm=24),
    Operation("nop", "nop"),
]
OPERATIONS: dict[str, Operation] = {row.name: row for row in _TABLE}
if set(OPERATIONS) != set(OPS):
    raise ImportError(f"core/isa.def and isa.py differ in {sorted(set(OPERATIONS) ^ set(OPS))}")

# ---------------------------------------------------------------------------------- sugar

_ONE_OPERAND_JUMPS = ("z", "nz", "pl", "mi", "sz", "snz", "spl", "smi", "xz", "xnz")
JUMP_SUGAR: dict[str, str] = {f"j{cc}": cc for cc in JUMP_CLASSES["sub"] if cc != "true"}
JUMP_SUGAR |= {f"j{name}": cc for name, cc in CONDITION_SPELLINGS.items()}


def _sugar_move(insn: Insn, suffix: str) -> tuple[str, list[Arg]]:
    _need(insn, 2)
    rd, source = insn.args
    if isinstance(source, str):
        return "or" + suffix, [rd, source, 0]
    if suffix == ".s":
        return "and.s", [rd, "lneg", source]
    if suffix == ".u":
        return "and.u", [rd, "lneg", source]
    return "or", [rd, "zero", source]


def _sugar_jump(insn: Insn, suffix: str) -> tuple[str, list[Arg]]:
    return "call", ["zero", *insn.args]


def _sugar_one(op: str, *extra: int, first: bool = False) -> Callable[..., tuple[str, list[Arg]]]:
    def rewrite(insn: Insn, suffix: str) -> tuple[str, list[Arg]]:
        _need(insn, 2)
        rd, ra = insn.args
        return op + suffix, [rd, *extra, ra] if first else [rd, ra, *extra]

    return rewrite


SUGAR: dict[str, Callable[[Insn, str], tuple[str, list[Arg]]]] = {
    "move": _sugar_move,
    "not": _sugar_one("xor", -1),
    "neg": _sugar_one("sub", 0, first=True),
    "jump": _sugar_jump,
    "bkp": lambda insn, suffix: ("fault", [0]),
}
MNEMONICS = frozenset(OPERATIONS) | frozenset(SUGAR) | frozenset(JUMP_SUGAR)


def split_mnemonic(op: str) -> tuple[str, str]:
    """("and", ".s") for "and.s"; ("add", "") for "add"."""
    return (op[:-2], op[-2:]) if op.endswith((".s", ".u")) else (op, "")


def _need(insn: Insn, *counts: int) -> None:
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
        if len(args) == 1 and cc in _ONE_OPERAND_JUMPS:
            args = [*args, 0]
        if len(args) != 2 or insn.cc is not None or target is None:
            raise AsmError(f"{insn.op}: takes two operands and a target")
        op, args = "sub", ["zero", *args]
    else:
        raise AsmError(f"unknown instruction {insn.op!r}")
    cc = CONDITION_SPELLINGS.get(cc, cc) if cc else cc
    if cc == "false" and base != "stop":  # a jump form that never jumps is the plain form
        cc = target = None
    if base == "stop" and (cc is None or cc == "false"):
        cc = target = None
    return Insn(op, args, cc, target, insn.big, insn.line)


# ---------------------------------------------------------------------------------- engine rows

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
    _need(insn, 3)
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
    _need(insn, 3)
    plan.rd, plan.ra = _destination(insn, pair), register(insn, 1, "any")
    if isinstance(insn.args[2], str):
        plan.rb = register(insn, 2, "general")
    else:
        plan.slots = (_unsigned(_IMM, 5),)


def _plan_unary(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 2)
    plan.rd, plan.ra = _destination(insn, pair), register(insn, 1, "any")


def _plan_shadd(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 4)
    plan.rd, plan.rb = _destination(insn, pair), register(insn, 1, "general")
    plan.ra, plan.slots = register(insn, 2, "any"), (_unsigned(_OFF, 5),)


def _plan_step(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 4)
    plan.rd, plan.ra = register(insn, 0, "pair"), register(insn, 1, "any")
    plan.rb, plan.slots = register(insn, 2, "pair"), (_unsigned(_OFF, 5),)


def _plan_movd(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 2)
    plan.rd, plan.rb = register(insn, 0, "pair"), register(insn, 1, "pair")


def _plan_load(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 3)
    plan.rd = register(insn, 0, "pair" if pair or row.name == "ld" else "general")
    plan.ra, plan.slots = register(insn, 1, "any"), (_signed(_OFF, 24),)


def _stored(row: Operation) -> _Slot:
    return _either(_IMM, row.imm) if row.name[:2] in ("sb", "sh") else _signed(_IMM, row.imm)


def _plan_store(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 3)
    plan.ra = register(insn, 0, "any")
    if isinstance(insn.args[2], str):
        plan.rb = register(insn, 2, "pair" if row.name == "sd" else "general")
        plan.slots = (_signed(_OFF, 24),)
    else:
        plan.slots = (_signed(_OFF, 12), _stored(row))


def _plan_store_id(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 2, 3)
    plan.ra = register(insn, 0, "any")
    plan.slots = (_signed(_OFF, 12), _stored(row))[: len(insn.args) - 1]


def _plan_dma(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 3)
    plan.ra, plan.rb = register(insn, 0, "any"), register(insn, 1, "general")
    plan.slots = (_unsigned(_OFF, 8),)


def _plan_acquire(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 2)
    if insn.target is None:
        raise AsmError(f"{insn.op}: needs a condition and a target")
    plan.ra, plan.slots = register(insn, 0, "any"), (_either(_IMM, 16),)


def _plan_thread(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 2)
    plan.ra, plan.slots = register(insn, 0, "any"), (_signed(_IMM, 8),)


def _plan_time(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 1)
    plan.rd = _destination(insn, pair)


def _plan_time_cfg(row: Operation, insn: Insn, plan: _Plan, pair: bool) -> None:
    _need(insn, 2)
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
        _need(insn, 2)
        plan.ra, plan.slots = register(insn, 0, "any"), (_signed(_IMM, 24),)
    elif row.fmt == "fault":
        _need(insn, 1)
        plan.slots = (_either(_IMM, 24),)
    else:
        _need(insn, 0)


_PLANNERS: dict[str, Callable[[Operation, Insn, _Plan, bool], None]] = {
    "alu": _plan_alu, "shift": _plan_shift, "unary": _plan_unary, "shadd": _plan_shadd,
    "step": _plan_step, "movd": _plan_movd, "load": _plan_load, "store": _plan_store,
    "store_id": _plan_store_id, "dma": _plan_dma, "acquire": _plan_acquire,
    "thread": _plan_thread, "time": _plan_time, "time_cfg": _plan_time_cfg, "call": _plan_call,
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
    """Numbers that sugar supplies go into the plan; slots stay for the written ones."""
    numbers = sum(not isinstance(a, str) for a in written.args)
    if insn.target is not None:
        numbers += 1
    elif written.target is not None:
        plan.slots = (*plan.slots, _unsigned(_IGNORED, 16))  # never jumped to: only checked
        numbers += 1
    if numbers == len(plan.slots):
        return
    constants = [a for a in insn.args if isinstance(a, int)]
    plan.imm = constants[0]
    plan.slots = plan.slots[1:]


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
    values = [a for a in args if type(a) is not str]
    if target is not None:
        values.append(Sym(target) if type(target) is str else target)
    out = [plan.imm, 0, 0, 0]
    for slot, value in zip(plan.slots, values, strict=True):
        if type(value) is Sym:
            value = _resolve(value, resolve, pc, insn)
        if not slot.low <= value <= slot.high:  # type: ignore[operator]
            raise AsmError(_range_message(insn, slot, value))
        if slot.wrap and value >> (slot.bits - 1) > 0:  # type: ignore[operator]
            value -= 1 << slot.bits  # type: ignore[operator]
        out[slot.place] = value  # type: ignore[call-overload]
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
    if fmt in ("shift", "shadd", "step") and slot.place in (_IMM, _OFF):
        what = "shift"
    elif fmt == "dma":
        what = "length field"
    return f"{insn.op}: {what} {value}, limit {slot.low} to {slot.high} ({slot.bits} bits)"
