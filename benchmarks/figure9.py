"""Figures 9 and 10 of ATiM: PrIM's schedules, ATiM's and ours, in the simulator beside silicon.

For every case, totals with the large operand resident: a schedule in PrIM's style (best number of
DPUs), the same with its best parameters, ATiM's shipped schedule replayed, and ours, tuned. The
grids are those of ATiM's baselines (artefact, prim_autotune.py and prim_search_autotune.py): ranked
in closed form, then the best of them measured. Every kernel's results are compared with NumPy.

Two of PrIM's habits are not schedules of the same program, and are modelled as what they are: its
GEMV, as vendored by ATiM, multiplies every element by the scalar, a value of the run; its RED pulls
a 16-byte result of every tasklet from WRAM, which takes the host longer than MRAM.
"""

from __future__ import annotations

import contextlib
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from tvm import te

from atim import Target, workloads
from atim.schedules import manual
from atim.schedules.terms import terms_of
from atim.schedules.verify import explain
from atim.tuner.features import estimate
from atim.tuner.proposals import Candidate
from atim.tuner.search import Observation, Options, Search, propose_early
from atim.workloads import Workload
from benchmarks import shipped
from benchmarks.measured import Given, Measured, Timing, model
from benchmarks.shipped import Task
from upmem_sim import TransferModel

DATA = Path(__file__).parent / "data" / "figure9.csv"
DPUS = 2048
PHASES = ("h2d_s", "kernel_s", "d2h_s", "host_s")
PRESET = "upmem-2021.3-2048dpu"  # the system the figures were measured on
TRIALS, QUICK_TRIALS = 64, 32
MEASURED = 4  # of each grid, the best by estimate
PRIM_DPUS = (256, 512, 1024, 2048)
PRIM_TASKLETS, PRIM_CACHES = (8, 16, 24), (8, 16, 32, 64, 128, 256)
BATCH_TASKLETS, BATCH_CACHES = (1, 2, 4, 8, 16), (16, 32, 64, 128, 256)
LEAST_BATCH_DPUS = 32
RED_RESULT_BYTES = 16  # of one tasklet, in WRAM
SCALARS = {"geva": (workloads.C0, workloads.C1), "gemv": (workloads.C0,)}
WORST = 0.97
SHIPPED_GOAL, SHIPPED_WORST = 1.15, 0.98
GOALS = {"figure9": (2.1, 1.86), "fc": (3.7, 3.4), "mha": (1.0, 1.0)}
"""Suite -> geometric means over PrIM and over PrIM with its best parameters (silicon, ATiM)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One bar of the figures, with what was published, in seconds (None where it is not known)."""

    suite: str
    op: str
    shape: tuple[int, ...]
    prim: float | None
    prim_search: float | None
    atim: float | None
    phases: tuple[float, float, float] | None = None  # of atim: before, kernel, after

    @property
    def title(self) -> str:
        return f"{self.op} {'x'.join(map(str, self.shape))}"


@dataclass(frozen=True, slots=True)
class Row:
    """Simulated seconds of one case."""

    case: Case
    prim: float
    prim_search: float
    shipped: float
    ours: Timing
    schedule: str

    @property
    def total(self) -> float:
        return sum(self.ours)


def cases() -> list[Case]:
    """All cases, in the order of the figures."""
    lines = [line for line in DATA.read_text().splitlines() if not line.startswith("#")]

    def seconds(text: str) -> float | None:
        return float(text) * 1e-3 if text else None

    def phases(row: dict[str, str]) -> tuple[float, float, float] | None:
        before, kernel, after = (seconds(row[f"atim_{n}"]) for n in ("h2d", "kernel", "after"))
        if before is None or kernel is None or after is None:
            return None
        return before, kernel, after

    return [
        Case(
            row["suite"],
            row["op"],
            tuple(int(n) for n in row["shape"].split("x")),
            seconds(row["prim"]),
            seconds(row["prim_search"]),
            seconds(row["atim_total"]),
            phases(row),
        )
        for row in csv.DictReader(lines)
    ]


