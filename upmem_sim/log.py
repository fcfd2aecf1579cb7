"""What a DPU printed: decodes the log that `printf` leaves in MRAM.

Messages follow each other in a ring `__stdout_buffer`; each holds a format string, its arguments,
and zeros up to a multiple of 8 bytes (layout in cc/rt/stdio.c).
"""

from __future__ import annotations

import re
import struct

import numpy as np

from upmem_sim.arguments import instance
from upmem_sim.dpu import Dpu
from upmem_sim.errors import SimError

_CONVERSION = re.compile(r"%([-+ #0]*\d*(?:\.\d*)?)(l*)(.)", re.DOTALL)
_UNSIGNED = "uxXopb"


def read_log(dpu: Dpu) -> str:
    """Text that the last run printed.

    Errors: SimError when the ring was too small and messages are lost, or holds no valid messages.
    """
    instance("dpu", dpu, Dpu)
    if not {"__stdout_buffer_state", "__stdout_buffer"} <= dpu.program.symbols.keys():
        return ""
    offset, wrapped = dpu.read("__stdout_buffer_state", np.uint32, 2).tolist()
    size = dpu.program.symbols["__stdout_buffer"].size
    if wrapped:
        raise SimError(f"log: more than {size} bytes printed, earlier messages are lost")
    return decode_log(dpu.read("__stdout_buffer", np.uint8, offset).tobytes())


def decode_log(data: bytes) -> str:
    """Text of the messages in `data`. Errors: SimError if they are no messages."""
    out: list[str] = []
    at = 0
    try:
        while at < len(data):
            at = -(-_message(data, at, out) // 8) * 8
    except (IndexError, ValueError, struct.error):
        raise SimError(f"log: damaged message at byte {at}") from None
    return "".join(out)


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode("utf-8", "replace"), end + 1


def _message(data: bytes, at: int, out: list[str]) -> int:
    """Append the text of the message at `at`; where its arguments end."""
    formats, at = _string(data, at)
    plain = 0
    for match in _CONVERSION.finditer(formats):
        flags, longs, letter = match.groups()
        out.append(formats[plain : match.start()])
        plain = match.end()
        value: str | int | float
        if letter == "s":
            value, at = _string(data, at)
        elif letter == "c":
            value, at = chr(data[at]), at + 1
        elif letter in "feEgG":
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            kind = "<" + ("Q" if longs else "I")
            value, at = struct.unpack_from(kind, data, at)[0], at + struct.calcsize(kind)
            out.append(_integer(flags, letter, int(value), 64 if longs else 32))
            continue
        out.append(f"%{flags}{letter}" % value)
    out.append(formats[plain:])
    return at


def _integer(flags: str, letter: str, value: int, bits: int) -> str:
    if letter == "p":
        return f"0x{value:08x}"
    if letter == "b":
        return f"{value:b}"
    if letter not in _UNSIGNED + "d":
        return f"%{flags}{letter}"
    if letter == "d" and value >> (bits - 1):
        value -= 1 << bits
    if letter in "xXo" and "#" in flags:
        digits = f"%{flags.replace('#', '')}{letter}" % value
        return {"x": "0x", "X": "0X", "o": "0"}[letter] + digits if value else digits
    return f"%{flags}{'d' if letter == 'u' else letter}" % value
