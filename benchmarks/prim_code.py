"""What PrIM's programs take besides a schedule in their style, as measured on another server.

Their loops, compiled by the SDK of 2021, issue more instructions an element than ours: the slope of
PrIM's kernel times over the size (uPIMulator's hardware columns, 1 to 64 DPUs; data/prim.csv) is
24.0 cycles for a product of GEMV, that of our kernel in its style 18.7. The difference does not
depend on the bytes moved (docs/simulator.md). And their hosts push a structure of arguments to a
WRAM variable of each DPU before they push a vector. Their kernels begin by allocating their buffers
from the heap, as ATiM's do (atim_code.py).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from atim import Target, pipeline, runtime, toolchain
from atim.schedules import manual
from atim.schedules.terms import terms_of
from atim.tuner.measure import sample_inputs
from benchmarks.atim_code import start_up
from benchmarks.fidelity_rows import table
from benchmarks.figure9 import PRESET, Case, prim_timing, scaled
from benchmarks.measured import Measured, Timing
from benchmarks.shipped import Task
from benchmarks.transfers import ARGUMENTS
from upmem_sim import DpuParams, TransferModel

__all__ = ["as_measured", "factor", "silicon", "slope"]

COLUMNS = 64  # of PrIM's GEMV
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "va": ((1 << 15,), (1 << 16,)),
    "red": ((1 << 15,), (1 << 16,)),
    "mtv": ((256, COLUMNS), (512, COLUMNS)),
}
BUFFERS = {"va": 2, "geva": 2, "red": 1}
MATRIX_BUFFERS = 4  # matrix, vector, result, and a pair of elements
PROGRAMS = {"va": "VA", "red": "RED", "mtv": "GEMV"}
LOOPS = {"geva": "va", "gemv": "mtv", "ttv": "mtv", "mmtv": "mtv"}  # what their loops extend


def as_measured(measured: Measured, task: Task, timing: Timing) -> Timing:
    """Seconds of a schedule in PrIM's style, as PrIM's code would take them."""
    before, kernel, after, host = prim_timing(measured, task, timing)
    model = TransferModel.preset(PRESET)
    sketch = next(s for s in measured.sketches if s.name == task[0])
    terms = terms_of(sketch, sketch.vector(task[1]))
    dpus, tasklets = int(terms["dpus"][0]), int(terms["tasklets"][0])
    launch, op = model.launch(dpus), measured.workload.name
    kernel = launch + (kernel - launch) * factor(op)
    kernel += start_up(tasklets, BUFFERS.get(op, MATRIX_BUFFERS))
    if before > 0:
        before += model.to_wram(ARGUMENTS, dpus)
    return before, kernel, after, host


def factor(op: str) -> float:
    """By how much the kernel of PrIM's code takes longer: as many cycles an element more as in the
    program that was measured, whose loop the workload's is, with perhaps more in it."""
    base = LOOPS.get(op, op)
    own = op if op in ("geva", "gemv") else base  # rows of a tensor are rows of a matrix
    return 1 + (silicon(base) - slope(base)) / slope(own)


@cache
def silicon(base: str) -> float:
    """Published cycles an element (GEMV: a product) on the most DPUs with three sizes."""
    points: dict[int, list[tuple[int, float]]] = {}
    for row in table("prim"):
        if row["program"] == PROGRAMS[base]:
            dpus = int(row["dpus"])
            elements = int(row["size"]) // dpus * (COLUMNS if base == "mtv" else 1)
            points.setdefault(dpus, []).append((elements, float(row["ms"])))
    most = max(dpus for dpus, found in points.items() if len(found) >= 3)
    elements, times = np.array(points[most]).T
    return float(np.polyfit(elements, times, 1)[0]) * DpuParams().clock_mhz * 1e3


@cache
def slope(op: str) -> float:
    """Simulated cycles an element of the schedule in PrIM's style, on one DPU."""
    shapes = SHAPES[LOOPS.get(op, op)]
    target, cycles = Target(dpus=1), []
    for shape in shapes:
        workload, given = scaled(Case("", op, shape, None, None, None))
        sources = pipeline.compile(*manual.prim_style(workload, target), target)
        inputs = sample_inputs(workload.func) | {n: np.array(v, "int32") for n, v in given}
        outcome = runtime.run(toolchain.build(sources, target), inputs)
        cycles.append(outcome.counters["cycles"])
    small, large = (int(np.prod(shape)) for shape in shapes)
    return (cycles[1] - cycles[0]) / (large - small)
