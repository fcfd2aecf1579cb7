"""What moved and why: a table of nests, the strategies side by side, and a picture of the times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from atim.errors import RecordError
from atim.offload.imported import Place
from atim.offload.placement import Placement, Problem
from atim.offload.pricing import Price

__all__ = ["text", "write"]


def text(
    problem: Problem,
    placement: Placement,
    baselines: Mapping[str, Placement],
    fallbacks: Sequence[Place],
) -> str:
    """The whole report, a line a nest; `baselines` are the placements of all strategies by name."""
    host = problem.host
    lines = [
        f"{len(problem.graph.nests)} nests, {len(problem.launches)} possible launches;"
        f" host {host.name}, {problem.target.label} with {problem.target.dpus} DPUs",
    ]
    if host.no_counters:
        lines.append(f"host without hardware counters: {host.no_counters}")
    for fallback in fallbacks:
        lines.append(f"runs through PyTorch on the host: {fallback}")
    width = max((len(n.name) for n in problem.graph.nests), default=0)
    for verdict in placement.verdicts:
        nest = problem.graph.nests[verdict.nest]
        where = "PIM " if verdict.on_pim else "host"
        bound = f"{verdict.host.limit:10} {100 * verdict.host.share:3.0f} %"
        kind = f"{nest.features.kind:11}"
        lines.append(f"{where} {nest.name:{width}} {kind} {bound}  {verdict.reason}")
    lines.append("")
    slowest = baselines["all-host"].seconds
    for name, other in baselines.items():
        ratio = slowest / other.seconds if other.seconds else 1.0
        mark = " <- chosen" if name == placement.strategy else ""
        lines.append(
            f"{name:10} {other.seconds * 1e3:10.3f} ms  {ratio:6.2f}x all-host"
            f"  {len(other.moved):3} nests on PIM{mark}"
        )
    return "\n".join(lines)


def write(problem: Problem, baselines: Mapping[str, Placement], folder: str | Path) -> Path:
    """placement.png: where the time of each strategy goes. RecordError if it can't be written."""
    names = list(baselines)
    parts: dict[str, list[float]] = {p: [] for p in ("host", "in", "kernel", "out", "sum")}
    for placement in baselines.values():
        prices = [problem.prices[n] for n in placement.chosen]
        found = [p for p in prices if isinstance(p, Price)]
        parts["in"].append(sum(p.h2d for p in found))
        parts["kernel"].append(sum(p.kernel for p in found))
        parts["out"].append(sum(p.d2h for p in found))
        parts["sum"].append(sum(p.host for p in found))
        parts["host"].append(placement.seconds - sum(p.total for p in found))
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    left = np.zeros(len(names))
    for part, seconds in parts.items():
        milliseconds = np.array(seconds) * 1e3
        axes.barh(names, milliseconds, left=left, label=part)
        left += milliseconds
    axes.set_xlabel("ms a call (predicted)")
    axes.set_xlim(0, 2 * left[0])  # what is far slower than the host may leave the picture
    axes.invert_yaxis()
    axes.legend(loc="lower right", fontsize="small")
    path = Path(folder) / "placement.png"
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise RecordError(f"{path} can't be written: {error.strerror}") from error
    return path
