"""Every program x type x shape x random legal decisions: all DPUs simulated, equal to NumPy.

Shapes are aligned, odd, prime, smaller than the number of DPUs, and single elements; decisions are
drawn on and off the coarse grid and pass `verify.check`. A case fails when anything after that
raises (a fault of the machine, a write outside of a tile, a refusal without a limit) or when one
element differs from NumPy, or one of what the tuner compares with. Of a program of several stages
each has a candidate of its own. Candidates that exceed a limit known only after the build
(instructions, stacks, and what stages share as one program) are counted, and others drawn in their
place. Failures are told as they come and counted by kind, the smallest case of each is printed.
"""

from __future__ import annotations

import re
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from math import prod
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx

from atim.errors import ScheduleError, UnsupportedError
from atim.schedules import Sketch, design_space
from atim.schedules.canonical import canonical
from atim.schedules.stages import Stage, stages_of
from atim.schedules.verify import check
from atim.target import Target
from atim.tuner.measure import staged_arrays
from atim.tuner.staged import build_stages
from benchmarks.program_stages import PROGRAMS
from benchmarks.program_table import fill

Array = npt.NDArray[Any]

TARGET = Target(dpus=24)
CASES, QUICK_CASES = 5000, 300
SHAPES = 20
DRAWS = 2000
SPARE = 20  # candidates drawn besides, for those that a limit refuses
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


# what is known only after the build: of one kernel, and of several stages as one program
LIMIT = re.compile(r"^((?:stages as one program: )?(?:IRAM|stack)|stages as one program: [WM]RAM):")

# of each stage on DPUs: which of its sketches, and the values of that sketch's decisions
Choices = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One candidate of one program; `seed` draws the arrays."""

    program: str
    dtype: str
    sizes: tuple[int, ...]
    choices: Choices
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case: None for equal to NumPy, else the kind of failure and its message.
    `limit`: it was not run, for it exceeds this memory of a DPU."""

    case: Case
    kind: str | None
    message: str = ""
    limit: str | None = None


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


@lru_cache(maxsize=16)
def stages_in(
    program: str, dtype: str, sizes: tuple[int, ...]
) -> tuple[tirx.PrimFunc, list[list[Sketch]]]:
    """The program, and the sketches of each of its stages on DPUs."""
    args, _ = PROGRAMS[program].build(dtype, sizes)
    func = te.create_prim_func(args)
    stages = [stage for stage in stages_of(func) if stage.reason is None]
    return func, [design_space(stage.func, TARGET) for stage in stages]


def draw(program: str, dtype: str, sizes: tuple[int, ...], seed: int, count: int) -> list[Case]:
    """Up to `count` random legal candidates, the sketches of each stage in turn."""
    rng = np.random.default_rng(seed)
    _, stages = stages_in(program, dtype, sizes)
    drawn = [_drawn(sketches, rng, count) for sketches in stages]
    most = min(count, max(map(len, drawn)))
    return [
        Case(program, dtype, sizes, tuple(some[n % len(some)] for some in drawn), seed)
        for n in range(most)
    ]


def _drawn(
    sketches: list[Sketch], rng: np.random.Generator, count: int
) -> list[tuple[int, tuple[int, ...]]]:
    """Legal candidates of one stage, at most `count`: one of each sketch in turn, beginning with
    any of them."""
    found: list[list[tuple[int, tuple[int, ...]]]] = []
    for number in rng.permutation(len(sketches)).tolist():
        sketch = sketches[number]
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
        found.append([(number, tuple(map(int, row))) for row in rng.permutation(legal)[:share]])
    turns = [some for turn in zip_longest(*found) for some in turn if some is not None]
    if not turns:
        raise ScheduleError(f"nothing legal in {DRAWS} draws")
    return turns[:count]


