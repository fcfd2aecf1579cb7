"""On-disk cache of translated units: one file per key, written whole, safe for many processes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import tempfile
from collections.abc import Iterable
from pathlib import Path

from upmem_sim.objfile import Unit

MAX_ENTRIES = 2000
_SOURCES = Path(__file__).parent


def folder() -> Path:
    """The user's cache folder for this package."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "upmem_sim"


@functools.cache
def code_identity() -> str:
    """Hash of the translator and headers: entries of other versions are never used."""
    digest = hashlib.sha256()
    modules = _SOURCES.parent.glob("*.py")
    for path in sorted([*_SOURCES.glob("*.py"), *_SOURCES.glob("include/*.h"), *modules]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def key(parts: Iterable[str]) -> str:
    """Cache key of everything that decides a translation."""
    digest = hashlib.sha256(code_identity().encode())
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


def load(name: str) -> list[Unit] | None:
    """Units stored under a key, None if there are none (or the file is damaged)."""
    try:
        with open(folder() / name[:2] / name, "rb") as file:
            units = pickle.load(file)
    except Exception:  # a damaged entry is as good as none
        return None
    return units if isinstance(units, list) else None


def store(name: str, units: list[Unit]) -> None:
    """Keep units under a key. A cache that cannot be written is no error."""
    place = folder() / name[:2]
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=place, prefix=".new")
        try:
            with os.fdopen(descriptor, "wb") as file:
                pickle.dump(units, file, protocol=pickle.HIGHEST_PROTOCOL)
            os.replace(temporary, place / name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _prune(place)


def _prune(place: Path) -> None:
    """Drop the oldest entries of one of the 256 folders when it has more than its share."""
    entries = [entry for entry in os.scandir(place) if entry.is_file()]
    surplus = len(entries) - max(8, MAX_ENTRIES // 256)
    if surplus <= 0:
        return
    with contextlib.suppress(OSError):
        for entry in sorted(entries, key=lambda e: e.stat().st_mtime)[:surplus]:
            os.unlink(entry.path)
