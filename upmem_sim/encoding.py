"""Instruction words: 48 bits each. `encode` here and `decode` in decoding.py are exact inverses.

Field places are published (UBC-ECE-Sasha/upmem-sdk, backends/commons/src/
dpu_instruction_encoder.h): ra, rb/db, rc/dc, condition and its codes, jump target, immediates,
shift amounts, store offsets, endian bit, lock index, DMA length; the major opcode in bits 44-47;
the word of nop.

Groups:  E   majors 0-3 with bits 42-43 = 11 (escape "rc >= 24"): add/sub, byte multiplies, time
         L   majors 8 (9 for pairs): shifts, logic, counts, shift-add, steps, moves, call
         W   imm32 forms: majors 0-6
         M   major 7: memory, DMA, threads, atomic bits, fault
         H   major 10, which no chip uses: instructions of hypothetical cores
Bits 32-33 = 11 ("rb >= 24"): the form has no rb. Bit 16 = 1 beside an rb: it is a pair.
An immediate that fits both W and the short form of E or L goes to W, but `move rc, ra`, which is
`or rc, ra, 0`, to L; decode takes both.

Operation numbers inside the groups, by evidence:

Proven by programs that the SDK built (DPU programs in the dpu-kmeans 0.1.3 source distribution)
    E   bits 29-31: add 0, addc 1, sub 4, subc 5; bits 20-23 beside an rb: 12 for these,
        mul_ul_ul 0, mul_sh_sh 7, mul_sh_ul 10
    L   no rb, bits 28-31: call 0, counts 3 (bits 20-23: clz 3), and 10, or 11; shifts have bit 30,
        bits 16-19: lsl 4, lsr 12. With rb, bits 29-31: lsr_add 1, lsl_add 2, with bit 16 also
        movd 1, mul_step 2, div_step 3. Pairs: move.s, move.u
    W   add, sub (imm - ra), and, or, and.s
    M   bits 24-26: lbu 0, lbs 1, lhu 2, lhs 3, lw 4, ld 6 with bit 30, bit 29 for pairs;
        bits 25-26: sb 0, sh 1, sw 2, sd 3 with bit 30; ldma, sdma; acquire, release with bit 31;
        with bit 29, bits 39-41: resume 2, boot 3, fault 4, stop 5 (ra = id)
Following from a regularity of those
    E   rsub 2, rsubc 3 (also imm - ra); set forms of sub and subc 6, 7: code + 32 is bit 30;
        the other multiplies: bit 20 rb high, bit 21 ra high, bits 22-23 kinds uu, ss, su
    L   lsl_sub 3 (div_step without bit 16), rol_add 0
    W   xor, addc, subc (published majors); add.s/.u and or.s/.u are told from add, or by their rb
    M   read_run 0, clr_run 1 (stop without bit 41)
Ours until a program shows them
    E   time, time_cfg; majors of .s/.u: 4, 5 (published: "inside 4"), 14 from d16 on
    L   other logic, shifts, counts and ext*, sats; register forms of logic and shifts (bit 31),
        hash, cmpb4, swapd, call by register
    W   numbers of the flags-only forms; imm[5:7] beside an rb
    M   store_id (bit 28), tell
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
    SIGNED,
    UNIT_OF,
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
E_OP = {"add": 0, "addc": 1, "rsub": 2, "rsubc": 3, "sub": 4, "subc": 5}  # bits 29-31
E_SUM = 12  # bits 20-23 of these beside an rb
_MULS = [f"{kind[0]}{x}_{kind[1]}{y}" for kind in ("uu", "ss", "su") for x in "lh" for y in "lh"]
E_OTHER = [*(f"mul_{name}" for name in _MULS), "", "time", "time_cfg"]  # bits 20-23
# Bits 28-31 of group L without rb.
L_CALL, L_HASH, L_UNARY, L_SHIFT = 0, 1, 3, 4
LOGIC = {
    "xor": 8, "nxor": 9, "and": 10, "or": 11, "andn": 12, "orn": 13, "nand": 14, "nor": 15,
    "hash": L_HASH,
}  # fmt: skip
UNARY = ["cao", "clo", "cls", "clz", "extsb", "extsh", "extub", "extuh", "sats"]
SHIFT = {
    "rol": 0, "lsl": 4, "lsl1": 5, "lslx": 6, "lsl1x": 7,
    "ror": 8, "asr": 9, "lsr": 12, "lsr1": 13, "lsrx": 14, "lsr1x": 15,
}  # fmt: skip
# Group L with rb: bits 29-31 of shift-adds and pairs, or bit 31 and a number in bits 20-23.
SHIFTED = {"rol_add": 0, "lsr_add": 1, "lsl_add": 2, "lsl_sub": 3}
STEPS = {"mul_step": 2, "div_step": 3}
L_MOVES, MOVES = 1, ["movd", "swapd"]
L_REG_SHIFT, L_REG = 8, 12
REG = {name: number for name, number in LOGIC.items() if number != L_HASH}
REG |= {"hash": 0, "cmpb4": 1, "call": 2}
WIDE = {"add": 0, "addc": 1, "xor": 4, "and": 5, "or": 6}
WIDE_REVERSED = {"sub": 2, "subc": 3}
WIDE_FLAGS = ["add", "addc", "sub", "subc", "xor", "and", "or"]
WIDE_PAIR = {"add": 0, "or": 6}
PAIR_HIGH = 14  # major of .s/.u in group E from d16 on; 4 and 5 below
LOADS = {"lbu": 0, "lbs": 1, "lhu": 2, "lhs": 3, "lw": 4, "ld": 6}
STORES = ["sb", "sh", "sw", "sd"]
DMA = ["ldma", "ldmai", "sdma"]
M_SINGLE = ["read_run", "clr_run", "resume", "boot", "fault", "stop", "tell"]
UNIT_MAJOR, UNIT = 10, [name for name in OPS if name in UNIT_OF]  # bits 20-24
_ID = 28

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
        major = 4 | rd >> 3 if rd < 16 else PAIR_HIGH
        return (rd & 7 | bool(flags & SIGNED)) << 39 | major << 44 | 3 << 42
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
    _, _, rd, ra, rb, flags, _, imm, _ = r
    name = row.name
    if rb != USE_IMM or flags & (SET | JUMP):
        return None
    if flags & _PAIR:
        if name == "and" and ra >= NO_REG:
            dest = (rd | bool(flags & SIGNED)) << 39
            return 5 << 44 | dest | ra << 34 | _NO_RB | _imm32(imm)
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
    return major << 44 | rd << 39 | ra << 34 | _NO_RB | _imm32(imm)


def _encode_alu(row: Operation, r: RowTuple) -> int:
    wide = _encode_wide(row, r)
    return _encode_short(row, r) if wide is None or _is_move(row, r) else wide


def _is_move(row: Operation, r: RowTuple) -> bool:
    return row.name == "or" and r[7] == 0 and r[3] != NO_REG


def _encode_short(row: Operation, r: RowTuple) -> int:
    _, cc, rd, ra, rb, flags, target, imm, _ = r
    no_dest = rd == NO_REG and not flags & _PAIR
    code = _code(cc, flags, row)
    if row.name in E_OP or row.name in E_OTHER:
        word = _dest_e(rd, flags) | ra << 34 | (code & 31) << 24 | (code >> 5) << 30
        number = E_OP.get(row.name, 0) - (2 if flags & RIR else 0)
        word |= number << 29
        if rb != USE_IMM:
            kind = E_SUM if row.name in E_OP else E_OTHER.index(row.name)
            return word | _rb(rb) | kind << 20 | target
        return word | _NO_RB | _immediate(imm, target, flags, no_dest)
    word = _dest_l(rd, flags) | ra << 34 | code << 24
    if rb != USE_IMM:
        return word | _rb(rb) | L_REG << 28 | REG[row.name] << 20 | target
    word |= LOGIC[row.name] << 28 | _NO_RB
    return word | _immediate(imm, target, flags, no_dest)


def _encode_shift(row: Operation, r: RowTuple) -> int:
    _, cc, rd, ra, rb, flags, target, imm, _ = r
    code = _code(cc, flags, row)
    word = _dest_l(rd, flags) | ra << 34 | (code & 15) << 24 | (code >> 4) << 29 | target
    if rb != USE_IMM:
        return word | _rb(rb) | L_REG_SHIFT << 28 | SHIFT[row.name] << 20
    return word | _NO_RB | L_SHIFT << 28 | _shift(imm) | SHIFT[row.name] << 16


def _encode_unary(row: Operation, r: RowTuple) -> int:
    _, cc, rd, ra, _, flags, target, _, _ = r
    word = _dest_l(rd, flags) | ra << 34 | _code(cc, flags, row) << 24 | target
    return word | _NO_RB | L_UNARY << 28 | UNARY.index(row.name) << 20


def _encode_shifted(row: Operation, r: RowTuple) -> int:
    _, cc, rd, ra, rb, flags, target, _, off = r
    step = row.name in STEPS
    number = STEPS[row.name] if step else SHIFTED[row.name]
    word = _dest_l(rd, flags) | ra << 34 | _rb(rb) | _code(cc, flags, row) << 24 | target
    return word | _shift(off) | number << 29 | step << 16


def _encode_movd(row: Operation, r: RowTuple) -> int:
    _, cc, rd, _, rb, flags, target, _, _ = r
    word = _dest_l(rd, 0) | NO_REG << 34 | _rb(rb) | _code(cc, flags, row) << 24 | target
    return word | L_MOVES << 29 | MOVES.index(row.name) << 20 | 1 << 16


def _encode_call(row: Operation, r: RowTuple) -> int:
    _, _, rd, ra, rb, _, _, imm, _ = r
    word = _dest_l(rd, 0) | ra << 34
    if rb != USE_IMM:
        return word | _rb(rb) | L_REG << 28 | REG["call"] << 20
    return word | _NO_RB | L_CALL << 28 | _immediate(imm, 0, 0, rd == NO_REG)


def _encode_time(row: Operation, r: RowTuple) -> int:
    _, cc, rd, _, rb, flags, target, _, _ = r
    source = _rb(rb) if row.name == "time_cfg" else 0
    word = _dest_e(rd, flags) | source | _code(cc, flags, row) << 24 | target
    return word | E_OTHER.index(row.name) << 20


def _encode_load(row: Operation, r: RowTuple) -> int:
    _, _, rd, ra, _, flags, _, _, off = r
    pair = bool(flags & _PAIR)
    rd |= bool(flags & SIGNED)
    word = 7 << 44 | rd << 39 | ra << 34 | _NO_RB | _imm24(off)
    return word | 1 << 30 | pair << 29 | bool(flags & BIG) << 27 | LOADS[row.name] << 24


def _store_offset(off: int) -> int:
    return (off & 15) << 20 | (off >> 4 & 7) << 39 | (off >> 7 & 1) << 24


def _encode_store(row: Operation, r: RowTuple) -> int:
    _, _, _, ra, rb, flags, _, imm, off = r
    word = 7 << 44 | 3 << 42 | ra << 34 | _store_offset(off) | bool(flags & BIG) << 27
    word |= 1 << 30 | _REVERSED4[off >> 8 & 15] << 12
    number = STORES.index(row.name.removesuffix("_id"))
    if rb != USE_IMM:
        pair = row.name == "sd"
        return word | _rb(rb) | (off >> 12 & 0xFFF) | number << 25 | pair << 16
    by_id = row.fmt == "store_id"
    word |= _NO_RB | number << 25 | by_id << 28
    return word | (imm & 15) << 16 | (imm >> 4 & (0xFFF if number else 15))


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
    word = 7 << 44 | 3 << 42 | M_SINGLE.index(row.name) << 39 | _NO_RB | 1 << 29
    if row.name in ("fault", "tell"):
        return word | ra << 34 | _imm24(imm)
    base = _ID if row.name == "stop" else ra
    return word | base << 34 | _imm8(imm) | _code(cc, flags, row) << 24 | target


def _encode_nop(row: Operation, r: RowTuple) -> int:
    return NOP_WORD


def _encode_unit(row: Operation, r: RowTuple) -> int:
    _, _, rd, ra, rb, _, _, _, _ = r
    source = _NO_RB if rb == USE_IMM else _rb(rb)
    return UNIT_MAJOR << 44 | rd << 39 | ra << 34 | source | UNIT.index(row.name) << 20


_ENCODERS: dict[str, Callable[[Operation, RowTuple], int]] = {
    "alu": _encode_alu, "shift": _encode_shift, "unary": _encode_unary, "shadd": _encode_shifted,
    "step": _encode_shifted, "movd": _encode_movd, "load": _encode_load, "store": _encode_store,
    "store_id": _encode_store, "dma": _encode_dma, "acquire": _encode_acquire,
    "thread": _encode_single, "stop": _encode_single, "fault": _encode_single,
    "tell": _encode_single, "time": _encode_time, "time_cfg": _encode_time, "call": _encode_call,
    "nop": _encode_nop, "unit": _encode_unit, "unit_unary": _encode_unit,
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


def synonym(insn: Insn) -> int | None:
    """The other word that means the same as `encode(insn)`: W instead of E or L, or None."""
    r = to_row(insn, _no_symbols)
    row = _BY_INDEX[r[0]][0]
    wide = _encode_wide(row, r) if row.fmt == "alu" else None
    if wide is None:
        return None
    if _is_move(row, r):
        return wide
    bits = 24 if r[2] != NO_REG or r[5] & _PAIR else 28 if row.zero == 12 else 27
    return _encode_short(row, r) if -1 << (bits - 1) <= r[7] < 1 << (bits - 1) else None
