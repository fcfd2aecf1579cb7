"""What a DPU printed: decodes the log that `printf` leaves in MRAM.

Messages follow each other in a ring `__stdout_buffer`; each holds a format string, its arguments,
and zeros up to a multiple of 8 bytes (layout in cc/rt/stdio.c).
"""

from __future__ import annotations

import math
import re
import struct
from typing import Any

import numpy as np

from upmem_sim.arguments import instance
from upmem_sim.dpu import Dpu
from upmem_sim.errors import SimError

_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d*)(\.\*|\.\d*)?(l*)(.)", re.DOTALL)
_INTEGERS = "duxXob"


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


def _number(data: bytes, at: int, kind: str) -> tuple[Any, int]:
    return struct.unpack_from("<" + kind, data, at)[0], at + struct.calcsize("<" + kind)


def _message(data: bytes, at: int, out: list[str]) -> int:
    """Append the text of the message at `at`; where its arguments end."""
    formats, at = _string(data, at)
    plain = 0
    for match in _CONVERSION.finditer(formats):
        out.append(formats[plain : match.start()])
        plain = match.end()
        text, at = _conversion(match, data, at)
        out.append(text)
    out.append(formats[plain:])
    return at


def _conversion(match: re.Match[str], data: bytes, at: int) -> tuple[str, int]:
    """Text of one conversion whose arguments lie at `at`; where they end."""
    flags, width, precision, longs, letter = match.groups()
    if width == "*":
        number, at = _number(data, at, "i")
        flags, width = flags + "-" * (number < 0), str(abs(number))
    if precision == ".*":
        number, at = _number(data, at, "i")
        precision = f".{number}" if number >= 0 else None
    spec = f"{flags}{width}{precision or ''}"
    value: str | int | float
    if letter == "%":
        return "%", at
    if letter == "s" and not longs:
        value, at = _string(data, at)
    elif letter == "c":
        value, at = chr(data[at]), at + 1
    elif letter in "feEgGF":
        real: float
        real, at = _number(data, at, "d")
        value = real
        if not math.isfinite(real):  # no zeros in front of it
            spec = spec.replace("0", "", flags.count("0"))
    elif letter == "p":
        number, at = _number(data, at, "I")
        value, letter = f"0x{number:08x}", "s"
        spec = f"{flags}{width}"
    elif letter in _INTEGERS:
        number, at = _number(data, at, "Q" if longs else "I")
        bits = 64 if longs else 32
        return _integer(flags, int(width or 0), precision, letter, number, bits), at
    else:
        at += 8 if letter in "aA" else 4
        return f"<{match[0]}: no conversion of printf here>", at
    return f"%{spec}{letter}" % value, at


def _integer(
    flags: str, width: int, precision: str | None, letter: str, value: int, bits: int
) -> str:
    """As C's printf has it: Python's own has other prefixes, and zeros despite a precision."""
    sign = ""
    if letter == "d":
        value -= value >> (bits - 1) << bits
        sign = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
    digits = format(abs(value), "d" if letter == "u" else letter)
    if precision is not None:
        least = int(precision[1:] or 0)
        digits = digits.rjust(least, "0") if value or least else ""
    if "#" in flags and letter in "xXb" and value:
        sign = "0" + letter
    elif "#" in flags and letter == "o" and not digits.startswith("0"):
        sign = "0"
    if "-" in flags:
        return (sign + digits).ljust(width)
    if "0" in flags and precision is None:
        digits = digits.rjust(width - len(sign), "0")
    return (sign + digits).rjust(width)
