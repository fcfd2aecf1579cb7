"""Constant formats of `printf` in LLVM IR: what the log cannot show is refused.

The log keeps the arguments one after the other, so a conversion of unknown size would shift all
that follow. `long double` is double on a DPU; there are no wide characters and no `%n`.
"""

from __future__ import annotations

import re

from upmem_sim.cc.ir_text import place
from upmem_sim.errors import CompileError

PRINTF = "@printf("
_CALL = re.compile(r"call void \(ptr, \.\.\.\) @printf\(ptr [^@%,]*@([\w.$]+)[,)]")
_TEXT = re.compile(r'^@([\w.$]+) = .*\bconstant \[\d+ x i8\] c"([^"]*)\\00"')
_CONVERSION = re.compile(
    r"%(?P<form>[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?)(?P<length>[hljztL]*)(?P<letter>.?)",
    re.DOTALL,
)
_LENGTHS = {
    **dict.fromkeys("diuxXob", ("", "hh", "h", "l", "ll", "j", "z", "t")),
    **dict.fromkeys("csp", ("",)),
    **dict.fromkeys("eEfFgG", ("", "l", "L")),
}


def check_formats(lines: list[str], file: str) -> None:
    """Errors: CompileError, with file:line when debug lines are in the IR."""
    texts = {m[1]: m[2] for line in lines if line[:1] == "@" and (m := _TEXT.match(line))}
    for line in lines:
        call = _CALL.search(line) if PRINTF in line else None
        unknown = _unknown(_plain(texts.get(call[1], ""))) if call else None
        if unknown is not None:
            known = "c s d i u x X o b p e E f F g G"
            message = f"printf has no conversion {unknown!r} on a DPU, only {known}"
            raise CompileError(f"{place(lines, line, file)}: error: {message}")


def _plain(text: str) -> str:
    """The C string of a constant: escapes are a backslash and two hexadecimal digits."""
    return re.sub(r"\\([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), text).partition("\0")[0]


def _unknown(text: str) -> str | None:
    """The first conversion that is none."""
    for match in _CONVERSION.finditer(text):
        if match[0] != "%%" and match["length"] not in _LENGTHS.get(match["letter"], ()):
            return match[0]
    return None
