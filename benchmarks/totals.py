"""Figures 9 and 10 of ATiM, phase by phase: ATiM's shipped schedules and PrIM's beside silicon.

Every row whose time was published, with the large operand resident, on the transfer model of the
server it was measured on. Kernels of MTV, TTV, MMTV and RED run ATiM's loops in ATiM's code, those
of others our sketches with the shipped decisions and what ATiM's code takes to start
(atim_code.py). At which of two loops the caches sit was not published. The mean error is that of
the place with the faster kernel, of those that ATiM's limit of WRAM allows; a row fails when no
place is near. The errors of the nearest place are printed as well. For PrIM the best of the numbers
of DPUs counts, as in the figures; only its total was published. It stands here twice: the schedule
as our compiler builds it, and with what PrIM's code takes besides (prim_code.py). Neither computes
on some ranks while it transfers to others. "After" is the way back and the host's sum. Results are
compared with NumPy.

Scalars are values of the run, 3 and 5, and GEMV multiplies every element, in both: PrIM's code does
so, and ATiM's kernels take 5 to 6 slots a product longer than those of MTV and no longer after:
half of a multiplication, which the two rows of its innermost tile share. Those of GEVA take 27
slots an element at 8 tasklets, two multiplications by the library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from atim import Target
from benchmarks import atim_code, shipped
from benchmarks.figure9 import (
    DPUS,
    PRESET,
    Case,
    best_of,
    cases,
    prim_grid,
    prim_timing,
    scaled,
)
from benchmarks.measured import Measured, Timing
from benchmarks.prim_code import as_measured
from upmem_sim import TransferModel

QUICK_ELEMENTS = 1 << 20
LOOPS = ("mtv", "ttv", "mmtv", "red")  # whose kernels run ATiM's loops
KERNEL_MEAN, KERNEL_WORST, TOTAL_MEAN = 0.08, 0.20, 0.20


@dataclass(frozen=True, slots=True)
class Row:
    """Simulated seconds of one case: (h2d, kernel, d2h, host); None where nothing is published.

    places: of ATiM's schedule, for each loop at which its caches may sit.
    """

    case: Case
    places: tuple[Timing, ...]
    style: Timing | None
    prim: Timing | None

    @property
    def atim(self) -> Timing | None:
        """ATiM's schedule with its caches where the kernel is fastest."""
        return min(self.places, key=lambda timing: timing[1], default=None)

    @property
    def nearest(self) -> float:
        """Relative error of the kernel at the place that is nearest to the published time."""
        assert self.case.phases is not None, "published"
        return min((t[1] / self.case.phases[1] - 1 for t in self.places), key=abs)

    def errors(self) -> dict[str, float]:
        """Name of a phase or total -> relative error, of those that are published."""
        found = {}
        if self.atim and self.case.phases:
            h2d, kernel, d2h, host = self.atim
            pairs = zip((h2d, kernel, d2h + host), self.case.phases, strict=True)
            found = {
                name: ours / known - 1
                for name, (ours, known) in zip(("before", "kernel", "after"), pairs, strict=True)
                if known > 1e-5  # three digits of a millisecond are published
            }
            found["total"] = sum(self.atim) / sum(self.case.phases) - 1
        if self.style and self.prim and self.case.prim:
            found["PrIM-style"] = sum(self.style) / self.case.prim - 1
            found["PrIM"] = sum(self.prim) / self.case.prim - 1
        return found


def replayed(measured: Measured) -> tuple[Timing, ...]:
    """A timing for each place of the caches."""
    given = shipped.table()[measured.workload.name, measured.workload.shape]
    readings = shipped.readings(given, measured.sketches)
    if given.op not in LOOPS:
        return _by_decisions(measured, given, readings)
    (timing,) = measured.timings(readings[:1])
    assert timing is not None, f"{given.op} {given.shape}: the reading is not valid"
    launch = TransferModel.preset(PRESET).launch(math.prod(given.grid))
    kernels = atim_code.kernels(given).values()
    return tuple((timing[0], launch + kernel, timing[2], timing[3]) for kernel in kernels)


def _by_decisions(
    measured: Measured, given: shipped.Shipped, readings: Sequence[shipped.Task]
) -> tuple[Timing, ...]:
    """The fastest kernel for each place of the caches, which is the tile, of the readings that
    unroll most; GEMV with the rows of the innermost tile together."""
    if given.op == "gemv":
        rows = given.splits[-2][1][-1]
        readings = [(name, d) for name, d in readings if d["row_block"] == rows]
    start = atim_code.start_up(given.tasklets, 3)  # a cache of each operand, and the results
    most = {d["tile"]: 1 for _, d in readings}
    for _, decisions in readings:
        most[decisions["tile"]] = max(most[decisions["tile"]], decisions["unroll"])
    tasks = [(name, d) for name, d in readings if d["unroll"] == most[d["tile"]]]
    places: dict[int, Timing] = {}
    for (_, decisions), timing in zip(tasks, measured.timings(tasks), strict=True):
        best = places.get(decisions["tile"], timing)
        if timing is not None and best is not None:
            places[decisions["tile"]] = min(best, timing, key=lambda phases: phases[1])
    assert places, f"{measured.workload.name} {given.shape}: no reading is valid"
    return tuple((t[0], t[1] + start, t[2], t[3]) for t in places.values())


