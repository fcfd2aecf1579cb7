"""Which software a record was made with: the version, and a digest of what decides results."""

from __future__ import annotations

import functools
import hashlib
from importlib import metadata, util
from pathlib import Path

__all__ = ["software_version"]

# Searching, showing and storing change no measurement.
WITHOUT = (
    "atim/tuner",
    "atim/offload",
    "atim/cli.py",
    "atim/commands_",
    "atim/explain.py",
    "atim/machine",
    "atim/report.py",
    "atim/__init__.py",
    "upmem_sim/cli.py",
)
KINDS = (".py", ".so", ".h", ".c", ".s", ".csv", ".def")


@functools.cache
def software_version() -> str:
    """Like "0.1.0-5f3a9c01": changes whenever a file that decides results does."""
    digest = hashlib.sha256()
    for package in ("atim", "upmem_sim"):
        spec = util.find_spec(package)
        assert spec is not None
        for place in spec.submodule_search_locations or ():
            for path in _files(Path(place)):
                data = path.read_bytes()
                name = path.relative_to(Path(place).parent)
                digest.update(f"{name} {len(data)} ".encode() + data)
    return f"{metadata.version('atim')}-{digest.hexdigest()[:8]}"


def _files(folder: Path) -> list[Path]:
    found = [p for p in folder.rglob("*") if p.suffix in KINDS and p.is_file()]
    root = folder.parent
    return sorted(p for p in found if not str(p.relative_to(root)).startswith(WITHOUT))
