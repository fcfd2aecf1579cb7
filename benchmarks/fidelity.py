"""Every published hardware figure that the simulator reproduces: simulated, published, error.

Limits are of the mean absolute error of a group, and of its worst row. VA, RED, HST-S and GEMV of
PrIM are not judged: their published times come from a compiler that needs more instructions in
loops with a run-time trip count, so instructions are printed beside (docs/simulator.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from atim import workloads
from benchmarks import arithmetic, fidelity_loops, fidelity_prim, pieces
from benchmarks.fidelity_rows import Group, Row, summary
from upmem_sim import DpuParams

__all__ = ["groups", "run"]


def _arithmetic(quick: bool) -> Iterator[Group]:
    """Instructions an element, beside those that the published rates imply."""
    whole = Group("arithmetic and STREAM, int32 and int64 add", mean_limit=0.03)
    routines = Group("float, double, 64-bit multiply and divide", mean_limit=0.08)
    clock = DpuParams().clock_mhz
    for row in arithmetic.published():
        count = arithmetic.measure(row.loop, 1 << (14 if quick else 18))
        soft = row.loop.split()[0] in ("float", "double") or row.loop in ("int64 mul", "int64 div")
        rate = clock * (row.bytes or 1) / count
        group = routines if soft else whole
        group.rows.append(Row(row.loop, row.value, rate, row.unit, f"{count:,.2f} instr"))
    yield whole
    yield routines


def _pieces(quick: bool) -> Iterator[Group]:
    """Kernel times of MTV by number of column pieces."""
    whole = Group("MTV 8192 x 8192, 1 to 256 column pieces", mean_limit=0.03)
    short = Group("MTV 8192 x 8192, rows of 16 and 8 columns")
    short.note = "the measured kernel's code around the inner loop is not known"
    workload = workloads.get("mtv", (pieces.SIZE, pieces.SIZE), "int32")
    inputs = workload.inputs(np.random.default_rng(0))
    for count, measured in pieces.published().items():
        if quick and count not in pieces.QUICK:
            continue
        kernel = pieces.measure(workload, inputs, count).kernel
        group = whole if count <= pieces.JUDGED else short
        group.rows.append(Row(f"{count} pieces", measured.kernel * 1e3, kernel * 1e3, "ms"))
    yield whole
    if short.rows:
        yield short


def groups(quick: bool = False) -> Iterator[Group]:
    """All groups, as they are measured."""
    yield fidelity_loops.loops()
    yield fidelity_loops.dma()
    yield from fidelity_loops.va_levels()
    yield fidelity_loops.multiplies()
    yield fidelity_loops.ranking(quick)
    yield from _arithmetic(quick)
    yield from _pieces(quick)
    yield from fidelity_prim.groups(quick)
    yield fidelity_loops.barriers()
    yield fidelity_loops.launches()


def run(quick: bool = False) -> int:
    """Print all groups and their errors; 1 when a group is outside a limit."""
    found = []
    for group in groups(quick):
        print(group.text(), end="\n\n", flush=True)
        found.append(group)
    print(summary(found))
    return int(any(group.failed for group in found))
