"""Host side time: copies to and from the DPUs, launch, and the reduction the host finishes.

Bytes and DPU counts go in, seconds come out; scalars give a float, NumPy arrays an array. Every
result grows with bytes and with DPUs. Two forms exist: a `Curve` fitted to published times of real
systems, and a `Table` of measured times. Presets name the system they reproduce. The `host` fields
say what was measured where; nothing here was measured by this project.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from upmem_sim.params import SystemParams

__all__ = ["PRESETS", "Curve", "HostReduction", "Table", "TransferModel", "WramCost"]

Floats = NDArray[np.float64]

SYSTEM = SystemParams()
DPUS_PER_RANK = SYSTEM.dpus_per_rank


def quantity(unit: str, meaning: str, low: float, high: float) -> Any:
    """A dataclass field that carries its unit, its meaning and the range seen in the sources."""
    return field(metadata={"unit": unit, "meaning": meaning, "range": (low, high)})


@dataclass(frozen=True, slots=True)
class Curve:
    """t = fixed + per_rank x ranks + bytes / min(cap, rank_rate x (DPUs / 64) ^ exponent).

    One call of dpu_push_xfer. The square-root growth of the rate with DPUs holds for three
    systems; they differ in how far it goes, hence `cap`.
    """

    fixed_ms: float = quantity("ms", "one call, one DPU or many", 0.023, 0.15)
    per_rank_ms: float = quantity("ms/rank", "added by each rank the call touches", 0.009, 0.018)
    rank_gb_s: float = quantity("GB/s", "rate of one full rank", 1.5, 10.0)
    exponent: float = quantity("1", "growth of the rate with DPUs", 0.42, 0.56)
    cap_gb_s: float = quantity("GB/s", "the rate never exceeds this", 7.0, 58.0)
    evidence: str = ""

    def seconds(self, nbytes: Floats, dpus: Floats) -> Floats:
        """Time of a copy of `nbytes` per DPU."""
        ranks = np.ceil(dpus / DPUS_PER_RANK)
        rate = self.rank_gb_s * 1e9 * (dpus / DPUS_PER_RANK) ** self.exponent
        rate = np.minimum(rate, self.cap_gb_s * 1e9)
        fixed: Floats = (self.fixed_ms + self.per_rank_ms * ranks) * 1e-3
        return fixed + nbytes * dpus / rate


@dataclass(frozen=True, slots=True)
class Table:
    """Measured times on a grid of bytes and DPUs, interpolated linearly between logarithms.

    Measured tables have dips (more DPUs, less time); `table` first replaces them by the nearest
    monotone table in the least-squares sense. Below the smallest number of DPUs the part that
    depends on bytes shrinks as DPUs ^ `below`; beyond the table time is proportional.
    """

    nbytes: tuple[int, ...]
    dpus: tuple[int, ...]
    seconds_at: tuple[tuple[float, ...], ...]  # [bytes][dpus]
    below: float = quantity("1", "growth with DPUs within the first rank", 0.4, 0.6)
    evidence: str = ""

    def seconds(self, nbytes: Floats, dpus: Floats) -> Floats:
        """Time of a copy of `nbytes` per DPU."""
        first = float(self.dpus[0])
        at = self._interpolate(nbytes, np.maximum(dpus, first))
        floor = self._interpolate(np.full_like(nbytes, self.nbytes[0]), np.full_like(dpus, first))
        shrink = np.minimum(dpus / first, 1.0) ** self.below
        return np.where(dpus < first, floor + (at - floor) * shrink, at)

    def _interpolate(self, nbytes: Floats, dpus: Floats) -> Floats:
        grid = np.log(np.array(self.seconds_at))
        last = (float(self.nbytes[-1]), float(self.dpus[-1]))
        row, down = _cell(np.clip(nbytes, self.nbytes[0], last[0]), self.nbytes)
        col, right = _cell(np.minimum(dpus, last[1]), self.dpus)
        upper = grid[row, col] * (1 - right) + grid[row, col + 1] * right
        lower = grid[row + 1, col] * (1 - right) + grid[row + 1, col + 1] * right
        beyond = np.maximum(nbytes / last[0], 1.0) * np.maximum(dpus / last[1], 1.0)
        result: Floats = np.exp(upper * (1 - down) + lower * down) * beyond
        return result


@dataclass(frozen=True, slots=True)
class WramCost:
    """t = fixed + per_rank x ranks + per_byte x bytes x DPUs of a rank x (1 + ranks / slowdown).

    WRAM variables pass through the control interface of the chips, one DPU after the other
    within a rank and the ranks side by side.
    """

    fixed_ms: float = quantity("ms", "one call", 0.10, 0.23)
    per_rank_ms: float = quantity("ms/rank", "added by each rank", 0.0, 0.01)
    per_byte_us: float = quantity("us/(B DPU)", "each byte of each DPU of a rank", 0.055, 0.062)
    slowdown_ranks: float = quantity("ranks", "as many ranks double the time", 45.0, 55.0)
    evidence: str = ""

    def seconds(self, nbytes: Floats, dpus: Floats) -> Floats:
        """Time of a copy of `nbytes` per DPU."""
        ranks = np.ceil(dpus / DPUS_PER_RANK)
        serial = self.per_byte_us * 1e-6 * nbytes * np.minimum(dpus, DPUS_PER_RANK)
        fixed: Floats = (self.fixed_ms + self.per_rank_ms * ranks) * 1e-3
        return fixed + serial * (1 + ranks / self.slowdown_ranks)


@dataclass(frozen=True, slots=True)
class HostReduction:
    """Time of adding partial results on the host, for a stated host.

    One thread adds an element in `near_ns` while the partial results fit the cache and in
    `far_ns` when they do not; between `cache_bytes` and twice as many the cost grows with the
    logarithm. Threads divide the time by threads x efficiency after `fork_us`.
    """

    host: str
    fixed_us: float = quantity("us", "entering the loop, first touch", 30.0, 50.0)
    near_ns: float = quantity("ns/element", "one add, cached", 1.6, 3.2)
    far_ns: float = quantity("ns/element", "one add, from memory", 4.4, 4.9)
    cache_bytes: int = quantity("B", "largest set that was still fast", 8.4e6, 16.8e6)
    fork_us: float = quantity("us", "starting and joining the threads", 5.0, 50.0)
    efficiency: float = quantity("1", "of each further thread", 0.4, 0.9)
    evidence: str = ""

    def seconds(self, elements: Floats, element_bytes: int, threads: int) -> Floats:
        """Time of adding `elements` partial results in all."""
        beyond = np.log2(np.maximum(elements * element_bytes / self.cache_bytes, 1.0))
        each = self.near_ns + (self.far_ns - self.near_ns) * np.minimum(beyond, 1.0)
        work = elements * each * 1e-9
        if threads > 1:
            work = work / (1 + (threads - 1) * self.efficiency) + self.fork_us * 1e-6
        result: Floats = work + self.fixed_us * 1e-6
        return result


@dataclass(frozen=True, slots=True)
class TransferModel:
    """The host side of one system. `TransferModel.preset(name)` gives the measured ones."""

    name: str
    inward: Curve | Table
    outward: Curve | Table
    wram_in: WramCost | Table
    wram_out: WramCost | Table
    reduction: HostReduction
    broadcast_gain: float = quantity("1", "rate of a broadcast over that of a push", 1.0, 2.6)
    launch_ms: float = quantity("ms", "synchronous launch of one kernel", 0.05, 0.2)
    launch_per_rank_ms: float = quantity("ms/rank", "added by each rank", 0.007, 0.011)

    @staticmethod
    def preset(name: str = "common") -> TransferModel:
        """The system called `name`, or that of a file name.json (see `transfer_file`).

        ValueError lists the names when there is none, or says what is wrong with the file.
        """
        if name.endswith(".json"):
            return _preset_file(name)
        if name not in PRESETS:
            raise ValueError(f"transfer preset {name!r} is unknown: {', '.join(PRESETS)}")
        return _preset(name)

    @overload
    def to_dpus(self, bytes_per_dpu: int, dpus: int) -> float: ...
    @overload
    def to_dpus(self, bytes_per_dpu: ArrayLike, dpus: ArrayLike) -> Floats: ...
    def to_dpus(self, bytes_per_dpu: ArrayLike, dpus: ArrayLike) -> float | Floats:
        """Seconds of one push of `bytes_per_dpu` different bytes to the MRAM of each DPU."""
        return _seconds(self.inward, bytes_per_dpu, dpus)

    @overload
    def from_dpus(self, bytes_per_dpu: int, dpus: int) -> float: ...
    @overload
    def from_dpus(self, bytes_per_dpu: ArrayLike, dpus: ArrayLike) -> Floats: ...
    def from_dpus(self, bytes_per_dpu: ArrayLike, dpus: ArrayLike) -> float | Floats:
        """Seconds of one pull of `bytes_per_dpu` from the MRAM of each DPU."""
        return _seconds(self.outward, bytes_per_dpu, dpus)

    @overload
    def broadcast(self, nbytes: int, dpus: int) -> float: ...
    @overload
    def broadcast(self, nbytes: ArrayLike, dpus: ArrayLike) -> Floats: ...
    def broadcast(self, nbytes: ArrayLike, dpus: ArrayLike) -> float | Floats:
        """Seconds of dpu_broadcast_to: the same `nbytes` to the MRAM of every DPU."""
        return _seconds(self.inward, np.asarray(nbytes) / self.broadcast_gain, dpus)

    @overload
    def to_wram(self, bytes_per_dpu: int, dpus: int) -> float: ...
    @overload
    def to_wram(self, bytes_per_dpu: ArrayLike, dpus: ArrayLike) -> Floats: ...
    def to_wram(self, bytes_per_dpu: ArrayLike, dpus: ArrayLike) -> float | Floats:
        """Seconds of one push to a WRAM variable of each DPU."""
        return _seconds(self.wram_in, bytes_per_dpu, dpus)

    @overload
    def from_wram(self, bytes_per_dpu: int, dpus: int) -> float: ...
    @overload
    def from_wram(self, bytes_per_dpu: ArrayLike, dpus: ArrayLike) -> Floats: ...
    def from_wram(self, bytes_per_dpu: ArrayLike, dpus: ArrayLike) -> float | Floats:
        """Seconds of one pull from a WRAM variable of each DPU."""
        return _seconds(self.wram_out, bytes_per_dpu, dpus)

    @overload
    def launch(self, dpus: int) -> float: ...
    @overload
    def launch(self, dpus: ArrayLike) -> Floats: ...
    def launch(self, dpus: ArrayLike) -> float | Floats:
        """Seconds a synchronous launch costs besides the kernel's own cycles."""
        counts = _checked("DPUs", dpus)
        ranks = np.ceil(counts / DPUS_PER_RANK)
        return _plain((self.launch_ms + self.launch_per_rank_ms * ranks) * 1e-3)

    @overload
    def host_reduce(self, elements: int, element_bytes: int, threads: int = 1) -> float: ...
    @overload
    def host_reduce(self, elements: ArrayLike, element_bytes: int, threads: int = 1) -> Floats: ...
    def host_reduce(
        self, elements: ArrayLike, element_bytes: int, threads: int = 1
    ) -> float | Floats:
        """Seconds to add `elements` partial results of `element_bytes`; nothing when none."""
        count = _checked("elements", elements)
        spent = self.reduction.seconds(count, element_bytes, threads)
        return _plain(np.where(count > 0, spent, 0.0))


