"""C lines of code that our own headers inline are those of the caller.

`mram_read` and its like are inline functions: without this, faults and profiles would name a line
of mram.h. In the debug part of LLVM IR text, a place inside a function of our headers becomes the
place that it was inlined at.
"""

from __future__ import annotations

import re
from pathlib import Path

from upmem_sim.cc.clang import INCLUDE_DIR

_FILE = re.compile(r'^(!\d+) = !DIFile\(filename: "([^"]*)", directory: "([^"]*)"', re.MULTILINE)
_SCOPE = re.compile(
    r"^(!\d+) = (?:distinct )?!DI(?:Subprogram|LexicalBlock|LexicalBlockFile)\(.*?file: (!\d+)",
    re.MULTILINE,
)
_PLACE = re.compile(
    r"^(!\d+) = (?:distinct )?(!DILocation\(line: \d+.*?scope: (!\d+)"
    r"(?:, inlinedAt: (!\d+))?.*\))$",
    re.MULTILINE,
)


def _is_own(path: Path) -> bool:
    return path.parent == INCLUDE_DIR


def outside_headers(ir: str) -> str:
    """IR text whose places lie in the program's own files wherever a call of it is known."""
    own = {n for n, name, folder in _FILE.findall(ir) if _is_own(Path(folder, name))}
    scopes = {n for n, file in _SCOPE.findall(ir) if file in own}
    if not scopes:
        return ir
    places = {m[1]: (m[2], m[3], m[4]) for m in _PLACE.finditer(ir)}

    def moved(match: re.Match[str]) -> str:
        body, scope, inlined = places[match[1]]
        while scope in scopes and inlined in places:
            body, scope, inlined = places[inlined]
        return match[0] if body == match[2] else f"{match[1]} = {body}"

    return _PLACE.sub(moved, ir)
