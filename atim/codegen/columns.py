"""Long lines of C, cut to the width of a screen."""

from __future__ import annotations

import re

__all__ = ["MAX_COLUMNS", "wrapped"]

MAX_COLUMNS = 100
# the space at which a line may go on in the next one: after a comma, or before an operator
_CUT = re.compile(r"(?<=,) | (?=(?:&&|\|\||[?:+*-]|\+?=) )")
# what binds weakest is cut first
_WEAKEST = ("?", ":", "||", "&&", "+", "-", "*")


def wrapped(line: str) -> list[str]:
    """The line, cut where the fewest brackets are open and between what binds weakest, continued
    with a deeper indentation."""
    indent = " " * (len(line) - len(line.lstrip()) + 8)
    lines = []
    while len(line) > MAX_COLUMNS:
        least = max(len(indent), MAX_COLUMNS // 3)
        cuts = [m.start() for m in _CUT.finditer(line) if least < m.start() <= MAX_COLUMNS]
        if not cuts:
            break
        cut = min(cuts, key=lambda at: (*_binding(line, at), -at))
        lines.append(line[:cut])
        line = indent + line[cut + 1 :]
    return [*lines, line]


def _binding(line: str, cut: int) -> tuple[int, int]:
    """How tightly the parts on both sides hold together: (open brackets, place among operators)."""
    depth, operator = _open(line[:cut]), line[cut + 1 :].split(" ", 1)[0]
    if line[cut - 1] == "," or operator not in _WEAKEST:
        return depth + (operator == "="), 0
    return depth, 1 + _WEAKEST.index(operator)


def _open(text: str) -> int:
    """Brackets that are still open at the end of the text."""
    return sum(text.count(c) for c in "([") - sum(text.count(c) for c in ")]")