def _checked(what: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if np.any(array < 0):
        raise ValueError(f"{what}: {array.min():g} is below 0")
    return array


def _plain(values: Floats) -> float | Floats:
    return float(values) if values.ndim == 0 else values


def _seconds(cost: Curve | Table | WramCost, nbytes: ArrayLike, dpus: ArrayLike) -> float | Floats:
    """A call that moves nothing is not made, so it takes no time."""
    size, count = np.broadcast_arrays(_checked("bytes", nbytes), _checked("DPUs", dpus))
    idle = (size == 0) | (count == 0)
    spent = cost.seconds(np.maximum(size, 1e-9), np.maximum(count, 1.0))
    return _plain(np.where(idle, 0.0, spent))


def _cell(values: Floats, knots: tuple[int, ...]) -> tuple[NDArray[np.intp], Floats]:
    """Index of the cell of each value and its place in it, on a logarithmic axis."""
    axis = np.log(np.array(knots, dtype=np.float64))
    at = np.log(values)
    cell = np.clip(np.searchsorted(axis, at, side="right") - 1, 0, len(axis) - 2)
    return cell, (at - axis[cell]) / (axis[cell + 1] - axis[cell])


def _nondecreasing(values: Floats) -> Floats:
    """Nearest non-decreasing sequence (pool adjacent violators)."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values:
        means.append(float(value))
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            total = sizes[-2] + sizes[-1]
            mean = (means[-2] * sizes[-2] + means[-1] * sizes[-1]) / total
            means[-2:], sizes[-2:] = [mean], [total]
    return np.repeat(np.array(means), sizes)


def monotone(table: Floats, rounds: int = 200) -> Floats:
    """Nearest table that decreases along neither axis (Dykstra's alternating projections)."""
    result = table.copy()
    row_rest, column_rest = np.zeros_like(table), np.zeros_like(table)
    for _ in range(rounds):
        rows = np.array([_nondecreasing(r) for r in result + row_rest])
        row_rest = result + row_rest - rows
        result = np.array([_nondecreasing(c) for c in (rows + column_rest).T]).T
        column_rest = rows + column_rest - result
    return np.maximum.accumulate(np.maximum.accumulate(result, axis=0), axis=1)


def measured_points() -> dict[tuple[str, str, int, int], float]:
    """(direction, memory, bytes per DPU, DPUs) -> seconds, of the cloud server's table."""
    text = resources.files("upmem_sim").joinpath("data/cloud_2024.csv").read_text()
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        (r["direction"], r["memory"], int(r["bytes_per_dpu"]), int(r["dpus"])): (
            float(r["microseconds"]) * 1e-6
        )
        for r in rows
    }


def _table(direction: str, memory: str, below: float) -> Table:
    points = {k[2:]: t for k, t in measured_points().items() if k[:2] == (direction, memory)}
    nbytes = sorted({b for b, _ in points})
    dpus = sorted({d for _, d in points})
    seconds = np.array([[points[b, d] for d in dpus] for b in nbytes])
    grid = np.exp(monotone(np.log(seconds)))
    return Table(
        tuple(nbytes), tuple(dpus), tuple(map(tuple, grid.tolist())), below, "downmem, e96e167"
    )


_THREE = (
    "least squares over the hardware columns of VIA-Research/uPIMulator input.xlsx (870d916; 1 to"
    " 64 DPUs), benbii/downmem upmemLut-mramxfer.c (e96e167; 64 to 2560) and ATiM's artifact result"
    " CSV (224 to 2048 DPUs): mean absolute error 31, 33, 23 % in and 13.5, 24, 18 % out"
)
_ATIM = "fit to ATiM's artifact result CSV, SDK 2021.3: mean absolute error 20 % in, 18 % out"
_KERN = "fit to uPIMulator input.xlsx, 870d916: mean absolute error 26 % in, 13 % out"

# fixed ms, ms per rank, GB/s of a rank, exponent, GB/s at most, evidence
CURVES = {
    ("common", "in"): Curve(0.07, 0.018, 5.9, 0.56, 58.0, _THREE),
    ("common", "out"): Curve(0.13, 0.0097, 1.66, 0.51, 15.0, _THREE),
    ("upmem-2021.3-2048dpu", "in"): Curve(0.08, 0.014, 5.5, 0.5, 11.0, _ATIM),
    ("upmem-2021.3-2048dpu", "out"): Curve(0.13, 0.010, 1.7, 0.5, 9.0, _ATIM),
    ("kern", "in"): Curve(0.023, 0.01, 4.35, 0.427, 58.0, _KERN),
    ("kern", "out"): Curve(0.12, 0.01, 1.5, 0.48, 15.0, _KERN),
}

_WRAM = "downmem wramxfer.c, e96e167, and the RED rows of uPIMulator input.xlsx: 0.06 us a byte"
WRAM = {
    "in": WramCost(0.20, 0.005, 0.06, 50.0, _WRAM),
    "out": WramCost(0.10, 0.005, 0.06, 50.0, _WRAM),
}

ATIM_HOST = HostReduction(
    host="server of ATiM's artifact (model not published; 96 cores in its target defaults)",
    fixed_us=40.0,
    near_ns=2.0,
    far_ns=4.6,
    cache_bytes=8_400_000,
    fork_us=20.0,
    efficiency=0.7,
    evidence="host column of preliminary_experiment.py (yongwonshin/atim, 5102b370b): serial"
    " 1.9 to 2.0 ns an element from 64 to 256 pieces, 4.5 to 4.7 beyond 16 MB. fork_us and"
    " efficiency are assumed: no published schedule reduces in parallel",
)

# PrIM (arXiv 2105.03814): 16.88 GB/s broadcast against 6.68 GB/s parallel within one rank
BROADCAST_GAIN = 2.5

PRESETS = ("common", "upmem-2021.3-2048dpu", "cloud-2024", "kern")


@cache
def _preset_file(path: str) -> TransferModel:
    from upmem_sim.transfer_file import read_preset  # which needs this module

    return read_preset(path)


@cache
def _preset(name: str) -> TransferModel:
    inward: Curve | Table
    outward: Curve | Table
    wram_in: WramCost | Table = WRAM["in"]
    wram_out: WramCost | Table = WRAM["out"]
    if name == "cloud-2024":
        # below one rank: 1 - 0.54 and 1 - 0.47, the exponents fitted to the same tables
        inward, outward = _table("in", "mram", 0.46), _table("out", "mram", 0.53)
        wram_in, wram_out = _table("in", "wram", 1.0), _table("out", "wram", 1.0)
    else:
        inward, outward = CURVES[name, "in"], CURVES[name, "out"]
    return TransferModel(
        name,
        inward,
        outward,
        wram_in,
        wram_out,
        ATIM_HOST,
        BROADCAST_GAIN,
        SYSTEM.launch_ms,
        SYSTEM.launch_ms_per_rank,
    )
