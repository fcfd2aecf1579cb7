"""What executing one DPU instruction does to a tasklet and its DPU: one handler a family.

A handler takes the machine, the tasklet, the instruction and its mnemonic without `.s`/`.u`, and
gives the next program counter. Used by `interpreter.py`; same sources as `interpreter_alu.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from upmem_sim.interpreter_alu import (
    ADDER,
    BINARY,
    CONDITION,
    M32,
    SHIFT,
    SHIFT_ADD,
    UNARY,
    Seen,
    signed,
)
from upmem_sim.interpreter_state import Machine, Thread
from upmem_sim.interpreter_units import UNIT
from upmem_sim.isa import UNIT_OF, Insn
from upmem_sim.params import FRACTION

IRAM_INSNS = 4096
MRAM_BASE_BIT = 1 << 27
ACCESS_BYTES = {"b": 1, "h": 2, "w": 4, "d": 8}

Handler = Callable[[Machine, Thread, Insn, str], int]


def _add(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a, b = m.get(t, insn.args[1]), m.get(t, insn.args[2])
    adder = ADDER[base](a, b, t.cf)
    # in "immediate - register" the register is the source the s-conditions speak of
    source = b if isinstance(insn.args[1], int) else a
    seen = Seen(sum(adder) & M32, source, t.zf, b, adder)
    after = m.finish(t, insn, seen)
    t.zf, t.cf = int(seen.x == 0), sum(adder) >> 32
    return after


def _result(m: Machine, t: Thread, insn: Insn, seen: Seen) -> int:
    after = m.finish(t, insn, seen)
    t.zf = int(seen.x == 0)
    return after


def _binary(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a, b = m.get(t, insn.args[1]), m.get(t, insn.args[2])
    return _result(m, t, insn, Seen(BINARY[base](a, b), a, t.zf, b))


def _shift(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a, b = m.get(t, insn.args[1]), m.get(t, insn.args[2])
    return _result(m, t, insn, Seen(SHIFT[base](a, b & 31), a, t.zf, b))


def _unary(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a = m.get(t, insn.args[1])
    x = UNARY[base](a)
    return _result(m, t, insn, Seen(x, a, t.zf, maximum=31 if base == "cls" else 32))


def _unit(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    slots = m.units[UNIT_OF[base]]
    if not slots:
        raise m.fault(t, "illegal-instruction", f"{base} without its unit")
    m.put(t, insn, UNIT[base](*(m.get(t, arg) for arg in insn.args[1:])))
    m.cycle += slots - 1
    return t.pc + 1


def _shift_add(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    addend, a, s = (m.get(t, arg) for arg in insn.args[1:])
    op, sign = SHIFT_ADD[base]
    shifted = SHIFT[op](a, s & 31)
    after = m.finish(t, insn, Seen((addend + sign * shifted) & M32, a, t.zf))
    t.zf = int(shifted == 0)
    return after


def _mul_step(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a, s = m.get(t, insn.args[1]), m.get(t, insn.args[3])
    even, odd = m.get_pair(t, insn.args[2])
    _, kept = m.get_pair(t, insn.args[0])
    new = even >> 1
    m.put_pair(t, insn.args[0], new, odd + (a << s) if even & 1 else kept)
    after = m.finish(t, insn, Seen(new, a, t.zf), write=False)
    t.zf = int(new == 0)
    return after


def _div_step(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a, s = m.get(t, insn.args[1]), m.get(t, insn.args[3])
    even, odd = m.get_pair(t, insn.args[2])
    _, kept = m.get_pair(t, insn.args[0])
    part = (a << s) & M32
    if odd >= part:
        m.put_pair(t, insn.args[0], even << 1 | 1, odd - part)
    else:
        m.put_pair(t, insn.args[0], even << 1, kept)
    return m.finish(t, insn, Seen(0, a, t.zf), write=False)


def _move(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a = m.get(t, insn.args[1])
    source = 0 if isinstance(insn.args[1], int) else a  # constants are "or rc, zero, imm"
    return _result(m, t, insn, Seen(a, source, t.zf))


def _movd(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    even, odd = m.get_pair(t, insn.args[1])
    m.put_pair(t, insn.args[0], *((even, odd) if base == "movd" else (odd, even)))
    return m.finish(t, insn, Seen(0, 0, t.zf), write=False)


def _neg(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    args = [insn.args[0], 0, insn.args[1]]
    return _add(m, t, Insn(insn.op, args, insn.cc, insn.target), "sub")


def _not(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    args = [insn.args[0], insn.args[1], -1]
    return _binary(m, t, Insn(insn.op, args, insn.cc, insn.target), "xor")


def _compare_jump(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    args = ["zero", insn.args[0], insn.args[1] if len(insn.args) > 1 else 0]
    return _add(m, t, Insn("sub", args, base[1:], insn.target), "sub")


def _call(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    rest = insn.args if base == "jump" else insn.args[1:]
    parts = [*rest] if insn.target is None else [*rest, insn.target]
    after = sum(m.get(t, part) for part in parts)
    if base == "call":
        m.put(t, insn, t.pc + 1)
    return after


def _address(m: Machine, t: Thread, size: int, base: object, offset: object) -> int:
    address = (m.get(t, base) + m.get(t, offset)) & M32
    if address + size > len(m.wram):
        raise m.fault(t, "memory", f"access of {size} bytes at {address:#x}")
    if address % size:
        raise m.fault(t, "alignment", f"access of {size} bytes at {address:#x}")
    return address


def _load(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    size = ACCESS_BYTES[base[1]]
    address = _address(m, t, size, insn.args[1], insn.args[2])
    value = int.from_bytes(m.wram[address : address + size], "big" if insn.big else "little")
    if base == "ld":
        m.put_pair(t, insn.args[0], value >> 32, value)
    else:
        m.put(t, insn, signed(value, 8 * size) & M32 if base.endswith("s") else value)
    return t.pc + 1


def _store(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    size = ACCESS_BYTES[base[1]]
    address = _address(m, t, size, insn.args[0], insn.args[1])
    value: int
    if base.endswith("_id"):
        value = t.index | (_immediate(insn.args[2], size) if len(insn.args) > 2 else 0)
    elif isinstance(insn.args[2], int):
        value = _immediate(insn.args[2], size)
    elif base == "sd":
        even, odd = m.get_pair(t, insn.args[2])
        value = even << 32 | odd
    else:
        value = m.get(t, insn.args[2])
    data = (value % (1 << 8 * size)).to_bytes(size, "big" if insn.big else "little")
    m.wram[address : address + size] = data
    return t.pc + 1


def _immediate(arg: object, size: int) -> int:
    """Stored constants have 8 bits (byte stores) or 16, and are sign-extended."""
    return signed(int(arg), 8 if size == 1 else 16)  # type: ignore[call-overload]


def _dma(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    near, far, n = (m.get(t, arg) for arg in insn.args)
    size = 8 * (1 + ((n + (near >> 24)) & 0xFF))
    wram, mram = near & 0x00FF_FFF8, far & 0xFFFF_FFF8 & ~MRAM_BASE_BIT
    limit = 8 * IRAM_INSNS if base == "ldmai" else len(m.wram)
    if mram + size > len(m.mram) or wram + size > limit:
        raise m.fault(t, "dma-range", f"{size} bytes, WRAM {wram:#x}, MRAM {mram:#x}")
    if base == "sdma":
        m.mram[mram : mram + size] = m.wram[wram : wram + size]
    elif base == "ldma":
        m.wram[wram : wram + size] = m.mram[mram : mram + size]
    else:
        m.load_code(wram // 8, bytes(m.mram[mram : mram + size]))
    timing = m.timing
    start = max(m.cycle * FRACTION, m.engine_free)
    latency = timing.write_latency if base == "sdma" else timing.read_latency
    m.engine_free = timing.after(start, timing.occupancy + timing.occupancy_per_byte * size)
    t.ready = max(t.ready, timing.after(start, latency + timing.per_byte * size))
    return t.pc + 1


def _atomic(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a = m.get(t, insn.args[0])
    v = a + m.get(t, insn.args[1])
    index = (v >> 8 ^ v) & 0xFF
    old, m.atomic[index] = m.atomic[index], int(base == "acquire")
    after = m.finish(t, insn, Seen(old, a, t.zf), write=False)
    t.zf = int(old == 0)
    return after


def _thread(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    a = m.get(t, insn.args[0])
    other = m.threads[((a + m.get(t, insn.args[1])) & M32) % len(m.threads)]
    old = other.run
    if base in ("boot", "resume"):
        other.run = True
        if not old:
            other.ready = max(other.ready, (m.cycle + 1) * FRACTION)
        if base == "boot" and not old:
            other.pc = 0
    elif base == "clr_run":
        other.run = False
    after = m.finish(t, insn, Seen(int(old), a, t.zf), write=False)
    t.zf = int(not old)
    return after


def _stop(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    t.run = False
    after = m.finish(t, insn, Seen(1, 0, t.zf), write=False)
    t.zf = 0
    return after


def _time(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    seen = Seen((m.counter() >> 4) & M32, 0, t.zf)
    if base == "time_cfg" and insn.args[0] != "zero":  # documented to have no effect without
        m.configure_counter(m.get(t, insn.args[1]))
    return m.finish(t, insn, seen)


def _nothing(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    return t.pc + 1


def _stop_fault(m: Machine, t: Thread, insn: Insn, base: str) -> int:
    raise m.fault(t, "fault", f"fault {m.get(t, insn.args[0]) if insn.args else 0}")


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(ADDER, _add),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(SHIFT, _shift),
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(UNIT, _unit),
    **dict.fromkeys(SHIFT_ADD, _shift_add),
    **dict.fromkeys(("lbs", "lbu", "lhs", "lhu", "lw", "ld"), _load),
    **dict.fromkeys(("sb", "sh", "sw", "sd", "sb_id", "sh_id", "sw_id", "sd_id"), _store),
    **dict.fromkeys(("ldma", "ldmai", "sdma"), _dma),
    **dict.fromkeys(("acquire", "release"), _atomic),
    **dict.fromkeys(("boot", "resume", "read_run", "clr_run"), _thread),
    **dict.fromkeys(("time", "time_cfg"), _time),
    **dict.fromkeys(("nop", "tell"), _nothing),
    **dict.fromkeys(("movd", "swapd"), _movd),
    **dict.fromkeys(("fault", "bkp"), _stop_fault),
    **dict.fromkeys(("call", "jump"), _call),
    **dict.fromkeys((f"j{cc}" for cc in CONDITION if cc not in ("true", "false")), _compare_jump),
    "mul_step": _mul_step,
    "div_step": _div_step,
    "move": _move,
    "not": _not,
    "neg": _neg,
    "stop": _stop,
}
