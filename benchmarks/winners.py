"""Tuned kernels of large MTV and MMTV beside the bound that `atim explain` computes.

Each program is tuned as `atim tune` does by default, 64 trials on 2048 DPUs with the matrices
resident. The kernel of the winner then runs on one DPU of each class. Its bound is the larger of
two numbers of cycles: those in which it issues its instructions, one each, and those for which its
transfers keep the DMA engine busy. A search weighs the whole call, not the kernel, and its trials
run on values 0 to 49; the same kernel is run on values of the full range as well, where int32
products take longer. float32: values from 0 to 1, and normally distributed ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atim import Target, pipeline, runtime, toolchain, workloads
from atim.explain import kernel_bounds
from atim.workloads import Workload
from benchmarks.figure9 import DPUS, TRIALS, winner
from benchmarks.inner_loops import FULL, SMALL, values
from benchmarks.measured import Measured

LIMIT = 1.25
RESOURCES = ("issue slots", "MRAM")


@dataclass(frozen=True, slots=True)
class Case:
    """Matrices times vectors; dtype is that of the operands (sums of int8 are int32)."""

    op: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def title(self) -> str:
        return f"{self.op} {'x'.join(map(str, self.shape))}"

    @property
    def workload(self) -> Workload:
        return workloads.get(self.op, self.shape, self.dtype)


_SHAPES = (
    ("mtv", (8192, 8192)),
    ("mtv", (16384, 4096)),
    ("mtv", (4096, 16384)),
    ("mmtv", (256, 512, 512)),
    ("mmtv", (512, 512, 512)),
    ("mmtv", (16, 512, 256)),
)
CASES = (
    *(Case(op, shape, "int32") for op, shape in _SHAPES),
    *(Case(_SHAPES[n][0], _SHAPES[n][1], dtype) for dtype in ("int8", "float32") for n in (0, 3)),
)
QUICK = (5,)


@dataclass(frozen=True, slots=True)
class Row:
    """A winner: cycles and the two bounds, by data."""

    case: Case
    total_s: float
    schedule: str
    cycles: dict[str, float]
    bounds: dict[str, dict[str, float]]

    def ratio(self, data: str) -> float:
        """By how much the kernel takes longer than its bound."""
        return self.cycles[data] / max(self.bounds[data].values())


def measure(case: Case, trials: int = TRIALS) -> Row:
    """Tune, then run the winner on both kinds of values."""
    target, workload = Target(dpus=DPUS), case.workload
    with Measured(workload, target) as measured:
        timing, (name, decisions) = winner(measured, trials)
        sketch = next(s for s in measured.sketches if s.name == name)
    artifact = toolchain.build(pipeline.compile(sketch, decisions, target), target, host=False)
    cycles: dict[str, float] = {}
    bounds: dict[str, dict[str, float]] = {}
    for data in (SMALL, FULL):
        rng = np.random.default_rng(0)
        arrays = {
            t.op.name: values(rng, data, [int(n) for n in t.shape], str(t.dtype))
            for t in workload.args[:-1]
        }
        counters = runtime.run(artifact, arrays, representatives=True).counters
        found = kernel_bounds(counters, artifact.sources.nr_tasklets, target)
        cycles[data] = counters["cycles"]
        bounds[data] = {b.name: b.cycles for b in found if b.name in RESOURCES}
    schedule = f"{name} " + " ".join(f"{n}={value}" for n, value in decisions.items())
    return Row(case, sum(timing), schedule, cycles, bounds)


HEAD = (
    f"{'':18} {'types':14}   total ms | {'cycles':>10} {'slots':>10} {'MRAM':>10}  ratio"
    f" | {'full range':>10} {'slots':>10} {'MRAM':>10}  ratio"
)


def line(row: Row) -> str:
    """One winner, on values 0 to 49 and on full range."""
    text = f"{row.case.title:18} {row.case.dtype:14} {row.total_s * 1e3:10.3f}"
    for data in (SMALL, FULL):
        slots, mram = (row.bounds[data][name] for name in RESOURCES)
        text += f" | {row.cycles[data]:10,.0f} {slots:10,.0f} {mram:10,.0f} {row.ratio(data):6.3f}"
    return text


def run(quick: bool = False) -> int:
    """Print every winner; 1 when one takes more than 1.25 times its bound on values 0 to 49.

    Quick: the smallest.
    """
    print(f"{DPUS} DPUs, {TRIALS} trials; cycles of the slowest DPU, launch not included")
    print(HEAD)
    worst = 0.0
    for case in [CASES[n] for n in QUICK] if quick else CASES:
        row = measure(case)
        print(f"{line(row)}\n  {row.schedule}", flush=True)
        worst = max(worst, row.ratio(SMALL))
    print(f"at most {worst:.3f} times the bound on values 0 to 49 (limit {LIMIT})")
    return int(worst > LIMIT)
