"""Several programs at once, such as the layers of a model: trials go where they help most.

Rounds are given out one by one. After a first round each, a program's next round is worth what its
weighted best total is expected to lose by it: a mix of what its last rounds brought and of what is
hoped for while it has been tried little, as in TVM's gradient-based task scheduler (Ansor, OSDI
2020, section 6). What has been measured of one program teaches the cost models of the others. All
choices follow from the records, so that an interrupted call goes on as if it had not been.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from atim.errors import UsageError
from atim.target import Target
from atim.tuner.api import (
    REMOTE_WORKERS,
    check_arguments,
    display_mode,
    fleet_of,
    run_of,
    tell_others,
)
from atim.tuner.database import Database, Record
from atim.tuner.display import Display
from atim.tuner.loop import Entry, Limits, Loop, Result, start_pool
from atim.tuner.measure import Problems
from atim.tuner.plan import Plan
from atim.tuner.remote import KEY
from atim.tuner.result import Run
from atim.tuner.search import Options

__all__ = ["expected_gain", "tune_tasks"]

# Share of what has been seen, against what is hoped for; Ansor's alpha.
SEEN = 0.2
# Rounds that count as the last ones; Ansor's window.
WINDOW = 3
# Rounds after which a program without any valid candidate comes last.
PATIENCE = 3


def tune_tasks(
    programs: Sequence[Any],
    target: Target,
    *,
    weights: Sequence[float] | None = None,
    trials: int = 256,
    resident: Sequence[Sequence[str] | None] | None = None,
    names: Sequence[str] | None = None,
    work_dir: str | Path = "runs/tasks",
    seed: int = 0,
    workers: int | None = None,
    progress: bool | str = True,
    limits: Limits | None = None,
    tracker: str | None = None,
    key: str = KEY,
) -> list[Run]:
    """Tune programs together so that the weighted sum of their best totals gets small.

    programs: each as for `tune`. weights: how often each occurs, 1 by default. trials: of all
    together. resident, names: for each program. Programs that occur twice are tuned once. The other
    arguments, and the errors, are those of `tune`. Returns a run for each program, in order.
    """
    check_arguments(target, trials, workers, seed)
    mode, fleet = display_mode(progress), fleet_of(tracker, key)
    options = Options(trials=max(1, trials // max(1, len(programs))), seed=seed)
    plans, shares, order = _plans(programs, target, options, weights, resident, names)
    unique = _named_apart(list(plans.values()))
    folder, limits = Path(work_dir), limits or Limits()
    by_name = dict(zip((p.key.workload for p in unique), shares.values(), strict=True))
    job = Problems(tuple(plan.problem for plan in unique))
    with Database(folder, write=True) as database, Display(mode, by_name) as display:
        tell_others(database, [plan.key for plan in unique], display)
        many = workers or (REMOTE_WORKERS if fleet else 2)
        threads = 0 if fleet else many
        with start_pool(job, many, limits, display, fleet) as pool:
            loops = [
                Loop(
                    *(pool, plan.search, database, display, plan.entry, limits, threads),
                    plan.baselines(),
                    n,
                )
                for n, plan in enumerate(unique)
            ]
            results = _Scheduler(unique, loops, list(shares.values()), trials).run(display)
        runs = [run_of(plan, folder, r) for plan, r in zip(unique, results, strict=True)]
        display.end(programs=[run.summary() for run in runs])
    places = {same: n for n, same in enumerate(plans)}
    return [runs[places[same]] for same in order]


Same = tuple[str, str]


def _plans(
    programs: Sequence[Any],
    target: Target,
    options: Options,
    weights: Sequence[float] | None,
    resident: Sequence[Sequence[str] | None] | None,
    names: Sequence[str] | None,
) -> tuple[dict[Same, Plan], dict[Same, float], list[Same]]:
    """Each different program and its weight, and which of them the given ones are."""
    for what, given in (("weights", weights), ("resident", resident), ("names", names)):
        if given is not None and len(given) != len(programs):
            raise UsageError(f"{what}: {len(given)} given for {len(programs)} programs")
    if not programs:
        raise UsageError("programs: none given, at least 1 needed")
    plans: dict[Same, Plan] = {}
    shares: dict[Same, float] = {}
    order = []
    for n, program in enumerate(programs):
        kept, name = resident[n] if resident else None, names[n] if names else ""
        plan = Plan.of(program, target, options, resident=kept, name=name)
        same = (plan.key.program, plan.key.objective)
        order.append(same)
        plans.setdefault(same, plan)
        weight = 1.0 if weights is None else float(weights[n])
        if not math.isfinite(weight) or weight <= 0:
            raise UsageError(f"weights: {weight:g} given, more than 0 needed")
        shares[same] = shares.get(same, 0.0) + weight
    return plans, shares, order


def _named_apart(plans: Sequence[Plan]) -> list[Plan]:
    """The plans, with numbers in names that occur twice."""
    seen: dict[str, int] = {}
    named = []
    for plan in plans:
        name = plan.key.workload
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            key = replace(plan.key, workload=f"{name} #{seen[name]}")
            plan = replace(plan, entry=Entry(key, plan.entry.program, plan.entry.setting))
        named.append(plan)
    return named


class _Scheduler:
    """Gives out rounds until all trials are made."""

    def __init__(
        self, plans: Sequence[Plan], loops: Sequence[Loop], weights: Sequence[float], trials: int
    ) -> None:
        self._plans = plans
        self._loops = loops
        self._weights = weights
        self._trials = trials

    def run(self, display: Display) -> list[Result]:
        display.begin(self._trials, {loop.name: loop.records for loop in self._loops})
        open_loops = set(range(len(self._loops)))
        while open_loops:
            left = self._trials - sum(len(loop.records) for loop in self._loops)
            n = self._next(open_loops)
            pending = any(r.status == "pending" for r in self._loops[n].records)
            if left <= 0 and not pending:
                break
            self._prepare(n, left)
            if not self._loops[n].round():
                open_loops.discard(n)
        display.shrink(sum(len(loop.records) for loop in self._loops))
        display.finish()
        for n in open_loops:
            self._loops[n].ended = "all trials done"
        return [loop.finish() for loop in self._loops]

    def _next(self, open_loops: set[int]) -> int:
        """Unfinished rounds first, then programs without a round, then the largest gain."""
        for n in sorted(open_loops):
            if any(r.status == "pending" for r in self._loops[n].records):
                return n
        gains = {n: self._weights[n] * expected_gain(self._loops[n].records) for n in open_loops}
        return min(open_loops, key=lambda n: (-gains[n], n))

    def _prepare(self, n: int, left: int) -> None:
        """Let the search make one more round, and learn from the other programs."""
        plan, done = self._plans[n], len(self._loops[n].records)
        options: Options = plan.search.options
        size = min(options.round_size, max(left, 1))
        # Beyond its even share a program is in the last phase of its search.
        beyond = max(options.trials, done + size)
        plan.search.options = replace(options, trials=beyond, batch=size)  # type: ignore[misc]
        taught = []
        for other, (its_plan, loop) in enumerate(zip(self._plans, self._loops, strict=True)):
            samples = None if other == n else its_plan.samples(loop.history())
            if samples is not None:
                taught.append(samples)
        plan.model.start_from(taught)


def expected_gain(records: Sequence[Record]) -> float:
    """Seconds that the best total of a program may lose in its next trial; infinite before the
    first round, and while nothing has been valid for a few rounds."""
    if not records:
        return math.inf
    rounds = records[-1].round + 1
    best = min((r.objective_s for r in records), default=math.inf)
    if math.isinf(best):
        return math.inf if rounds < PATIENCE else 0.0
    hoped = best / len(records)
    before = [r.objective_s for r in records if r.round < rounds - WINDOW]
    first = [r.objective_s for r in records if r.round == 0]
    earlier = min(before or first)
    recent = sum(1 for r in records if r.round >= rounds - WINDOW)
    seen = (earlier - best) / recent if math.isfinite(earlier) else hoped
    return SEEN * seen + (1 - SEEN) * hoped