def prim_grid(measured: Measured, search: bool) -> Iterator[Task]:
    """PrIM's schedule with every number of DPUs, and with `search` the other parameters too."""
    op, shape = measured.workload.name, measured.workload.shape
    batched = op == "mmtv"
    dpus: tuple[int, ...] = PRIM_DPUS
    if batched:
        counts = [shape[0] * y for y in range(1, DPUS // shape[0] + 1)]
        dpus = tuple(n for n in counts if n >= LEAST_BATCH_DPUS)
    tasklets = BATCH_TASKLETS if batched else PRIM_TASKLETS
    caches = BATCH_CACHES if batched else PRIM_CACHES
    for count in dpus:
        sketch, decisions = manual.prim_of(measured.sketches, measured.target, count)
        yield sketch.name, decisions
        for number, cache in product(tasklets, caches) if search else ():
            yield sketch.name, decisions | {"tasklets": number, "tile": cache}


def scaled(case: Case) -> tuple[Workload, Given]:
    """A case's workload where scalars are values of the run, and these values: GEMV multiplies
    every element. Others as they are."""
    plain = workloads.get(case.op, case.shape)
    if case.op not in SCALARS:
        return plain, ()
    a, b = plain.args[:2]
    s = te.placeholder((len(SCALARS[case.op]),), plain.dtype, "s")
    if case.op == "geva":
        c = te.compute(case.shape, lambda i: s[0] * a[i] + s[1] * b[i], "C")
    else:
        k = te.reduce_axis((0, case.shape[1]), "k")
        c = te.compute(case.shape[:1], lambda i: te.sum(s[0] * a[i, k] * b[k], axis=k), "y")
    row = replace(plain.row, resident=(*plain.row.resident, "s"))
    return replace(plain, args=(a, b, s, c), row=row), (("s", SCALARS[case.op]),)


def prim_timing(measured: Measured, task: Task, timing: Timing) -> Timing:
    """Seconds of PrIM's schedule; its sums over everything come out of WRAM."""
    if measured.workload.name != "red":
        return timing
    sketch, (name, decisions) = measured.sketches[0], task
    assert name == sketch.name, "RED has one sketch"
    terms = terms_of(sketch, sketch.vector(decisions))
    size = RED_RESULT_BYTES * int(terms["tasklets"][0])
    pulled = TransferModel.preset(PRESET).from_wram(size, int(terms["dpus"][0]))
    return timing[0], timing[1], pulled, timing[3]


def prim_best(measured: Measured) -> tuple[float, float]:
    """Seconds of the best number of DPUs, and of the best of all parameters."""
    plain = sum(prim_plain(measured))
    seen = partial(prim_timing, measured)
    best = best_of(measured, list(prim_grid(measured, search=True)), seen)
    return plain, min(plain, sum(best))


def prim_plain(measured: Measured) -> Timing:
    """PrIM's schedule on the best number of DPUs."""
    seen = partial(prim_timing, measured)
    return best_of(measured, list(prim_grid(measured, search=False)), seen)


def as_it_is(task: Task, timing: Timing) -> Timing:
    """No correction of a measured timing."""
    return timing


def best_of(
    measured: Measured,
    tasks: Sequence[Task],
    seen: Callable[[Task, Timing], Timing] = as_it_is,
) -> Timing:
    """The best of some tasks, measured, as `seen` corrects their times: those that are promising by
    estimate run."""
    by_name = {sketch.name: n for n, sketch in enumerate(measured.sketches)}
    rated: list[tuple[float, int]] = []
    for n, (name, decisions) in enumerate(tasks):
        sketch = measured.sketches[by_name[name]]
        if explain(sketch, decisions, measured.target) is None:
            phases = estimate(terms_of(sketch, sketch.vector(decisions)), sketch)
            first, second, third, fourth = (float(phases[p][0]) for p in PHASES)
            timing = (first, second, third, fourth)
            rated.append((sum(seen(tasks[n], timing)), n))
    chosen = [tasks[n] for _, n in sorted(rated)[:MEASURED]]
    timings = [
        seen(task, timing)
        for task, timing in zip(chosen, measured.timings(chosen), strict=True)
        if timing is not None
    ]
    assert timings, f"{measured.workload.name}: none of {len(tasks)} schedules is valid"
    return min(timings, key=sum)


def tuned(measured: Measured, trials: int) -> tuple[Timing, str]:
    """Timing of the best that our search finds, and its decisions."""
    timing, (name, decisions) = winner(measured, trials)
    return timing, f"{name} " + " ".join(f"{n}={value}" for n, value in decisions.items())


def winner(measured: Measured, trials: int) -> tuple[Timing, Task]:
    """Timing of the best that our search finds, its sketch and decisions."""
    search = Search(measured.space, model(), Options(trials=trials))
    history: list[Observation] = []
    proposed: list[Candidate] = []
    while proposed := propose_early(search, history, len(proposed))[0]:
        history += measured.observe(proposed)
    best = min(history, key=lambda o: o.seconds)
    name, decisions = measured.task(best.candidate)
    (timing,) = measured.timings([(name, decisions)])
    assert timing is not None, f"{measured.workload.name}: nothing valid in {trials} trials"
    return timing, (name, decisions)


def measure(case: Case, trials: int) -> Row:
    """Everything of one case."""
    target = Target(dpus=DPUS, transfer=PRESET)
    row = shipped.table()[case.op, case.shape]
    with contextlib.ExitStack() as stack:
        measured = stack.enter_context(Measured(workloads.get(case.op, case.shape), target))
        other = measured
        if case.op == "gemv":
            workload, given = scaled(case)
            other = stack.enter_context(Measured(workload, target, given=given))
        prim = prim_best(other)
        replayed = best_of(measured, shipped.readings(row, measured.sketches))
        return Row(case, *prim, sum(replayed), *tuned(measured, trials))


HEAD = (
    f"{'milliseconds':22}   PrIM  +search shipped |   h2d kernel   d2h  host  total |"
    "  PrIM  (meas) +search  (meas) shipped"
)


def line(row: Row) -> str:
    """One line: simulated times, and speed-ups beside those of ATiM on silicon."""
    times = "".join(f"{s * 1e3:8.3f}" for s in (row.prim, row.prim_search, row.shipped))
    parts = "".join(f"{s * 1e3:6.2f}" for s in row.ours)
    case, total = row.case, row.total

    def published(seconds: float | None) -> str:
        known = seconds is not None and case.atim is not None
        return f"({seconds / case.atim:5.2f})" if known and seconds and case.atim else " " * 7

    return (
        f"{case.title:20}{times} |{parts}{total * 1e3:7.3f} |"
        f"{row.prim / total:6.2f} {published(case.prim)}"
        f"{row.prim_search / total:8.2f} {published(case.prim_search)}{row.shipped / total:8.3f}"
    )


def summary(rows: Sequence[Row]) -> tuple[list[str], bool]:
    """Geometric means by suite and what they are judged by; True when all goals are met."""
    lines, good = [], True
    for suite, (over_prim, over_search) in GOALS.items():
        own = [row for row in rows if row.case.suite == suite]
        if not own:
            continue
        prim = _geometric([row.prim / row.total for row in own])
        search = _geometric([row.prim_search / row.total for row in own])
        ours = _geometric([row.shipped / row.total for row in own])
        lines.append(
            f"{suite:8} {len(own):2} cases: {prim:.2f}x PrIM (goal {over_prim}), {search:.2f}x with"
            f" its best parameters (goal {over_search}), {ours:.3f}x ATiM's shipped"
        )
        good &= prim >= over_prim and search >= over_search
    ratio = _geometric([row.shipped / row.total for row in rows])
    slowest = min(rows, key=lambda row: row.shipped / row.total)
    worst = min(rows, key=lambda row: row.prim_search / row.total)
    lines += [
        f"all: {ratio:.3f}x ATiM's shipped schedules (goal {SHIPPED_GOAL}), at worst"
        f" {slowest.shipped / slowest.total:.3f}x: {slowest.case.title} (goal {SHIPPED_WORST})",
        f"worst over PrIM with its best parameters: {worst.prim_search / worst.total:.3f}x:"
        f" {worst.case.title} (goal {WORST})",
    ]
    good &= ratio >= SHIPPED_GOAL and slowest.shipped / slowest.total >= SHIPPED_WORST
    return lines, good and worst.prim_search / worst.total >= WORST


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def run(quick: bool = False) -> int:
    """Print the table and what it is judged by; 1 when a goal is missed.

    Quick: cases of up to 2^21 elements, with fewer trials.
    """
    print(f"{DPUS} DPUs, transfer model {PRESET}; (meas): ATiM's own speed-up on UPMEM DIMMs")
    print(HEAD)
    rows = []
    for case in cases():
        if quick and np.prod(case.shape) > 1 << 21:
            continue
        rows.append(measure(case, QUICK_TRIALS if quick else TRIALS))
        print(line(rows[-1]), flush=True)
        print(f"  {rows[-1].schedule}", file=sys.stderr, flush=True)
    lines, good = summary(rows)
    print("\n".join(lines))
    return int(not good)
