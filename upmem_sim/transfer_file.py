"""A measured system as a file: what `TransferModel.preset("name.json")` reads.

JSON with a table of seconds for each kind of copy, [bytes per DPU][DPUs], the launch's fit, and the
host's reduction. Tables are made monotone when they are read, as those of the package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from upmem_sim.transfer_costs import HostReduction, Table, monotone

__all__ = ["TABLES", "host_values", "read_preset", "write_preset"]

# key in the file -> field of TransferModel, growth with DPUs below the smallest number measured
TABLES = {
    "to_mram": ("inward", 0.46),
    "from_mram": ("outward", 0.53),
    "to_wram": ("wram_in", 1.0),
    "from_wram": ("wram_out", 1.0),
}
_NUMBERS = ("broadcast_gain", "launch_ms", "launch_per_rank_ms")


def write_preset(path: str | Path, values: Mapping[str, Any]) -> None:
    """Write the file. `values`: name, source, one {"bytes", "dpus", "seconds"} for each of TABLES,
    broadcast_gain, launch_ms, launch_per_rank_ms, and host (the fields of HostReduction)."""
    text = json.dumps(dict(values), indent=1)
    Path(path).write_text(text + "\n")


def read_preset(path: str | Path) -> dict[str, Any]:
    """The fields of the TransferModel in a file; ValueError, in one line, when it is missing or
    not such a file."""
    try:
        values = json.loads(Path(path).read_text())
    except OSError as error:
        raise ValueError(f"transfer preset {path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"transfer preset {path} is not JSON: {error}") from error
    expected = ("name", "source", *TABLES, *_NUMBERS, "host")
    missing = [key for key in expected if not isinstance(values, dict) or key not in values]
    if missing:
        what = f"{missing[0]!r} is missing" if isinstance(values, dict) else "no JSON object"
        raise ValueError(f"transfer preset {path}: {what}; atim calibrate writes such files")
    try:
        source = str(values["source"])
        parts: dict[str, Any] = {
            name: _table(values[key], below, source) for key, (name, below) in TABLES.items()
        }
        parts |= {key: float(values[key]) for key in _NUMBERS}
        known = {f.name for f in fields(HostReduction)}
        host = HostReduction(**{k: v for k, v in values["host"].items() if k in known})
        return {"name": str(values["name"]), "reduction": host, **parts}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"transfer preset {path} can't be read: {what}") from error


def host_values(host: HostReduction) -> dict[str, Any]:
    """A reduction as `write_preset` takes it."""
    return asdict(host)


def _table(values: Mapping[str, Any], below: float, source: str) -> Table:
    seconds = np.array(values["seconds"], dtype=np.float64)
    nbytes, dpus = tuple(map(int, values["bytes"])), tuple(map(int, values["dpus"]))
    if seconds.shape != (len(nbytes), len(dpus)) or min(seconds.shape) < 2:
        raise ValueError(f"a table of {len(nbytes)} sizes and {len(dpus)} numbers of DPUs expected")
    if not np.all(seconds > 0) or list(nbytes) != sorted(nbytes) or list(dpus) != sorted(dpus):
        raise ValueError("sizes and DPUs must grow, times must be more than 0")
    grid = np.exp(monotone(np.log(seconds)))
    return Table(nbytes, dpus, tuple(map(tuple, grid.tolist())), below, source)
