"""The text a DPU program printed: decodes the ring of `printf` messages in MRAM.

One message: a format of literal runs (each written `%s`) and conversions, NUL; then the arguments,
strings with their NUL, `c` 1 byte, floating point 8, the others 4 or, with `l`, 8; zero padding to
8 bytes (UPMEM SDK, syslib/stdio.h).
"""

from __future__ import annotations

import re
import struct

from upmem_sim.dpu import Dpu
from upmem_sim.errors import SimError

BUFFER = "__stdout_buffer"
STATE = "__stdout_buffer_state"
_SPEC = re.compile(r"%([-+ #0]*)(\d*)(\.\d*)?([lL]*)(.)", re.DOTALL)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise SimError(f"printf log: damaged at byte {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def string(self) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise SimError(f"printf log: damaged at byte {self.at}")
        text = self.data[self.at : end]
        self.at = end + 1
        return text.decode("utf-8", "replace")


def _integer(reader: _Reader, long: bool, signed: bool) -> int:
    return int.from_bytes(reader.take(8 if long else 4), "little", signed=signed)


def _conversion(match: re.Match[str], reader: _Reader) -> str:
    flags, width, precision, length, letter = match.groups()
    spec, long = f"%{flags}{width}{precision or ''}", bool(length)
    if letter == "s":
        return (spec + "s") % reader.string()
    if letter == "c":
        return (spec + "s") % reader.take(1).decode("latin-1")
    if letter in "feEgGF":
        return str((spec + letter) % struct.unpack("<d", reader.take(8)))
    if letter in "di":
        return (spec + "d") % _integer(reader, long, True)
    if letter in "uxX":
        return (spec + letter.replace("u", "d")) % _integer(reader, long, False)
    if letter == "o":
        return ((spec + "o") % _integer(reader, long, False)).replace("0o", "0", 1)
    if letter == "p":
        return f"%{flags}{width}s" % f"{_integer(reader, long, False):#x}"
    if letter == "b":
        return f"%{flags}{width}s" % f"{_integer(reader, long, False):b}"
    reader.take(4)
    return match.group()


def decode_log(data: bytes) -> str:
    """Text of the messages in `data`, in order. Errors: SimError if they cannot be decoded."""
    reader, out = _Reader(data), []
    while reader.at < len(data):
        template = reader.string()
        out.append(_SPEC.sub(lambda match: _conversion(match, reader), template))
        reader.at = -(-reader.at // 8) * 8
    return "".join(out)


def read_log(dpu: Dpu) -> str | None:
    """What the last run of `dpu` printed; None for a program without `printf`.

    Errors: SimError if older messages were overwritten, or the log is damaged.
    """
    symbols = dpu.program.symbols
    if BUFFER not in symbols or STATE not in symbols:
        return None
    size = symbols[BUFFER].size
    end, wrapped = dpu.read(STATE, "<u4", 2).tolist()
    if wrapped:
        raise SimError(f"printf log: more than {size} bytes were printed, older ones are lost")
    if end > size:
        raise SimError(f"printf log: write offset {end}, limit {size}")
    return decode_log(dpu.read(BUFFER, "u1", end).tobytes())
