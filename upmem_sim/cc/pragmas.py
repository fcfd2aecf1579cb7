"""Macros in unroll pragmas.

The preprocessor leaves their operands alone; the compiler expands them. Where preprocessing is a
run of its own, the macros are gone when the compiler reads the pragma. So the operands are
preprocessed once more, behind the end of the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_PRAGMA = re.compile(
    r"^(?P<head>[ \t]*\#[ \t]*pragma[ \t]+(?:(?:GCC[ \t]+)?unroll\b"
    r"|clang[ \t]+loop[ \t]+(?:interleave_count|unroll_count|vectorize_width)[ \t]*(?=\()))"
    r"[ \t]*(?P<operand>[^\n]*[A-Za-z_][^\n]*)$",
    re.MULTILINE,
)
_MARK = "__upmem_unroll_operand"


def expand(preprocessed: str, again: Callable[[str], str]) -> str:
    """The text with operands expanded. `again(lines)` preprocesses the source with these lines
    behind its end."""
    operands = list(dict.fromkeys(m["operand"] for m in _PRAGMA.finditer(preprocessed)))
    if not operands:
        return preprocessed
    values = _values(again(_request(operands)), len(operands))
    known = dict(zip(operands, values, strict=True))
    return _PRAGMA.sub(lambda m: f"{m['head']} {known[m['operand']]}", preprocessed)


def _request(operands: Sequence[str]) -> str:
    marks = [f"{_MARK}_{i} {operand} {_MARK}_end\n" for i, operand in enumerate(operands)]
    return "\n" + "".join(marks)


def _values(text: str, count: int) -> list[str]:
    out = []
    for i in range(count):
        match = re.search(rf"{_MARK}_{i}\b(.*?)\b{_MARK}_end\b", text, re.DOTALL)
        out.append(" ".join(match[1].split()) if match else "")
    return out
