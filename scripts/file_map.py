#!/usr/bin/env python3
"""Rewrite the file map of docs/architecture.md: each source file with its own first sentence.

.venv/bin/python scripts/file_map.py
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
HEADING = "## Files\n"
FOLDERS = ("atim", "upmem_sim", "benchmarks", "examples")
KINDS = {".py", ".cc", ".h", ".def", ".c", ".s", ".S", ".csv"}
LONGEST = 150


def files() -> list[Path]:
    """Every source and data file of the map."""
    found = (p for folder in FOLDERS for p in (ROOT / folder).rglob("*"))
    return sorted(p for p in found if p.suffix in KINDS)


def opening(path: Path) -> str:
    """The comment or docstring that a file begins with, as one line."""
    text = path.read_text()
    if path.suffix == ".py":
        found = ast.get_docstring(ast.parse(text)) or ""
    elif match := re.match(r"\s*/\*+(.*?)\*/", text, re.S):
        found = re.sub(r"\n\s*\*+ ?", "\n", match[1])
    else:
        lines = re.match(r"(?:(?://|#(?!\w)|;|@).*\n)*", text)
        found = re.sub(r"^(?://|#|;|@) ?", "", lines[0] if lines else "", flags=re.M)
    return " ".join(found.strip().split("\n\n")[0].split())


def sentence(path: Path) -> str:
    """The first sentence about a file; an implementation without one has its header's."""
    told = opening(path)
    header = path.with_suffix(".h")
    if not told and path.suffix == ".cc" and header.exists():
        told = opening(header)
    end = re.search(r"[.;](?= |$)", told)
    told = told[: end.start()] if end else told
    return told if len(told) <= LONGEST else told[:LONGEST].rsplit(" ", 1)[0] + " ..."


def table() -> str:
    """The map, one table a folder."""
    parts, folder = [], None
    for path in sorted(files(), key=lambda p: (p.parent, p.name)):
        name = path.relative_to(ROOT)
        if path.parent != folder:
            folder = path.parent
            parts += [f"\n### `{name.parent}/`\n", "| file | what it holds |", "|---|---|"]
        told = sentence(path).replace("|", "\\|")
        parts.append(f"| `{name}` | {told} |")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    head = PAGE.read_text().split(HEADING)[0]
    PAGE.write_text(head + HEADING + table())
