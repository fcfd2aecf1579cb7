"""How fast the tuner is: candidates proposed and scored a second, measured trials a second.

MTV 4096 x 4096 on 2048 DPUs. Scoring is CPU time of one core: mutation, canonical form, legality,
features and prediction of a trained model. Tuning is wall time of a whole run in a new folder with
two workers, start of the builders included. The builders are at work when they build and run a
trial, a hand schedule or the winner; the run of the winner on all its DPUs keeps both cores busy.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

import atim
from atim import workloads
from atim.schedules import design_space
from atim.schedules.canonical import canonical
from atim.schedules.verify import check
from atim.tuner import loop
from atim.tuner.features import describe
from atim.tuner.pool import Pool, Reply
from atim.tuner.proposals import Space
from atim.tuner.search import Options, Search
from atim.tuner.trial import Task
from benchmarks.measured import model

SHAPE = (4096, 4096)
POPULATION = 20_000
LEARNED = 64
WORKERS = 2
TRIALS, QUICK_TRIALS = 256, 64
SCORED_GOAL, TRIALS_GOAL, SHARE_GOAL = 20_000, 4.0, 0.9


def scored_per_second() -> tuple[float, float]:
    """(candidates mutated, checked and scored, a second; CPU seconds of a whole round)."""
    workload, target = workloads.get("mtv", SHAPE), atim.Target()
    sketches = design_space(workload.func, target, workload.resident)
    space = Space(sketches, canonical, lambda s, m: check(s, m, target)[0], describe)
    trees, rng = model(), np.random.default_rng(0)
    place = len(sketches) - 1
    sample = space.random(rng, place, LEARNED)
    features, estimates = space.describe(place, sample)
    trees.fit(features, estimates, np.exp(estimates) * rng.uniform(0.5, 2.0, LEARNED))
    start = space.random(rng, place, POPULATION)
    began = time.process_time()
    children = space.legal(place, space.mutate(rng, place, start))
    trees.predict(*space.describe(place, children))
    scored = len(start) / (time.process_time() - began)
    began = time.process_time()
    Search(space, trees, Options()).propose([])
    return scored, time.process_time() - began


class _Watched(Pool):
    """Adds up the wall seconds that its builders, or the cores they use, were at work."""

    busy_s = 0.0

    def run(
        self, tasks: Sequence[Task], **options: Any
    ) -> Generator[tuple[int, Reply], None, None]:
        for index, reply in super().run(tasks, **options):
            _Watched.busy_s += reply.wall_s
            if tasks[index].whole:
                _Watched.busy_s += (WORKERS - 1) * reply.value.parts["run"]
            yield index, reply


def tune(trials: int) -> tuple[float, float, float]:
    """(trials a second of wall time, share of it that builders were building and running, CPU
    seconds a trial: everything that was started, the check of the winner too)."""
    loop.Pool = _Watched  # type: ignore[attr-defined]
    _Watched.busy_s, before = 0.0, _cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run = atim.tune(
            workloads.get("mtv", SHAPE),
            atim.Target(),
            trials=trials,
            work_dir=folder,
            workers=WORKERS,
            progress=False,
        )
        wall_s = time.perf_counter() - began
    each = (_cpu_seconds() - before) / len(run.records)
    return len(run.records) / wall_s, _Watched.busy_s / (WORKERS * wall_s), each


def _cpu_seconds() -> float:
    """Of this process and of all that it started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def run(quick: bool = False) -> int:
    """Print both rates beside their goals; 1 when one is missed."""
    scored, round_s = scored_per_second()
    print(f"proposed, checked and scored: {scored:,.0f} candidates/s of CPU (goal {SCORED_GOAL:,})")
    print(f"one round of proposals: {round_s:.2f} s of CPU")
    trials = QUICK_TRIALS if quick else TRIALS
    rate, share, each = tune(trials)
    print(f"tuning: {rate:.1f} trials/s (goal {TRIALS_GOAL:.0f}), {trials} trials, 2 workers")
    print(f"builders at work: {share:.0%} of the wall time (goal {SHARE_GOAL:.0%})")
    print(f"{each:.2f} CPU seconds a trial: {WORKERS / each:.1f} trials/s were 2 cores idle")
    return int(scored < SCORED_GOAL or rate < TRIALS_GOAL or share < SHARE_GOAL)
