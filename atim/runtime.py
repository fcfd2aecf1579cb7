"""Artifact + arrays -> outputs and Timing(h2d, kernel, d2h, host) on simulated DPUs.

Tiles are placed as the transfer plan says, DPUs run cycle by cycle, tiles come back, the host
finishes. With `representatives` one DPU of each class runs: DPUs whose tiles are clipped alike do
the same work on different numbers. Otherwise all run, and the emitted host code moves their tiles.

Times are those of the modelled machine: cycles of the slowest DPU, and a `TransferModel` for the
host. Two watchdogs surround every run: input tiles must be unchanged, and the free MRAM around each
output tile keeps a pattern; a kernel that writes there raises MismatchError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import upmem_sim
from atim import hardware
from atim.codegen import Tile, TransferPlan
from atim.errors import MismatchError, UsageError
from atim.outcome import Outcome, Piece, Timing
from atim.timing import best_groups, call_timing, host_times, model_of
from atim.toolchain import Artifact
from upmem_sim.program import MRAM_BASE

__all__ = ["Outcome", "Piece", "Timing", "dpu_classes", "host_times", "run", "trace"]

Array = NDArray[Any]
Bytes = NDArray[np.uint8]

BATCH = 64  # DPUs in memory at a time: each commits only the MRAM pages it touches
UNWRITTEN = 0xA5  # output tiles start as this, so an element no tasklet wrote is seen
CANARY = 0x5C
GUARD_BYTES = 2048  # the largest DMA: what one stray transfer can reach


def run(
    artifact: Artifact,
    arrays: Mapping[str, Array],
    *,
    representatives: bool = False,
    resident: Collection[str] = (),
    max_cycles: int | None = None,
    threads: int = 2,
    choose_groups: bool = False,
) -> Outcome:
    """Run on `arrays` (name -> array of the tensor's shape and dtype).

    `resident` names inputs that lie on the DPUs already: their transfer takes no time. `threads`
    simulate and move tiles. With `choose_groups` the time is that of the number of groups of ranks
    with the least total, not of `plan.groups`; either way it is the counter rank_groups.

    UsageError for wrong arrays, MismatchError for stray writes, upmem_sim.SimFault when the kernel
    breaks a rule of the machine or passes `max_cycles`.

    A target on hardware runs there, on all its DPUs (see `atim.hardware`): with `choose_groups`
    in one group, and in as many as the closed form then holds for the fastest; the faster counts.
    """
    plan = artifact.sources.plan
    tensors = _host_tensors(plan, arrays)
    _check_names(plan, resident)
    if artifact.target.hardware:
        return _on_hardware(artifact, tensors, resident, choose_groups)
    if plan.prepare is not None:
        pointers = [tensors[name].ctypes.data for name in plan.prepare_args]
        artifact.host().work(plan.prepare, pointers, threads)
    groups = dpu_classes(plan)
    slowest: upmem_sim.RunResult | None = None
    cycles = np.full(plan.dpus, -1, np.int64)
    pieces: list[Piece] = []
    chosen = [int(g[len(g) // 2]) for g in groups] if representatives else list(range(plan.dpus))
    mover: _Slices = _Slices(plan, tensors) if representatives else _HostSlices(artifact, tensors)
    for first in range(0, len(chosen), BATCH):
        batch = np.array(chosen[first : first + BATCH], dtype=np.uint32)
        results = _run_batch(artifact, mover, batch, max_cycles, threads, pieces)
        cycles[batch] = [result.cycles for result in results]
        for result in results:
            if slowest is None or result.cycles > slowest.cycles:
                slowest = result
    assert slowest is not None, "a grid has at least one DPU"
    outputs = None
    if not representatives:
        if plan.finish is not None:
            pointers = [tensors[name].ctypes.data for name in plan.finish_args]
            artifact.host().work(plan.finish, pointers, threads)
        outputs = {t.name: tensors[t.name] for t in plan.tensors if t.role == "output"}
    kernel = _of_all(cycles, groups) / (artifact.target.chip.clock_mhz * 1e6)
    if choose_groups:
        plan = replace(plan, groups=best_groups(plan, artifact.target, resident, kernel))
    timing = call_timing(plan, artifact.target, resident, kernel)
    counters = _counters(slowest) | {"dpus_run": len(chosen), "classes": len(groups)}
    counters["rank_groups"] = plan.groups
    counters["class_spread_cycles"] = _spread(cycles, groups)
    return Outcome(outputs, tuple(pieces), timing, counters)


def _on_hardware(
    artifact: Artifact, tensors: Mapping[str, Array], resident: Collection[str], choose_groups: bool
) -> Outcome:
    plan, target = artifact.sources.plan, artifact.target

    def measured(groups: int) -> Outcome:
        sources = replace(artifact.sources, plan=replace(plan, groups=groups))
        outcome = hardware.run(sources, tensors, resident, preset=target.transfer)
        return replace(outcome, counters={**outcome.counters, "rank_groups": groups})

    first = measured(plan.groups)
    if not choose_groups or plan.groups > 1:
        return first
    launch = model_of(target).launch(plan.dpus)
    kernel = np.full(plan.dpus, max(first.timing.kernel - launch, 0.0))
    groups = best_groups(plan, target, resident, kernel)
    if groups == 1:
        return first
    return min(first, measured(groups), key=lambda outcome: outcome.timing.total)


def _of_all(cycles: NDArray[np.int64], groups: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Cycles of every DPU: those that did not run take as long as the slowest of their class."""
    full = cycles.astype(np.float64)
    for group in groups:
        full[group] = np.where(cycles[group] < 0, cycles[group].max(), cycles[group])
    return full


def _spread(cycles: NDArray[np.int64], groups: Sequence[NDArray[np.int64]]) -> int:
    """The largest difference between two DPUs of one class, among those that ran."""
    ran = [cycles[g][cycles[g] >= 0] for g in groups]
    return max(int(c.max() - c.min()) for c in ran if len(c))


def trace(
    artifact: Artifact, arrays: Mapping[str, Array], threads: int = 2
) -> tuple[int, upmem_sim.RunResult]:
    """(number of the slowest DPU among one of each class, its run with the timeline recorded)."""
    plan = artifact.sources.plan
    tensors = _host_tensors(plan, arrays)
    if plan.prepare is not None:
        pointers = [tensors[name].ctypes.data for name in plan.prepare_args]
        artifact.host().work(plan.prepare, pointers, threads)
    chosen = np.array([g[len(g) // 2] for g in dpu_classes(plan)], dtype=np.uint32)
    mover = _Slices(plan, tensors)
    slowest, cycles = 0, -1
    for first in range(0, len(chosen), BATCH):
        dpus, _ = _load(artifact, mover, chosen[first : first + BATCH])
        for i, result in enumerate(upmem_sim.run_many(dpus, threads=threads)):
            if result.cycles > cycles:
                slowest, cycles = first + i, result.cycles
    (dpu,), _ = _load(artifact, mover, chosen[slowest : slowest + 1])
    return int(chosen[slowest]), dpu.run(trace=True)


def dpu_classes(plan: TransferPlan) -> list[NDArray[np.int64]]:
    """DPU numbers grouped by how their tiles are clipped, in order of the first member."""
    marks = [np.zeros((plan.dpus, 1), np.int64)]
    for tile in plan.tiles:
        start, extent = plan.boxes(tile)
        marks += [np.maximum(-start, 0), extent]
    _, first, inverse = np.unique(np.hstack(marks), axis=0, return_index=True, return_inverse=True)
    group_of = inverse.reshape(-1)
    return [np.flatnonzero(group_of == group) for group in np.argsort(first)]


def _host_tensors(plan: TransferPlan, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs checked and made contiguous, the rest allocated."""
    tensors: dict[str, Array] = {}
    for tensor in plan.tensors:
        if tensor.role != "input":
            tensors[tensor.name] = np.zeros(tensor.shape, tensor.dtype)
            continue
        if tensor.name not in arrays:
            raise UsageError(f"input {tensor.name} is missing: got {', '.join(arrays) or 'none'}")
        array = np.asarray(arrays[tensor.name])
        if array.shape != tensor.shape or array.dtype != np.dtype(tensor.dtype):
            raise UsageError(
                f"input {tensor.name}: got {array.dtype}{list(array.shape)},"
                f" needs {tensor.dtype}{list(tensor.shape)}"
            )
        tensors[tensor.name] = np.ascontiguousarray(array)
    return tensors


def _check_names(plan: TransferPlan, resident: Collection[str]) -> None:
    inputs = [t.name for t in plan.tensors if t.role == "input"]
    for name in resident:
        if name not in inputs:
            raise UsageError(f"resident operand {name} is not an input: {', '.join(inputs)}")


class _Slices:
    """Moves tiles of single DPUs with NumPy, and keeps what they computed as pieces."""

    def __init__(self, plan: TransferPlan, tensors: dict[str, Array]) -> None:
        self.plan, self.tensors = plan, tensors
        self.boxes = {tile.symbol: plan.boxes(tile) for tile in plan.tiles}

    def pack(self, tile: Tile, dpus: NDArray[np.uint32]) -> Bytes:
        """MRAM images, uint8 [len(dpus), slice bytes]."""
        images = np.zeros((len(dpus), *tile.padded), tile.dtype)
        for image, dpu in zip(images, dpus.tolist(), strict=True):
            inside, outside = self.place(tile, dpu)
            image[inside] = self.tensors[tile.tensor][outside]
        return images.view(np.uint8).reshape(len(dpus), tile.slice_bytes)

    def unpack(self, tile: Tile, images: Bytes, dpus: NDArray[np.uint32]) -> Iterator[Piece]:
        """What each DPU owns of the tile's tensor."""
        typed = images.view(tile.dtype).reshape(len(dpus), *tile.padded)
        for image, dpu in zip(typed, dpus.tolist(), strict=True):
            inside, outside = self.place(tile, dpu)
            start = tuple(s.start for s in outside)
            yield Piece(tile.tensor, dpu, start, image[inside].copy())

    def place(self, tile: Tile, dpu: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The DPU's clipped box, in its own image and in the host tensor."""
        starts, extents = self.boxes[tile.symbol]
        inside, outside = [], []
        for start, extent in zip(starts[dpu].tolist(), extents[dpu].tolist(), strict=True):
            low = max(start, 0)
            inside.append(slice(low - start, low - start + extent))
            outside.append(slice(low, low + extent))
        return tuple(inside), tuple(outside)


class _HostSlices(_Slices):
    """Moves tiles with the emitted host code, results straight into the host's tensors."""

    def __init__(self, artifact: Artifact, tensors: dict[str, Array], threads: int = 2) -> None:
        super().__init__(artifact.sources.plan, tensors)
        self.library, self.threads = artifact.host(), threads

    def pack(self, tile: Tile, dpus: NDArray[np.uint32]) -> Bytes:
        images = np.full((len(dpus), tile.slice_bytes), UNWRITTEN, np.uint8)
        self.move("pack", tile, images, dpus)
        return images

    def unpack(self, tile: Tile, images: Bytes, dpus: NDArray[np.uint32]) -> Iterator[Piece]:
        self.move("unpack", tile, images, dpus)
        return iter(())

    def move(self, way: str, tile: Tile, images: Bytes, dpus: NDArray[np.uint32]) -> None:
        """Call the tile's pack or unpack function."""
        tensor = self.tensors[tile.tensor].ctypes.data
        self.library.move(
            f"{way}_{tile.symbol}",
            tensor,
            images.ctypes.data,
            dpus.ctypes.data,
            len(dpus),
            self.threads,
        )


def _run_batch(
    artifact: Artifact,
    mover: _Slices,
    numbers: NDArray[np.uint32],
    max_cycles: int | None,
    threads: int,
    pieces: list[Piece],
) -> Sequence[upmem_sim.RunResult]:
    """Load, run and collect some DPUs."""
    plan, program = artifact.sources.plan, artifact.program
    dpus, images = _load(artifact, mover, numbers)
    guards = _guards(plan, program)
    results = upmem_sim.run_many(dpus, threads=threads, max_cycles=max_cycles)
    for i, (dpu, number) in enumerate(zip(dpus, numbers.tolist(), strict=True)):
        _check_untouched(plan, program, dpu, number, {s: im[i] for s, im in images.items()})
        for low, high, name in guards:
            if np.any(dpu.mram[low:high] != CANARY):
                raise MismatchError(f"DPU {number} wrote outside its tile of {name}")
    for tile in plan.tiles:
        if tile.mode == "in":
            continue
        at = program.symbols[tile.symbol].address - MRAM_BASE
        back = np.stack([dpu.mram[at : at + tile.slice_bytes] for dpu in dpus])
        pieces.extend(mover.unpack(tile, back, numbers))
    return results


def _load(
    artifact: Artifact, mover: _Slices, numbers: NDArray[np.uint32]
) -> tuple[list[upmem_sim.Dpu], dict[str, Bytes]]:
    """DPUs with their input tiles and the watchdogs' patterns; the tiles' images by symbol."""
    plan, program = artifact.sources.plan, artifact.program
    dpus = [upmem_sim.Dpu(program, artifact.target.chip, index=n) for n in numbers.tolist()]
    images = {t.symbol: mover.pack(t, numbers) for t in plan.tiles if t.mode != "out"}
    words = plan.grid_words()
    for i, (dpu, number) in enumerate(zip(dpus, numbers.tolist(), strict=True)):
        if plan.grid_symbol is not None:
            dpu.write(plan.grid_symbol, words[number])
        for tile in plan.tiles:
            at = program.symbols[tile.symbol].address - MRAM_BASE
            image = images[tile.symbol][i] if tile.symbol in images else np.uint8(UNWRITTEN)
            dpu.mram[at : at + tile.slice_bytes] = image
        for low, high, _ in _guards(plan, program):
            dpu.mram[low:high] = CANARY
    return dpus, images


def _check_untouched(
    plan: TransferPlan,
    program: upmem_sim.Program,
    dpu: upmem_sim.Dpu,
    number: int,
    images: Mapping[str, Bytes],
) -> None:
    for tile in plan.tiles:
        if tile.mode != "in":
            continue
        at = program.symbols[tile.symbol].address - MRAM_BASE
        if not np.array_equal(dpu.mram[at : at + tile.slice_bytes], images[tile.symbol]):
            raise MismatchError(f"DPU {number} changed its input tile of {tile.tensor}")


def _guards(plan: TransferPlan, program: upmem_sim.Program) -> list[tuple[int, int, str]]:
    """(low, high, tensor): free MRAM around each output tile, at most GUARD_BYTES on each side."""
    taken = sorted(
        (s.address - MRAM_BASE, s.address - MRAM_BASE + s.size)
        for s in program.symbols.values()
        if s.section.startswith(".mram") and s.size
    )
    guards = []
    for tile in plan.tiles:
        if tile.mode == "in":
            continue
        low = program.symbols[tile.symbol].address - MRAM_BASE
        high = low + tile.slice_bytes
        before = max((end for _, end in taken if end <= low), default=0)
        after = min((start for start, _ in taken if start >= high), default=high + GUARD_BYTES)
        guards.append((max(before, low - GUARD_BYTES), low, tile.tensor))
        guards.append((high, min(after, high + GUARD_BYTES), tile.tensor))
    return [(low, high, name) for low, high, name in guards if low < high]


def _counters(result: upmem_sim.RunResult) -> dict[str, int]:
    """Cycles, instructions, DMA, and the tasklets' cycles summed by cause."""
    causes = ("issue", "lock", "pipeline", "slots", "dma", "asleep", "idle")
    waits = {f"{c}_cycles": sum(getattr(t, c) for t in result.tasklets) for c in causes}
    return waits | {
        "cycles": result.cycles,
        "instructions": result.instructions,
        "dma_reads": result.dma.reads,
        "dma_writes": result.dma.writes,
        "dma_read_bytes": result.dma.read_bytes,
        "dma_write_bytes": result.dma.write_bytes,
        "dma_busy_cycles": result.dma.busy_cycles,
    }
