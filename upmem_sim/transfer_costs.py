"""Forms that the time of a copy, or of the host's sum, can take: fitted curves and measured tables.

Arrays of bytes (or elements) and DPUs go in, seconds come out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upmem_sim.params import SystemParams

__all__ = ["DPUS_PER_RANK", "Curve", "HostReduction", "Table", "WramCost", "monotone", "quantity"]

Floats = NDArray[np.float64]

DPUS_PER_RANK = SystemParams().dpus_per_rank


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
