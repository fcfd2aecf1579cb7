"""Host side time: copies to and from the DPUs, launch, and the reduction the host finishes.

Bytes and DPU counts go in, seconds come out; scalars give a float, NumPy arrays an array. Every
result grows with bytes and with DPUs. Presets name the system they reproduce. The `host` fields
say what was measured where; nothing here was measured by this project.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from upmem_sim.params import SystemParams
from upmem_sim.transfer_costs import (
    DPUS_PER_RANK,
    Curve,
    HostReduction,
    Table,
    WramCost,
    monotone,
    quantity,
)
from upmem_sim.transfer_file import read_preset

__all__ = ["PRESETS", "TransferModel"]

Floats = NDArray[np.float64]

SYSTEM = SystemParams()


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
    launch_per_rank_ms: float = quantity("ms/rank", "added by each rank", 0.005, 0.009)

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

# PrIM (arXiv 2105.03814): 16.88 GB/s broadcast against 6.68 GB/s parallel within one rank. Of
# ATiM's server no broadcast is known, and its rates are those of pushes of what all DPUs share.
BROADCAST_GAIN = 2.5
NO_BROADCASTS = ("upmem-2021.3-2048dpu",)

PRESETS = ("common", "upmem-2021.3-2048dpu", "cloud-2024", "kern")


@cache
def _preset_file(path: str) -> TransferModel:
    return TransferModel(**read_preset(path))


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
        1.0 if name in NO_BROADCASTS else BROADCAST_GAIN,
        SYSTEM.launch_ms,
        SYSTEM.launch_ms_per_rank,
    )
