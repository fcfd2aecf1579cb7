"""Every program x type x shape x random legal decisions: all DPUs simulated, equal to NumPy.

Shapes are aligned, odd, prime, smaller than the number of DPUs, and single elements; decisions are
drawn on and off the coarse grid and pass `verify.check`. A case fails when anything after that
raises (a later refusal, a fault of the machine, a write outside of a tile) or when one element
differs from NumPy. Failures are counted by kind, the smallest case of each is printed.
"""

from __future__ import annotations

import re
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from multiprocessing import get_context

import numpy as np
from tvm import te

from atim import pipeline, runtime, toolchain
from atim.errors import UnsupportedError
from atim.schedules import Sketch, design_space
from atim.schedules.shapes import canonical
from atim.schedules.verify import check
from atim.target import Target
from benchmarks.program_table import PROGRAMS, fill

TARGET = Target(dpus=24)
CASES, QUICK_CASES = 5000, 300
SHAPES = 20
DRAWS = 2000
WORKERS = 2
MAX_ELEMENTS = 6000  # of a program's loops, so that a case takes a fraction of a second

# sizes by kind: aligned, odd, prime, smaller than the number of DPUs, one
SIZES = (
    (8, 16, 32, 64, 128, 256, 1024),
    (9, 15, 21, 33, 77, 125, 999),
    (2, 3, 7, 13, 31, 97, 251, 1009),
    (2, 5, 6, 10, 12, 20, 23),
    (1,),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One candidate of one program; `seed` draws the arrays."""

    program: str
    dtype: str
    sizes: tuple[int, ...]
    sketch: int
    values: tuple[int, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case: None for equal to NumPy, else the kind of failure and its message."""

    case: Case
    kind: str | None
    message: str = ""


def shapes_of(program: str, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """SHAPES shapes of a program: every kind of size alone, then mixtures."""
    count = PROGRAMS[program].sizes
    kinds = [[k] * count for k in range(len(SIZES))]
    while len(kinds) < SHAPES:
        kinds.append([int(k) for k in rng.integers(0, len(SIZES), count)])
    shapes = []
    for chosen in kinds:
        sizes = [int(rng.choice(SIZES[k])) for k in chosen]
        while prod(sizes) > MAX_ELEMENTS:
            at = int(np.argmax(sizes))
            smaller = [n for n in SIZES[chosen[at]] if n < sizes[at]]
            sizes[at] = smaller[-1] if smaller else sizes[at] // 2
        shapes.append(tuple(sizes))
    return shapes


@lru_cache(maxsize=64)
def sketches_of(program: str, dtype: str, sizes: tuple[int, ...]) -> list[Sketch]:
    args, _ = PROGRAMS[program].build(dtype, sizes)
    return design_space(te.create_prim_func(args), TARGET)


def draw(program: str, dtype: str, sizes: tuple[int, ...], seed: int, count: int) -> list[Case]:
    """`count` random legal candidates, the program's sketches in turn."""
    rng = np.random.default_rng(seed)
    cases: list[Case] = []
    sketches = sketches_of(program, dtype, sizes)
    for number, sketch in enumerate(sketches):
        columns = []
        for decision in sketch.decisions:
            on_grid = rng.choice(decision.values, DRAWS)
            low, high = min(decision.values), max(decision.values)
            off_grid = rng.integers(low, high + 1, DRAWS)
            columns.append(np.where(rng.random(DRAWS) < 0.3, off_grid, on_grid))
        matrix = np.stack(columns, axis=1)
        legal = matrix[check(sketch, matrix, TARGET)[0]]
        legal = np.unique(canonical(sketch, legal), axis=0)
        share = -(-count // len(sketches))
        for row in rng.permutation(legal)[:share]:
            cases.append(Case(program, dtype, sizes, number, tuple(map(int, row)), seed))
    return cases[:count]


def run_case(case: Case) -> Result:
    """Compile, build, run all DPUs, compare."""
    args, reference = PROGRAMS[case.program].build(case.dtype, case.sizes)
    rng = np.random.default_rng(case.seed)
    arrays = {t.op.name: fill(rng, tuple(int(n) for n in t.shape), str(t.dtype)) for t in args[:-1]}
    with np.errstate(all="ignore"):
        expected = reference(arrays)
    sketch = sketches_of(case.program, case.dtype, case.sizes)[case.sketch]
    decisions = dict(zip(sketch.names, case.values, strict=True))
    try:
        sources = pipeline.compile(sketch, decisions, TARGET)
        outcome = runtime.run(toolchain.build(sources, TARGET), arrays, threads=1)
    except Exception as error:
        return Result(case, kind_of(error), f"{sketch.name} {decisions}: {error}")
    assert outcome.outputs is not None
    (output,) = outcome.outputs.values()
    if output.dtype != expected.dtype or not np.array_equal(output, expected, equal_nan=True):
        wrong = np.argwhere(output != expected)[:1].tolist()
        return Result(case, "different from NumPy", f"{sketch.name} {decisions}: first at {wrong}")
    return Result(case, None)


def kind_of(error: Exception) -> str:
    """The error's type and message without the names and numbers of the case."""
    text = re.sub(r"\b[\w.]*\d[\w.]*\b", "N", str(error))
    if type(error).__module__.split(".")[0] not in ("atim", "upmem_sim"):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{text} ({frame.name})"
    return f"{type(error).__name__}: {text}"[:160]


def plan(total: int, seed: int = 0) -> list[tuple[str, str, tuple[int, ...], int, int]]:
    """(program, dtype, sizes, seed, candidates): every program, type and shape as evenly as the
    total allows."""
    rng = np.random.default_rng(seed)
    every = [
        (program, dtype, sizes)
        for program, row in PROGRAMS.items()
        for dtype in row.types
        for sizes in shapes_of(program, rng)
    ]
    order = rng.permutation(len(every))
    base, more = divmod(total, len(every))
    jobs = []
    for place, index in enumerate(order.tolist()):
        count = base + (place < more)
        if count:
            jobs.append((*every[index], int(rng.integers(2**31)), count))
    return jobs


def run_job(job: tuple[str, str, tuple[int, ...], int, int]) -> list[Result]:
    """All candidates of one program, type and shape; a refused program is a failure too."""
    program, dtype, sizes, seed, count = job
    try:
        cases = draw(program, dtype, sizes, seed, count)
    except Exception as error:
        kind = "refused" if isinstance(error, UnsupportedError) else type(error).__name__
        nothing = Case(program, dtype, sizes, -1, (), seed)
        return [Result(nothing, f"{kind}: {program}", str(error))]
    return [run_case(case) for case in cases]


def report(results: list[Result], seconds: float) -> None:
    """Counts, and the smallest case of each kind of failure."""
    failed = [r for r in results if r.kind is not None]
    print(f"{len(results)} cases, {len(failed)} failed, {seconds:.0f} s")
    for kind, count in Counter(r.kind for r in failed).most_common():
        some = [r for r in failed if r.kind == kind]
        programs = Counter(r.case.program for r in some).most_common(4)
        least = min(some, key=lambda r: prod(r.case.sizes))
        names = ", ".join(f"{name} {n}" for name, n in programs)
        print(f"  {count:5} {kind}\n        {names}")
        print(f"        {least.case.program} {least.case.dtype} {least.case.sizes}")
        print(f"        {least.message}")


def run(quick: bool = False) -> int:
    """Draw, run and report; 1 when a case failed."""
    total = QUICK_CASES if quick else CASES
    jobs = plan(total)
    start = time.monotonic()
    kinds = {(job[0], job[1]) for job in jobs}
    print(f"{len(PROGRAMS)} programs, {len(kinds)} with their types, up to {TARGET.dpus} DPUs")
    results: list[Result] = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for part in pool.map(run_job, jobs, chunksize=4):
            results += part
    report(results, time.monotonic() - start)
    return int(any(r.kind is not None for r in results))
