"""Instruction words: 48 bits each. `encode` here and `decode` in decoding.py are exact inverses.

Published layout (UBC-ECE-Sasha/upmem-sdk, backends/commons/src/dpu_instruction_encoder.h), kept:
the places of ra, rb/db, rc/dc, condition, jump target, immediates of 8, 11, 12, 24, 27, 28 and 32
bits, shift amounts, store offsets and stored immediates, endian bit, acquire/release index, DMA
length and its low two bits; condition codes; major opcodes 0-9 (bits 44-47) with their imm32
operations; the escapes "rc >= 24" (bits 42-43 = 11), "rb >= 24" (bits 32-33 = 11) and
"and with ra >= 24 is and.s/.u"; the word of nop.

Chosen here, in the holes of that layout: the numbers of operations inside a group (bits 16, 20-23
and 28-31), imm[5:7] of 32-bit forms whose register is an rb (bits 34-36), majors 10 and 11 for
add.s/.u and or.s/.u with imm32, majors 12-14 for the .s/.u versions of the groups inside 0-3, and
the numbering in major 7. Words built by the SDK therefore differ; elf.py marks our files and
refuses others.

Groups:  E   majors 0-3 (12-14 for pairs) with bits 42-43 = 11: add/sub, byte multiplies, time
         L   majors 8 (9 for pairs): shifts, logic, counts, shift-add, steps, moves, call
         W   imm32 forms: majors 0-6, 10, 11
         M   major 7: memory, DMA, threads, atomic bits, fault
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from upmem_sim.errors import AsmError
from upmem_sim.isa import (
    BIG,
    CONDITIONS,
    JUMP,
    JUMP_CODES,
    NO_REG,
    OPERATIONS,
    OPS,
    RIR,
    SET,
    SET_CODES,
    SHIFTS,
    SIGNED,
    UNSIGNED,
    USE_IMM,
    Insn,
    Operation,
    Sym,
)
from upmem_sim.rows import RowTuple, to_row

NOP_WORD = 0x7C63_0000_0000
_PAIR = SIGNED | UNSIGNED
_NO_RB = 3 << 32

# Operation numbers inside the groups.
_MULS = [name for name in OPERATIONS if name.startswith("mul_") and name != "mul_step"]
E_REG = ["add", "addc", "sub", "subc", "rsub", "rsubc", *_MULS, "time_cfg", "time"]
E_IMM = {"add": 0, "addc": 2, "sub": 4, "subc": 6}  # bits 29-31; imm - ra: sub 1, subc 3
LOGIC = ["and", "or", "xor", "nand", "nor", "nxor", "andn", "orn", "hash"]
UNARY = ["clz", "clo", "cls", "cao", "extsb", "extsh", "extub", "extuh", "sats"]
L_REG = [*SHIFTS, *LOGIC, "cmpb4", "call", "movd", "swapd"]
L_SHIFTED = ["lsl_add", "lsl_sub", "lsr_add", "rol_add", "mul_step", "div_step"]
_L_CALL, _L_UNARY, _L_SHIFT = 9, 10, 12  # bits 28-31 of group L without rb, after LOGIC
WIDE = {"add": 0, "addc": 1, "xor": 4, "and": 5, "or": 6}
WIDE_REVERSED = {"sub": 2, "subc": 3}
WIDE_FLAGS = ["add", "addc", "sub", "subc", "xor", "and", "or"]
WIDE_PAIR = {"add": 10, "or": 11}
LOADS = ["lbs", "lbu", "lhs", "lhu", "lw", "ld"]
STORES = ["sb", "sh", "sw", "sd"]
DMA = ["ldma", "ldmai", "sdma"]
M_SINGLE = ["", "boot", "resume", "read_run", "clr_run", "stop", "fault", "tell"]

_REVERSED4 = [int(f"{i:04b}"[::-1], 2) for i in range(16)]


def _imm8(v: int) -> int:
    return (v & 15) << 20 | (v >> 4 & 15) << 16


def _imm24(v: int) -> int:
    return _imm8(v) | _REVERSED4[v >> 8 & 15] << 12 | (v >> 12 & 0xFFF)


def _imm32(v: int) -> int:
    return _imm24(v) | (v >> 24 & 0xFF) << 24


def _imm32_rb(v: int) -> int:
    """imm32 beside an rb: bits 17-19 are taken, imm[5:7] goes to 34-36."""
    return _imm32(v & ~0xE0) | (v >> 5 & 7) << 34


def _rb(rb: int) -> int:
    return (rb & 7) << 17 | (rb >> 3) << 32


def _shift(v: int) -> int:
    return (v & 15) << 20 | (v >> 4) << 28


def _dest_e(rd: int, flags: int) -> int:
    """Group E: low 3 bits at 39, high 2 at 44; 24 (none) gives bits 44-45 = 11 by itself."""
    if flags & _PAIR:
        rd |= bool(flags & SIGNED)
        return (rd & 7) << 39 | (rd >> 3) << 44 | 3 << 42 | 3 << 46
    return (rd & 7) << 39 | (rd >> 3) << 44 | 3 << 42


def _dest_l(rd: int, flags: int) -> int:
    if flags & _PAIR:
        return 9 << 44 | (rd | bool(flags & SIGNED)) << 39
    return 8 << 44 | rd << 39


_JUMP_CODE = [JUMP_CODES[name] for name in CONDITIONS]
_SET_ZERO = [SET_CODES["zero"].get(name, 0) for name in CONDITIONS]
_SET_SUB = [SET_CODES["sub"].get(name, 0) for name in CONDITIONS]


def _code(cc: int, flags: int, row: Operation) -> int:
    """Condition code: 0 plain, a jump code, or a set code (which no jump class uses)."""
    if flags & JUMP:
        return _JUMP_CODE[cc]
    if flags & SET:
        return (_SET_SUB if row.set == "sub" and not flags & RIR else _SET_ZERO)[cc]
    return 0


def _immediate(imm: int, target: int, flags: int, no_dest: bool) -> int:
    """Immediate of E and L forms with a condition field, and the jump target."""
    if flags & JUMP:
        high = (imm >> 8 & 7) << 39 | (imm >> 11 & 1) << 44 if no_dest else 0
        return _imm8(imm) | target | high
    return _imm24(imm) | ((imm >> 24 & 7) << 39 | (imm >> 27 & 1) << 44 if no_dest else 0)


def _encode_wide(row: Operation, r: RowTuple) -> int | None:
    """imm32 forms, None if this instruction is not one."""
    _, _, rd, ra, _, flags, _, imm, _ = r
    name = row.name
    if flags & _PAIR:
        if name == "and" and ra >= NO_REG:
            return 5 << 44 | (rd | bool(flags & SIGNED)) << 39 | ra << 34 | _imm32(imm)
        if name in WIDE_PAIR and ra < NO_REG:
            dest = (rd | bool(flags & SIGNED)) << 39
            return WIDE_PAIR[name] << 44 | dest | _rb(ra) | _imm32_rb(imm)
        return None
    if rd == NO_REG:
        if ra >= NO_REG or name not in WIDE_FLAGS:
            return None
        reverse = bool(flags & RIR) << 37
        return 6 << 44 | 3 << 42 | WIDE_FLAGS.index(name) << 39 | reverse | _rb(ra) | _imm32_rb(imm)
    major = (WIDE_REVERSED if flags & RIR else WIDE).get(name)
    if major is None or (name == "and" and ra >= NO_REG):
        return None
    return major << 44 | rd << 39 | ra << 34 | _imm32(imm)


def _encode_alu(row: Operation, r: RowTuple) -> int:
    _, cc, rd, ra, rb, flags, target, imm, _ = r
    no_dest = rd == NO_REG and not flags & _PAIR
    if rb == USE_IMM and not flags & (SET | JUMP):
        wide = _encode_wide(row, r)
        if wide is not None:
            return wide
    code = _code(cc, flags, row)
    condition = (code & 31) << 24 | (code >> 5) << 29
    if row.name in E_REG:
        word = _dest_e(rd, flags) | ra << 34 | condition
        if rb != USE_IMM:
            number = E_REG.index(row.name)
            return word | _rb(rb) | (number & 15) << 20 | (number >> 4) << 16 | target
        word |= (E_IMM[row.name] - (3 if flags & RIR else 0)) << 29 | _NO_RB
        return word | _immediate(imm, target, flags, no_dest)
    word = _dest_l(rd, flags) | ra << 34 | condition
    if rb != USE_IMM:
        number = L_REG.index(row.name)
        return word | _rb(rb) | (number & 15) << 20 | (number >> 4) << 16 | target
    word |= LOGIC.index(row.name) << 28 | _NO_RB
    return word | _immediate(imm, target, flags, no_dest)


def _encode_shift(row: Operation, r: RowTuple) -> int:
    _, cc, rd, ra, rb, flags, target, imm, _ = r
    code = _code(cc, flags, row)
    word = _dest_l(rd, flags) | ra << 34 | (code & 15) << 24 | (code >> 4) << 29 | target
    number = SHIFTS.index(row.name)
    if rb != USE_IMM:
        return word | _rb(rb) | (number & 15) << 20
    return word | _NO_RB | _L_SHIFT << 28 | _shift(imm) | number << 16


def _encode_unary(row: Operation, r: RowTuple) -> int:
    _, cc, rd, ra, _, flags, target, _, _ = r
    word = _dest_l(rd, flags) | ra << 34 | _code(cc, flags, row) << 24 | target
    return word | _NO_RB | _L_UNARY << 28 | UNARY.index(row.name) << 16


def _encode_shifted(row: Operation, r: RowTuple) -> int:
    _, cc, rd, ra, rb, flags, target, _, off = r
    number = L_SHIFTED.index(row.name) + 2
    word = _dest_l(rd, flags) | ra << 34 | _rb(rb) | _code(cc, flags, row) << 24 | target
    return word | _shift(off) | (number >> 1) << 30 | (number & 1) << 16


def _encode_movd(row: Operation, r: RowTuple) -> int:
    _, cc, rd, _, rb, flags, target, _, _ = r
    number = L_REG.index(row.name)
    word = _dest_l(rd, 0) | _rb(rb) | _code(cc, flags, row) << 24 | target
    return word | (number & 15) << 20 | (number >> 4) << 16


def _encode_call(row: Operation, r: RowTuple) -> int:
    _, _, rd, ra, rb, _, _, imm, _ = r
    word = _dest_l(rd, 0) | ra << 34
    if rb != USE_IMM:
        number = L_REG.index("call")
        return word | _rb(rb) | (number & 15) << 20 | (number >> 4) << 16
    return word | _NO_RB | _L_CALL << 28 | _immediate(imm, 0, 0, rd == NO_REG)


def _encode_time(row: Operation, r: RowTuple) -> int:
    _, cc, rd, _, rb, flags, target, _, _ = r
    number = E_REG.index(row.name)
    source = _rb(rb) if row.name == "time_cfg" else 0
    word = _dest_e(rd, flags) | source | _code(cc, flags, row) << 24 | target
    return word | (number & 15) << 20 | (number >> 4) << 16


def _encode_load(row: Operation, r: RowTuple) -> int:
    _, _, rd, ra, _, flags, _, _, off = r
    number = LOADS.index(row.name)
    pair = bool(flags & _PAIR)
    rd |= bool(flags & SIGNED)
    word = 7 << 44 | rd << 39 | ra << 34 | _NO_RB | _imm24(off)
    return word | pair << 31 | number << 28 | bool(flags & BIG) << 27


def _store_offset(off: int) -> int:
    return (off & 15) << 20 | (off >> 4 & 7) << 39 | (off >> 7 & 1) << 24


def _encode_store(row: Operation, r: RowTuple) -> int:
    _, _, _, ra, rb, flags, _, imm, off = r
    word = 7 << 44 | 3 << 42 | ra << 34 | _store_offset(off) | bool(flags & BIG) << 27
    word |= _REVERSED4[off >> 8 & 15] << 12
    number = STORES.index(row.name.removesuffix("_id"))
    if rb != USE_IMM:
        return word | _rb(rb) | (off >> 12 & 0xFFF) | number << 28
    by_id = row.fmt == "store_id"
    word |= _NO_RB | 1 << 30 | number << 28 | by_id << 26
    return word | (imm & 15) << 16 | (imm >> 4 & 0xFFF)


def _encode_dma(row: Operation, r: RowTuple) -> int:
    _, _, _, ra, rb, _, _, _, off = r
    return 7 << 44 | ra << 34 | _rb(rb) | off << 24 | DMA.index(row.name)


def _encode_acquire(row: Operation, r: RowTuple) -> int:
    _, cc, _, ra, _, _, target, imm, _ = r
    code = _JUMP_CODE[cc] if row.name == "acquire" else 0
    word = 7 << 44 | 3 << 42 | ra << 34 | _NO_RB | 1 << 31 | code << 24 | target
    return word | _imm8(imm) | (imm >> 8 & 31) << 26 | (imm >> 13 & 7) << 39


def _encode_single(row: Operation, r: RowTuple) -> int:
    _, cc, _, ra, _, flags, target, imm, _ = r
    word = 7 << 44 | M_SINGLE.index(row.name) << 39
    if row.name == "fault":
        return word | _imm24(imm)
    if row.name == "tell":
        return word | ra << 34 | _imm24(imm)
    base = ra << 34 if row.name != "stop" else 0
    return word | base | _imm8(imm) | _code(cc, flags, row) << 24 | target


def _encode_nop(row: Operation, r: RowTuple) -> int:
    return NOP_WORD


_ENCODERS: dict[str, Callable[[Operation, RowTuple], int]] = {
    "alu": _encode_alu, "shift": _encode_shift, "unary": _encode_unary, "shadd": _encode_shifted,
    "step": _encode_shifted, "movd": _encode_movd, "load": _encode_load, "store": _encode_store,
    "store_id": _encode_store, "dma": _encode_dma, "acquire": _encode_acquire,
    "thread": _encode_single, "stop": _encode_single, "fault": _encode_single,
    "tell": _encode_single, "time": _encode_time, "time_cfg": _encode_time, "call": _encode_call,
    "nop": _encode_nop,
}  # fmt: skip
_BY_INDEX = [(OPERATIONS[name], _ENCODERS[OPERATIONS[name].fmt]) for name in OPS]


@lru_cache(1 << 16)  # the kernels of one search are much alike
def encode_row(row: RowTuple) -> int:
    """The 48-bit word of an engine row made by `to_row`."""
    operation, encoder = _BY_INDEX[row[0]]
    return encoder(operation, row)


def _no_symbols(symbol: Sym) -> int:
    raise AsmError(f"symbol {symbol} in an instruction to encode")


def encode(insn: Insn) -> int:
    """The 48-bit word of an instruction without symbols ("." counts from index 0).

    Errors: AsmError for an instruction that does not exist.
    """
    return encode_row(to_row(insn, _no_symbols))
