"""Measures how fast a system copies, launches and adds, and makes it a transfer preset.

In: tools for DPUs (the SDK's, or upmem_sim's of the same names). Out: a file for
`Target(transfer="name.json")`. Each time is a median after a warm-up; what would move more bytes
than allowed is extrapolated from the two largest copies.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from atim.errors import HardwareError, RecordError
from atim.hardware import find_tools
from atim.machine.build import run_program
from upmem_sim.params import SystemParams
from upmem_sim.transfer_costs import HostReduction
from upmem_sim.transfer_file import TABLES, host_values, write_preset

__all__ = ["BYTES_IN_ALL", "REPEATS", "Calibration", "dpu_counts", "measure", "save", "values"]

BYTES_IN_ALL = 1 << 28  # of one copy: what the host holds
REPEATS = 9
LARGE = 1 << 24  # partial results: more than caches hold
SMALL = 1 << 20
RANK = SystemParams().dpus_per_rank

# (what, bytes per DPU, DPUs) -> seconds
Points = Mapping[tuple[str, int, int], float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Times of one system, and on how many DPUs they were taken."""

    points: Points
    dpus: tuple[int, ...]
    version: str


def dpu_counts(available: int) -> tuple[int, ...]:
    """Numbers of DPUs to measure: within a rank, then ranks by powers of two, then all."""
    counts = {1, 8, RANK, *(RANK << n for n in range(1, 6)), available}
    return tuple(sorted(n for n in counts if n <= available))


def measure(
    dpus: int = 0, *, repeats: int = REPEATS, bytes_in_all: int = BYTES_IN_ALL
) -> Calibration:
    """Time the system; `dpus` 0 means all that can be allocated.

    Raises ToolchainError (no tools) and HardwareError (fewer DPUs, a run failed).
    """
    tools = find_tools()
    available = int(run_program(tools, "probe.c").split()[1])
    if dpus > available:
        raise HardwareError(f"DPUs: {dpus} requested, limit {available} (can be allocated)")
    counts = dpu_counts(dpus or available)
    if len(counts) < 2:
        raise HardwareError(f"DPUs: {counts[0]} found, at least 2 needed")
    arguments = [str(repeats), str(bytes_in_all), *map(str, counts)]
    told = run_program(tools, "calibrate.c", arguments, kernel="calibrate_kernel.c")
    points = {}
    for line in told.splitlines():
        what, size, count, seconds = line.split()
        points[what, int(size), int(count)] = float(seconds)
    return Calibration(points, counts, tools.version)


def values(calibration: Calibration, name: str) -> dict[str, Any]:
    """The file's content (see `upmem_sim.transfer_file`)."""
    points, dpus = calibration.points, calibration.dpus
    launch_ms, per_rank_ms = _launch(points, dpus)
    return {
        "name": name,
        "source": f"atim calibrate on {platform.node()}, tools {calibration.version or 'unknown'}",
        **{key: _table(points, key, dpus) for key in TABLES},
        "broadcast_gain": round(_broadcast_gain(points, dpus), 3),
        "launch_ms": launch_ms,
        "launch_per_rank_ms": per_rank_ms,
        "host": host_values(_host(points)),
    }


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Write the file; RecordError when that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_preset(path, content)
    except OSError as error:
        raise RecordError(f"{path} can't be written: {error.strerror}") from error


def _table(points: Points, what: str, dpus: Sequence[int]) -> dict[str, Any]:
    sizes = sorted({size for kind, size, _ in points if kind == what})
    seconds: list[list[float]] = []
    for row, size in enumerate(sizes):
        seconds.append([])
        for column, count in enumerate(dpus):
            known = points.get((what, size, count))
            if known is None:
                known = _beyond(sizes[:row], [times[column] for times in seconds[:row]], size)
            seconds[row].append(known)
    return {"bytes": sizes, "dpus": list(dpus), "seconds": seconds}


def _beyond(sizes: Sequence[int], seconds: Sequence[float], size: int) -> float:
    """Along the line through the last two times; in proportion to the bytes if there is but one."""
    if len(sizes) < 2:
        return seconds[-1] * size / sizes[-1]
    slope = max(seconds[-1] - seconds[-2], 0.0) / (sizes[-1] - sizes[-2])
    return seconds[-1] + slope * (size - sizes[-1])


def _broadcast_gain(points: Points, dpus: Sequence[int]) -> float:
    """Rate of a broadcast over that of a push, where the largest copies were measured."""
    count = dpus[-1]
    sizes = sorted(size for kind, size, n in points if kind == "broadcast" and n == count)
    first, last = sizes[0], sizes[-1]
    push = points["to_mram", last, count] - points["to_mram", first, count]
    broadcast = points["broadcast", last, count] - points["broadcast", first, count]
    return max(push / broadcast, 1.0) if broadcast > 0 and push > 0 else 1.0


def _launch(points: Points, dpus: Sequence[int]) -> tuple[float, float]:
    """(ms, ms per rank): a line through the launches."""
    ranks = np.array([ceil(n / RANK) for n in dpus], dtype=np.float64)
    ms = np.array([points["launch", 0, n] for n in dpus]) * 1e3
    if len(set(ranks.tolist())) == 1:
        return float(ms.mean()), 0.0
    slope, start = np.polyfit(ranks, ms, 1)
    return float(max(start, 0.0)), float(max(slope, 0.0))


def _host(points: Points) -> HostReduction:
    """Additions on this host: one thread near and far, and what further threads give."""
    times = {(what, size): s for (what, size, _), s in points.items() if what.startswith("host")}
    threads = max(int(what.removeprefix("host")) for what, _ in times)
    fixed, far = times["host1", 0], times["host1", LARGE]
    fork, efficiency = 0.0, 1.0
    if threads > 1:
        fork = times[f"host{threads}", 0]
        gain = (far - fixed) / max(times[f"host{threads}", LARGE] - fork, 1e-9)
        efficiency = min(max((gain - 1) / (threads - 1), 0.0), 1.0)
    return HostReduction(
        host=f"{platform.node()}, {threads} processors",
        fixed_us=fixed * 1e6,
        near_ns=(times["host1", SMALL] - fixed) / SMALL * 1e9,
        far_ns=(far - fixed) / LARGE * 1e9,
        cache_bytes=4 * SMALL,
        fork_us=fork * 1e6,
        efficiency=efficiency,
        evidence="atim calibrate: 32-bit additions",
    )