def run_case(case: Case) -> Result:
    """Compile, build, run all DPUs, compare."""
    row = PROGRAMS[case.program]
    args, reference = row.build(case.dtype, case.sizes)
    rng = np.random.default_rng(case.seed)
    arrays = {t.op.name: fill(rng, tuple(int(n) for n in t.shape), str(t.dtype)) for t in args[:-1]}
    with np.errstate(all="ignore"):
        expected = reference(arrays)
    func, _ = stages_in(case.program, case.dtype, case.sizes)
    compared = staged_arrays(arrays, [stage.func for stage in stages_of(func)])[args[-1].op.name]
    if not _equal(compared, expected, row.tolerance):
        return Result(case, "the tuner's reference is different from NumPy")
    told: list[str] = []
    left = iter(case.choices)

    def choose(_: Stage, sketches: list[Sketch]) -> tuple[Sketch, Mapping[str, int]]:
        number, values = next(left)
        decisions = dict(zip(sketches[number].names, values, strict=True))
        told.append(f"{sketches[number].name} {decisions}")
        return sketches[number], decisions

    try:
        output, _ = build_stages(func, TARGET, choose=choose)(threads=1, **arrays)
    except Exception as error:
        limit = LIMIT.search(str(error)) if isinstance(error, ScheduleError) else None
        message = f"{'; '.join(told)}: {error}"
        return Result(case, kind_of(error), message, limit and limit[1])
    if output.dtype != expected.dtype or output.shape != expected.shape:
        what = f"{output.dtype}{output.shape}, should be {expected.dtype}{expected.shape}"
        return Result(case, "other shape or type", f"{'; '.join(told)}: {what}")
    if not _equal(output, expected, row.tolerance):
        wrong = np.argwhere(output != expected)[:1].tolist()
        return Result(case, "different from NumPy", f"{'; '.join(told)}: first at {wrong}")
    return Result(case, None)


def _equal(output: Array, expected: Array, tolerance: float) -> bool:
    if not tolerance:
        return bool(np.array_equal(output, expected, equal_nan=output.dtype.kind == "f"))
    finite = np.abs(expected[np.isfinite(expected)])
    far = tolerance * float(np.max(finite, initial=0.0))
    return bool(np.allclose(output, expected, rtol=tolerance, atol=far, equal_nan=True))


def kind_of(error: Exception) -> str:
    """The error's type and message without the names and numbers of the case."""
    text = re.sub(r"\b[\w.]*\d[\w.]*\b", "N", str(error))
    if type(error).__module__.split(".")[0] not in ("atim", "upmem_sim"):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{text} ({frame.name})"
    return f"{type(error).__name__}: {text}"[:160]


def plan(total: int, seed: int) -> list[tuple[str, str, tuple[int, ...], int, int]]:
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
    """All candidates of one program, type and shape, and those that a limit refused; a refused
    program, and one of which nothing fits, is a failure."""
    program, dtype, sizes, seed, count = job
    try:
        cases = draw(program, dtype, sizes, seed, count + SPARE)
    except Exception as error:
        kind = "refused" if isinstance(error, UnsupportedError) else type(error).__name__
        nothing = Case(program, dtype, sizes, (), seed)
        return [Result(nothing, f"{kind}: {program}", str(error))]
    results: list[Result] = []
    ran = 0
    for case in cases:
        results.append(run_case(case))
        ran += results[-1].limit is None
        if ran == count:
            break
    return results if ran else [replace(results[-1], limit=None)]


def _is_failure(result: Result) -> bool:
    return result.kind is not None and result.limit is None


def report(results: list[Result], seconds: float) -> None:
    """Counts, and the smallest case of each kind of failure."""
    refused = Counter(r.limit for r in results if r.limit is not None)
    results = [r for r in results if r.limit is None]
    failed = [r for r in results if r.kind is not None]
    print(f"{len(results)} cases, {len(failed)} failed, {seconds:.0f} s")
    for limit, count in refused.most_common():
        print(f"  {count:5} others exceed a limit: {limit}")
    for kind, count in Counter(r.kind for r in failed).most_common():
        some = [r for r in failed if r.kind == kind]
        programs = Counter(r.case.program for r in some).most_common(4)
        least = min(some, key=lambda r: prod(r.case.sizes))
        names = ", ".join(f"{name} {n}" for name, n in programs)
        print(f"  {count:5} {kind}\n        {names}")
        print(f"        {least.case.program} {least.case.dtype} {least.case.sizes}")
        print(f"        {least.message}")


def run(quick: bool = False, cases: int | None = None, seed: int = 0) -> int:
    """Draw, run and report; 1 when a case failed. Twenty of every shape are 144,400 `cases`."""
    jobs = plan(cases or (QUICK_CASES if quick else CASES), seed)
    start = time.monotonic()
    kinds = {(job[0], job[1]) for job in jobs}
    print(f"{len(PROGRAMS)} programs, {len(kinds)} with their types, up to {TARGET.dpus} DPUs")
    results: list[Result] = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for done, part in enumerate(pool.map(run_job, jobs, chunksize=4), 1):
            results += part
            for failed in (r for r in part if _is_failure(r)):
                case = failed.case
                print(f"{case.program} {case.dtype} {case.sizes}: {failed.kind}", flush=True)
            if done % 100 == 0:
                print(f"{done} of {len(jobs)} programs and shapes", flush=True)
    report(results, time.monotonic() - start)
    return int(any(map(_is_failure, results)))
