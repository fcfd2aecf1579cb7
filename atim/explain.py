"""What bounds a tuned program, and how far from that bound it is.

In: a run's winner. Out: lines of text. The kernel's bounds are those of the machine model: one
instruction a cycle for all tasklets, one every 11 cycles for each of them, and a DMA engine that is
busy for a fixed part and a part by size of each transfer (`docs/hardware.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from atim.codegen import Sources, Tile
from atim.outcome import Timing
from atim.runtime import host_times
from atim.target import Target
from atim.timing import pull_seconds, push_seconds
from atim.tuner.linked import StagedBest
from atim.tuner.result import Best
from upmem_sim import TransferModel

__all__ = ["Bound", "explain", "kernel_bounds"]

SPENT = {
    "issue": "issuing instructions",
    "dma": "waiting for a DMA transfer",
    "slots": "waiting for an issue slot, behind other tasklets",
    "pipeline": "waiting for their own last instruction",
    "lock": "waiting for a lock",
    "asleep": "at a barrier, or stopped",
    "idle": "done, or not started",
}
PHASE_NAMES = {
    "h2d": "transfers to the DPUs",
    "kernel": "the kernel",
    "d2h": "transfers from the DPUs",
    "host": "the host's part",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """A resource that the kernel uses: cycles it would take if nothing else took time."""

    name: str
    cycles: float
    advice: str


def kernel_bounds(counters: Mapping[str, float], tasklets: int, target: Target) -> list[Bound]:
    """The kernel's bounds, the tightest first."""
    chip = target.chip
    distance = chip.issue_distance_cycles
    bounds = [
        Bound(
            "issue slots",
            counters["instructions"],
            "fewer instructions: longer vectors, more unrolling, fewer checks",
        ),
        Bound(
            "MRAM",
            counters["dma_busy_cycles"],
            "fewer bytes or larger transfers",
        ),
    ]
    if tasklets < distance:
        bounds.append(
            Bound(
                f"{tasklets} tasklets, an instruction each in {distance} cycles",
                counters["instructions"] / tasklets * distance,
                f"{distance} tasklets or more",
            )
        )
    return sorted(bounds, key=lambda bound: -bound.cycles)


def explain(best: Best | StagedBest) -> str:
    """The text of `atim explain`."""
    return _stages(best) if isinstance(best, StagedBest) else _one(best)


def _stages(best: StagedBest) -> str:
    """Where the time goes, stage by stage in their chain, and what bounds each kernel alone."""
    total = best.timing.total
    lines = [f"{best.title}: {total * 1e3:.3f} ms in {len(best.stages)} stages", ""]
    alone = tuple(part.timing for part in best.parts)
    spent = best.timings if len(best.timings) == len(best.parts) else alone
    for number, (stage, timing) in enumerate(zip(best.stages, spent, strict=True), 1):
        share = timing.total / total
        where = stage.reason or "on the DPUs"
        name = stage.outputs[-1]
        lines.append(f"{number} {name}: {timing.total * 1e3:.3f} ms {share:4.0%}  {where}")
    kernels = [part for part in best.parts if isinstance(part, Best)]
    return "\n".join(["\n".join(lines), *(f"\n{_one(kernel)}" for kernel in kernels)])


def _one(best: Best) -> str:
    sources, target, timing = best.sources(), best.sketch.target, best.timing
    counters = best.record.counters
    lines = [f"{best.title}: {timing.total * 1e3:.3f} ms on {sources.plan.dpus} DPUs", ""]
    if target.chip.hypothetical:
        lines.insert(1, f"HYPOTHETICAL: no UPMEM chip has {target.chip.hypothetical}")
    shares = {phase: getattr(timing, phase) / timing.total for phase in PHASE_NAMES}
    lines += _transfers(sources, target, timing, shares, best.sketch.resident)
    lines += _kernel(counters, sources, target, timing, shares)
    largest = max(shares, key=lambda phase: shares[phase])
    lines += ["", f"Most of the time goes to {PHASE_NAMES[largest]} ({shares[largest]:.0%})."]
    if largest == "kernel" and counters.get("cycles"):
        lines.append(_verdict(counters, sources.nr_tasklets, target, timing))
    return "\n".join(lines)