def measure(case: Case) -> Row:
    """Both schedules of one case, as far as they are published."""
    target = Target(dpus=DPUS, transfer=PRESET)
    workload, given = scaled(case)
    with Measured(workload, target, given=given, groups=False) as measured:
        atim = replayed(measured) if case.phases else ()
        if not case.prim:
            return Row(case, atim, None, None)
        tasks = list(prim_grid(measured, search=False))
        style = best_of(measured, tasks, partial(prim_timing, measured))
        return Row(case, atim, style, best_of(measured, tasks, partial(as_measured, measured)))


HEAD = (
    f"{'milliseconds':20} |  before  known  error |  kernel  known  error |"
    "   after  known  error |   total  known  error |"
    " PrIM-style  error |    PrIM  known  error (before, kernel, after)"
)


def line(row: Row) -> str:
    """One case: ATiM's phases and total, then PrIM's total."""
    errors, cells = row.errors(), []
    if row.atim and row.case.phases:
        h2d, kernel, d2h, host = row.atim
        ours = (h2d, kernel, d2h + host, sum(row.atim))
        known = (*row.case.phases, sum(row.case.phases))
        names = ("before", "kernel", "after", "total")
        cells = [_cell(*c) for c in zip(ours, known, map(errors.get, names), strict=True)]
    text = " | ".join(cells or [" " * 22] * 4)
    if row.style and row.prim and row.case.prim:
        h2d, kernel, d2h, host = row.prim
        text += f" |   {sum(row.style) * 1e3:8.3f} {errors['PrIM-style']:+6.0%}"
        text += f" | {_cell(sum(row.prim), row.case.prim, errors['PrIM'])}"
        text += f" ({h2d * 1e3:.3f}, {kernel * 1e3:.3f}, {(d2h + host) * 1e3:.3f})"
    return f"{row.case.title:20} | {text}"


def _cell(ours: float, known: float, error: float | None) -> str:
    shown = "" if error is None else f"{error:+.0%}"
    return f"{ours * 1e3:7.3f} {known * 1e3:6.3f} {shown:>6}"


def summary(rows: Sequence[Row]) -> tuple[list[str], bool]:
    """Mean absolute errors by suite and of all, as a Markdown table; True within the limits."""
    names = ("before", "kernel", "after", "total", "PrIM-style", "PrIM")
    lines = [f"| {'rows':8} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    groups = {suite: [r for r in rows if r.case.suite == suite] for suite in _suites(rows)}
    for title, chosen in (*groups.items(), ("all", list(rows))):
        found = [row.errors() for row in chosen]
        means = [_mean(e[name] for e in found if name in e) for name in names]
        lines.append(f"| {title:8} | {' | '.join(means)} |")
    kernels = [row for row in rows if "kernel" in row.errors()]
    worst = max(kernels, key=lambda row: abs(row.errors()["kernel"]))
    lines.append(f"worst kernel: {worst.errors()['kernel']:+.1%}, {worst.case.title}")
    extreme = max(kernels, key=lambda row: abs(row.nearest))
    lines.append(
        "caches at the place nearest to the published time: kernel"
        f" {_mean(row.nearest for row in kernels)}, worst {extreme.nearest:+.1%},"
        f" {extreme.case.title}"
    )
    every = [row.errors() for row in rows]
    limits = {"kernel": KERNEL_MEAN, "total": TOTAL_MEAN, "PrIM": TOTAL_MEAN}
    good = abs(extreme.nearest) <= KERNEL_WORST
    for name, limit in limits.items():
        good &= float(np.mean([abs(e[name]) for e in every if name in e])) <= limit
    return lines, good


def _suites(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.case.suite for row in rows))


def _mean(errors: Iterable[float]) -> str:
    values = [abs(e) for e in errors]
    return f"{np.mean(values):5.1%} ({len(values)})" if values else "-"


def run(quick: bool = False) -> int:
    """Print every row and the mean errors; 1 when a limit is passed.

    Quick: cases of up to 2^20 elements.
    """
    print(f"{DPUS} DPUs, transfer model {PRESET}; known: published, measured on UPMEM DIMMs")
    print(HEAD)
    rows = []
    for case in cases():
        if case.atim is None or (quick and np.prod(case.shape) > QUICK_ELEMENTS):
            continue
        rows.append(measure(case))
        print(line(rows[-1]), flush=True)
    lines, good = summary(rows)
    print("\n".join(["", *lines]))
    return int(not good)
