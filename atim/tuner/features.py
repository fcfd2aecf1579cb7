"""What the cost model sees of a candidate: a documented table of closed forms.

Everything is computed from `terms_of`, so no candidate has to be scheduled to be scored. The
first four rows are rough estimates of the four phases of a call; their sum is the estimate that the
search starts from and that the cost model corrects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atim.schedules.sketch import Sketch
from atim.schedules.terms import TERMS, terms_of
from atim.target import Target
from upmem_sim import TransferModel

__all__ = ["FEATURES", "VERSION", "Feature", "describe", "estimate"]

Floats = NDArray[np.float64]
Terms = Mapping[str, Floats]

# Raised when a term changes its meaning without changing its name.
REVISION = 2
DPUS_PER_RANK = 64


@dataclass(frozen=True, slots=True)
class Feature:
    """name, unit, meaning, and the closed form over the terms (and the four phases, in seconds)."""

    name: str
    unit: str
    meaning: str
    compute: Callable[[Terms], Floats]


_MEANINGS = {term.name: term.meaning for term in TERMS} | {
    "h2d_s": "estimate: pushing inputs that aren't resident",
    "kernel_s": "estimate: launch and the slowest DPU",
    "d2h_s": "estimate: pulling results",
    "host_s": "estimate: adding partial results",
    "vector": "where operands without rows are kept: 0 a tile, 1 a block, 2 resident",
    "cyclic": "1 when blocks are dealt to tasklets in turn",
    "multiply": "how products are computed, 0 the compiler's routine",
}
# Decisions of which no term tells, 0 where a sketch has none.
CHOICES = ("vector", "cyclic", "multiply")


def _term(name: str, unit: str) -> Feature:
    return Feature(name, unit, _MEANINGS[name], lambda t: t[name])


def _ratio(name: str, over: str, under: str) -> Feature:
    def compute(t: Terms) -> Floats:
        return t[over] / np.maximum(t[under], 1e-12)

    return Feature(name, "ratio", f"{over} / {under}", compute)


FEATURES = (
    _term("h2d_s", "s"),
    _term("kernel_s", "s"),
    _term("d2h_s", "s"),
    _term("host_s", "s"),
    _ratio("kernel_share", "kernel_s", "total_s"),
    _term("dpus", "DPUs"),
    Feature(
        "ranks",
        "ranks",
        "that the DPUs fill, 64 each",
        lambda t: np.ceil(t["dpus"] / DPUS_PER_RANK),
    ),
    _term("pieces", "pieces"),
    _term("tasklets", "tasklets"),
    _term("rows_per_dpu", "elements"),
    _term("rows_per_tasklet", "elements"),
    _term("row_block", "rows"),
    _term("tile", "elements"),
    _term("tile_bytes", "B"),
    _term("steps", "tiles"),
    _term("unroll", "copies"),
    _term("host_threads", "threads"),
    _term("work", "body executions"),
    _term("balance", "ratio"),
    _term("instructions", "slots"),
    _term("body_slots", "slots"),
    _term("dma_count", "DMAs"),
    _term("dma_bytes", "B"),
    _term("read_bytes", "B"),
    _term("write_bytes", "B"),
    _term("dma_mean_bytes", "B"),
    _term("wram_bytes", "B"),
    _term("buffer_bytes", "B"),
    _term("shared_bytes", "B"),
    _term("mram_bytes", "B"),
    _term("iram_words", "instructions"),
    _term("h2d_bytes", "B"),
    _term("d2h_bytes", "B"),
    _term("h2d_total_bytes", "B"),
    _term("d2h_total_bytes", "B"),
    _term("finish_bytes", "B"),
    _term("issue_cycles", "cycles"),
    _term("dma_cycles", "cycles"),
    _ratio("dma_bound", "dma_cycles", "issue_cycles"),
    _ratio("instructions_per_work", "instructions", "work"),
    _ratio("dma_per_work", "dma_count", "work"),
    *(_term(name, "choice") for name in CHOICES),
)

# Names and units are part of the version: a model trained on another table must not be applied.
VERSION = (
    f"{REVISION}-"
    + hashlib.sha256(repr([(f.name, f.unit) for f in FEATURES]).encode()).hexdigest()[:8]
)


def describe(sketch: Sketch, matrix: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Features [n, len(FEATURES)], and the log of the estimated seconds [n]."""
    terms = dict(terms_of(sketch, matrix))
    terms |= estimate(terms, sketch)
    columns = sketch.columns(matrix)
    for name in CHOICES:
        terms[name] = np.asarray(columns.get(name, np.zeros(len(matrix))), np.float64)
    features = np.empty((len(matrix), len(FEATURES)))
    for column, feature in enumerate(FEATURES):
        features[:, column] = feature.compute(terms)
    return features, np.log(np.maximum(terms["total_s"], 1e-12))


def estimate(terms: Terms, sketch: Sketch) -> dict[str, Floats]:
    """Seconds of h2d, kernel, d2h, host and their total, roughly: one push, one broadcast and one
    pull a call."""
    target: Target = sketch.target
    model = TransferModel.preset(target.transfer)
    dpus, same = terms["dpus"], terms["h2d_same_bytes"]
    clock_hz = target.chip.clock_mhz * 1e6
    phases = {
        "h2d_s": model.to_dpus(terms["h2d_bytes"] - same, dpus) + model.broadcast(same, dpus),
        "kernel_s": model.launch(dpus) + terms["kernel_cycles"] / clock_hz,
        "d2h_s": model.from_dpus(terms["d2h_bytes"], dpus),
        "host_s": _finish(model, terms, sketch),
    }
    return phases | {"total_s": sum(phases.values(), np.zeros(len(dpus)))}


def _finish(model: TransferModel, terms: Terms, sketch: Sketch) -> Floats:
    """Adding up partial results; the model takes one number of threads at a time."""
    item_bytes = sketch.program.output.item_bytes
    seconds = np.zeros(len(terms["dpus"]))
    elements = terms["finish_bytes"] / item_bytes
    for threads in np.unique(terms["host_threads"]).tolist():
        rows = terms["host_threads"] == threads
        seconds[rows] = model.host_reduce(elements[rows], item_bytes, int(threads))
    return seconds
