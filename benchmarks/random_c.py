"""Random C functions compiled by us and by g++: the same results on random inputs.

A full run takes 10,000 functions, a quick one 200, at -O1, -O2, -O3 and -Os in turn. Each program
has five functions that are called on twelve inputs, and helpers that these call.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.c_runs import check

FULL, QUICK = 10_000, 200
FUNCTIONS, INPUTS = 5, 12
LEVELS = ("-O1", "-O2", "-O3", "-Os")


def difference(seed: int) -> str | None:
    """What differs in the program of a seed, an error included; None if nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return check(seed, LEVELS[seed % len(LEVELS)], Path(folder), INPUTS, FUNCTIONS)
        except Exception as error:
            return f"seed {seed} {LEVELS[seed % len(LEVELS)]}: {type(error).__name__}: {error}"


def run(quick: bool) -> int:
    """Print disagreements and a summary; exit status 1 if there are any."""
    programs = (QUICK if quick else FULL) // FUNCTIONS
    bad, start = 0, time.perf_counter()
    with ProcessPoolExecutor() as pool:
        for found in pool.map(difference, range(programs), chunksize=5):
            if found is not None:
                bad += 1
                print(found, flush=True)
    seconds = time.perf_counter() - start
    functions = programs * FUNCTIONS
    print(f"{functions:,} functions on {INPUTS} inputs each, {bad} disagree, {seconds:.0f} s")
    return 1 if bad else 0
