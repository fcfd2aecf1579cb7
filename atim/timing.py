"""The time of a call from its parts, in closed form: transfers, launch, kernel, host work.

In: a transfer plan, a target and the kernel's seconds on each DPU. Out: a `Timing`. With
`plan.groups` > 1 the DPUs work in groups of whole ranks, asynchronously: while one group computes,
the host feeds the next (SDK manual, "Asynchronous execution"). The emitted host.c does the same
calls in the same order, so libdpu's simulated time is this one.

The bus is taken as one: transfers of groups follow each other, each at the rate and the fixed cost
of the group's own DPUs, and the host makes them in order (all pushes, then all pulls). So the last
group's kernel is never hidden, and what groups can save is bounded: the pulls of the earlier groups
behind the kernels of the later ones, at the price of transfers of fewer DPUs, which are slower
unless the bus is saturated. They pay on systems where it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from atim.codegen import Tensor, Tile, TransferPlan
from atim.outcome import Timing
from atim.target import Target
from upmem_sim import TransferModel
from upmem_sim.params import SystemParams

__all__ = [
    "best_groups",
    "call_timing",
    "group_bounds",
    "host_times",
    "model_of",
    "pull_seconds",
    "push_seconds",
]

Seconds = NDArray[np.float64]


def model_of(target: Target) -> TransferModel:
    """The host side of the target's system."""
    return TransferModel.preset(target.transfer)


def group_bounds(dpus: int, groups: int) -> list[int]:
    """Where each group begins in the order of DPUs, and the end: whole ranks, as even as can be."""
    in_rank = SystemParams().dpus_per_rank
    ranks = -(-dpus // in_rank)
    return [min(ranks * g // groups * in_rank, dpus) for g in range(groups + 1)]


def best_groups(
    plan: TransferPlan, target: Target, resident: Collection[str], kernel: Seconds
) -> int:
    """The number of groups, a power of two, with the least total; 1 unless more are faster."""
    ranks = -(-plan.dpus // SystemParams().dpus_per_rank)
    counts = [1 << n for n in range(ranks.bit_length())]
    totals = [
        call_timing(replace(plan, groups=count), target, resident, kernel).total for count in counts
    ]
    return counts[int(np.argmin(totals))]


def call_timing(
    plan: TransferPlan, target: Target, resident: Collection[str], kernel: Seconds
) -> Timing:
    """Time of one call whose DPUs compute for `kernel` seconds, float64 [dpus].

    h2d and d2h are what the bus is busy with. `kernel` is the rest of the way from the first push
    to the last pull: launch and computation, but for what is hidden behind transfers.
    """
    model, bounds = model_of(target), group_bounds(plan.dpus, plan.groups)
    sizes = np.diff(bounds).tolist()
    pushes = [_inward(model, plan, resident, size) for size in sizes]
    pulls = [_outward(model, plan, size) for size in sizes]
    waited = spent = 0.0  # after the last push
    for group, size in enumerate(sizes):
        slowest = float(kernel[bounds[group] : bounds[group + 1]].max())
        left = model.launch(size) + slowest - sum(pushes[group + 1 :])
        wait = max(left - spent, 0.0)
        waited += wait
        spent += wait + pulls[group]
    return Timing(sum(pushes), waited, sum(pulls), host_work(plan, model))


def host_times(
    plan: TransferPlan, target: Target, resident: Collection[str] = ()
) -> tuple[float, float, float]:
    """Modelled seconds of (h2d, d2h, host work); nothing runs.

    Every tile is one push or pull of equal slices for each group. The grid index goes to the DPUs
    once, with the program, and is not counted. The host works on each element of the intermediates
    once, with the threads the schedule gave it.
    """
    idle = call_timing(plan, target, resident, np.zeros(plan.dpus))
    return idle.h2d, idle.d2h, idle.host


def _inward(
    model: TransferModel, plan: TransferPlan, resident: Collection[str], dpus: int
) -> float:
    tiles = [t for t in plan.tiles if t.mode != "out" and t.tensor not in resident]
    return sum((push_seconds(model, tile, dpus) for tile in tiles), 0.0)


def push_seconds(model: TransferModel, tile: Tile, dpus: int, *, some: bool = False) -> float:
    """One tile to as many DPUs: a push of equal slices, or a broadcast where all hold the same.
    some: others are allocated too, which a broadcast would reach."""
    if tile.broadcast and dpus > 1 and not some:
        return model.broadcast(tile.slice_bytes, dpus)
    return model.to_dpus(tile.slice_bytes, dpus)


def pull_seconds(model: TransferModel, tile: Tile, dpus: int) -> float:
    """One tile from as many DPUs."""
    return model.from_dpus(tile.slice_bytes, dpus)


def _outward(model: TransferModel, plan: TransferPlan, dpus: int) -> float:
    tiles = [t for t in plan.tiles if t.mode != "in"]
    return sum((pull_seconds(model, t, dpus) for t in tiles), 0.0)


def host_work(plan: TransferPlan, model: TransferModel) -> float:
    """Seconds of what the host computes before and after."""
    by_name = {t.name: t for t in plan.tensors}
    phases = [plan.prepare_args if plan.prepare else (), plan.finish_args if plan.finish else ()]
    partial = [by_name[n] for names in phases for n in names if by_name[n].role == "intermediate"]
    return sum((_reduction(model, tensor, plan.host_threads) for tensor in partial), 0.0)


def _reduction(model: TransferModel, tensor: Tensor, threads: int) -> float:
    elements = int(np.prod(tensor.shape, dtype=np.int64))
    return model.host_reduce(elements, np.dtype(tensor.dtype).itemsize, threads)