def _transfers(
    sources: Sources,
    target: Target,
    timing: Timing,
    shares: Mapping[str, float],
    resident: tuple[str, ...],
) -> list[str]:
    model, dpus = TransferModel.preset(target.transfer), sources.plan.dpus
    tiles = sources.plan.tiles
    inward = [t for t in tiles if t.mode != "out" and t.tensor not in resident]
    outward = [t for t in tiles if t.mode != "in"]
    lines = []
    for phase, some, cost in (
        ("h2d", inward, push_seconds),
        ("d2h", outward, pull_seconds),
    ):
        call = model.to_dpus if phase == "h2d" else model.from_dpus
        fixed = len(some) * call(8, dpus)
        lines.append(_phase(phase, getattr(timing, phase), shares[phase]))
        lines += [f"      {_tile(tile, cost(model, tile, dpus), dpus)}" for tile in some]
        if some:
            lines.append(
                f"      {fixed * 1e3:.3f} ms of it for any size: {len(some)} call"
                f"{'s' if len(some) > 1 else ''} over {ceil(dpus / 64)} ranks"
            )
    host = host_times(sources.plan, target, resident)[2]
    lines.append(_phase("host", timing.host, shares["host"]))
    if host:
        threads = sources.plan.host_threads
        elements = sum(_size(t.shape) for t in sources.plan.tensors if t.role == "intermediate")
        lines.append(f"      {elements:,} partial results, {threads} threads")
    return lines


def _phase(phase: str, seconds: float, share: float) -> str:
    return f"{phase:7}{seconds * 1e3:9.3f} ms {share:4.0%}  {PHASE_NAMES[phase]}"


def _tile(tile: Tile, seconds: float, dpus: int) -> str:
    same = ", the same for all" if tile.broadcast and dpus > 1 else ""
    rate = tile.slice_bytes * dpus / seconds / 1e9
    return f"{tile.tensor}: {tile.slice_bytes:,} B a DPU{same}, {rate:.2f} GB/s"


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _kernel(
    counters: Mapping[str, float],
    sources: Sources,
    target: Target,
    timing: Timing,
    shares: Mapping[str, float],
) -> list[str]:
    lines = [_phase("kernel", timing.kernel, shares["kernel"])]
    cycles = counters.get("cycles", 0)
    if not cycles:
        return [*lines, "      DIMMs do not tell how their cycles were spent"]
    seconds = cycles / (target.chip.clock_mhz * 1e6)
    launch = max(timing.kernel - seconds, 0.0)
    lines.append(f"      {launch * 1e3:.3f} ms of it is the launch; the slowest DPU takes")
    lines.append(f"      {cycles:,.0f} cycles, {seconds * 1e3:.3f} ms. At the least:")
    for bound in kernel_bounds(counters, sources.nr_tasklets, target):
        share = bound.cycles / cycles
        lines.append(f"        {bound.cycles:12,.0f} cycles {share:6.1%}  {bound.name}")
    lines += _memory(counters, sources)
    lines.append("      Its tasklets spend their time:")
    spent = _spent(counters, sources.nr_tasklets, target)
    lines += [
        f"        {share:6.1%}  {SPENT[cause]}"
        for cause, share in sorted(spent.items(), key=lambda item: -item[1])
        if share >= 0.005
    ]
    return lines


def _spent(counters: Mapping[str, float], tasklets: int, target: Target) -> dict[str, float]:
    """Parts of the time of the tasklets that the kernel uses, by cause."""
    cycles = counters["cycles"]
    spent = {cause: counters.get(f"{cause}_cycles", 0.0) for cause in SPENT}
    spent["idle"] -= (target.chip.tasklets - tasklets) * cycles  # those it does not use
    return {cause: time / (tasklets * cycles) for cause, time in spent.items()}


def _memory(counters: Mapping[str, float], sources: Sources) -> list[str]:
    """How much goes through the DMA engine, beside what has to."""
    moved = counters["dma_read_bytes"] + counters["dma_write_bytes"]
    count = counters["dma_reads"] + counters["dma_writes"]
    needed = sum(tile.slice_bytes for tile in sources.plan.tiles)
    if not count:
        return []
    return [
        f"      {moved:,.0f} B in {count:,.0f} DMA transfers, {moved / count:,.0f} B on average;",
        f"      the DPU's tiles have {needed:,} B, so each is moved {moved / needed:.2f} times",
    ]


def _verdict(counters: Mapping[str, float], tasklets: int, target: Target, timing: Timing) -> str:
    tightest = kernel_bounds(counters, tasklets, target)[0]
    cycles = counters["cycles"]
    saved = (cycles - tightest.cycles) / (target.chip.clock_mhz * 1e6)
    at_bound = (timing.total - saved) * 1e3
    return (
        f"The kernel is bound by {tightest.name}: it takes {cycles / tightest.cycles:.2f} times as"
        f" long as that alone.\nAt the bound the call would take {at_bound:.3f} ms; to move the"
        f" bound: {tightest.advice}."
    )
