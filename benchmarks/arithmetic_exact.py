"""Every arithmetic routine against NumPy, bit for bit, on special and random operands.

A full run compares a million random operands for each routine (fewer for those of a thousand
instructions), a quick one 20,000; special values meet every other special value in both.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.arith_driver import Routine, call
from benchmarks.arith_reference import ROUTINES, expected, random, special, wrong

FULL, QUICK = 1_000_000, 20_000
# Newton-Raphson divisions and roots: thousands of instructions an operand
_SLOW = {"__divsf3": 4, "__divdf3": 8, "sqrt": 4, "__muldf3": 2}


def check(routine: Routine, rng: np.random.Generator, count: int) -> tuple[int, int, float, str]:
    """(operands, mismatches, mean instructions on the random ones, first mismatch or "")."""
    compared = mismatches = 0
    first, inside = "", 0.0
    for operands in (special(routine), random(routine, rng, count)):
        got, inside = call(routine, *operands)
        want = expected(routine, *operands)
        bad = np.flatnonzero(wrong(routine, got, want))
        compared, mismatches = compared + len(got), mismatches + len(bad)
        if len(bad) and not first:
            i = bad[0]
            first = f"{[x[i] for x in operands]} gives {got[i]}, should be {want[i]}"
    return compared, mismatches, inside, first


def run(quick: bool) -> int:
    """Print a line for each routine; exit status 1 if any result differs."""
    rng = np.random.default_rng(754)
    count = QUICK if quick else FULL
    print(f"{'routine':16} {'operands':>9} {'wrong':>6} {'instructions':>13} {'seconds':>8}")
    total = failures = 0
    for routine in ROUTINES.values():
        start = time.perf_counter()
        compared, bad, inside, first = check(routine, rng, count // _SLOW.get(routine.name, 1))
        seconds = time.perf_counter() - start
        print(f"{routine.name:16} {compared:9d} {bad:6d} {inside:13.1f} {seconds:8.1f}", flush=True)
        if first:
            print(f"    {first}")
        total, failures = total + compared, failures + bad
    print(f"{len(ROUTINES)} routines, {total:,} results, {failures} wrong")
    return 1 if failures else 0
