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
    unit         rd, ra, rb                 unit_unary   rd, ra       (hypothetical cores only)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from upmem_sim._core import CONDITIONS as _CONDITIONS
from upmem_sim._core import OPS as _OPS

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

# Instructions that no UPMEM chip has: constant of `DpuParams` that gives a core a unit -> names.
UNITS: dict[str, tuple[str, ...]] = {
    "multiply32_slots": ("mul32", "mulhs32", "mulhsu32", "mulhu32"),
    "float_add_slots": (
        "fadd", "fsub", "feq", "flt", "fle", "fmin", "fmax", "fsgnj", "fclass", "f2s", "f2u",
        "s2f", "u2f",
    ),
    "float_mul_slots": ("fmul",),
    "float_div_slots": ("fdiv",),
}  # fmt: skip
UNIT_OF = {name: unit for unit, names in UNITS.items() for name in names}
_ONE_SOURCE = ("fclass", "f2s", "f2u", "s2f", "u2f")


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


SHIFTS = ["lsl", "lsr", "asr", "rol", "ror", "lsl1", "lsr1", "lslx", "lsrx", "lsl1x", "lsr1x"]
_MULS = [f"sl_s{x}" for x in "lh"] + [f"sh_s{x}" for x in "lh"]
_MULS += [f"s{x}_u{y}" for x in "lh" for y in "lh"] + [f"u{x}_u{y}" for x in "lh" for y in "lh"]

_TABLE: list[Operation] = [
    *(Operation(n, "alu", "add", "zero", 32, 11, True) for n in ("add", "addc")),
    *(Operation(n, "alu", "sub", "sub", 24, 11, True) for n in ("sub", "subc")),
    *(Operation(n, "alu", "sub", "zero", 0, 0, True) for n in ("rsub", "rsubc")),
    *(Operation(n, "alu", "log", "zero", 32, 12, True) for n in ("and", "or", "xor")),
    *(
        Operation(n, "alu", "log", "zero", 24, 12, True)
        for n in ("nand", "nor", "nxor", "andn", "orn")
    ),
    Operation("hash", "alu", "log", "zero", 24, 12, True),
    Operation("cmpb4", "alu", "log", "zero", 0, 0, True),
    *(Operation(f"mul_{n}", "alu", "mul", "zero", 0, 0, True) for n in _MULS),
    *(Operation(n, "shift", "shift", "zero", 5, 5, True) for n in SHIFTS),
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
    *(Operation(n, "unit") for names in UNITS.values() for n in names if n not in _ONE_SOURCE),
    *(Operation(n, "unit_unary") for n in _ONE_SOURCE),
]
OPERATIONS: dict[str, Operation] = {row.name: row for row in _TABLE}
if set(OPERATIONS) != set(OPS):
    raise ImportError(f"core/isa.def and isa.py differ in {sorted(set(OPERATIONS) ^ set(OPS))}")

# ---------------------------------------------------------------------------------- sugar

ONE_OPERAND_JUMPS = ("z", "nz", "pl", "mi", "sz", "snz", "spl", "smi", "xz", "xnz")
JUMP_SUGAR: dict[str, str] = {f"j{cc}": cc for cc in JUMP_CLASSES["sub"] if cc != "true"}
JUMP_SUGAR |= {f"j{name}": cc for name, cc in CONDITION_SPELLINGS.items()}
# Spellings that rows.py rewrites to an operation of the table, with their operand counts.
SUGAR_OPERANDS = {"move": 2, "not": 2, "neg": 2, "bkp": 0}
MNEMONICS = frozenset(OPERATIONS) | frozenset(SUGAR_OPERANDS) | frozenset(JUMP_SUGAR) | {"jump"}


def split_mnemonic(op: str) -> tuple[str, str]:
    """("and", ".s") for "and.s"; ("add", "") for "add"."""
    return (op[:-2], op[-2:]) if op.endswith((".s", ".u")) else (op, "")
