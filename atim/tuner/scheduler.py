"""Who gets the next round of trials: several searches that share them.

After a first round each, a search's next round is worth what its weighted best total is expected to
lose by it: a mix of what its last rounds brought and of what is hoped for while it has been tried
little, as in TVM's gradient-based task scheduler (Ansor, OSDI 2020, section 6). What one search has
measured teaches the cost models of the others. All choices follow from the records, so that an
interrupted call goes on as if it had not been.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from atim.tuner.cost_model import Samples
from atim.tuner.database import Database, Record
from atim.tuner.display import Display
from atim.tuner.loop import Limits, Loop, Result, start_pool
from atim.tuner.measure import Problems
from atim.tuner.plan import Plan
from atim.tuner.remote import Fleet
from atim.tuner.search import Options
from atim.tuner.setup import REMOTE_WORKERS

__all__ = ["Shared", "expected_gain", "tune_plans"]

# Share of what has been seen, against what is hoped for; Ansor's alpha.
SEEN = 0.2
# Rounds that count as the last ones; Ansor's window.
WINDOW = 3
# Rounds after which a program without any valid candidate comes last.
PATIENCE = 3


@dataclass(frozen=True, slots=True)
class Shared:
    """What several searches share: trials and workers, of all together. earlier: what other runs
    teach the cost models."""

    trials: int
    workers: int | None = None
    limits: Limits | None = None
    fleet: Fleet | None = None
    earlier: tuple[Samples, ...] = ()


def tune_plans(
    plans: Sequence[Plan],
    weights: Sequence[float],
    shared: Shared,
    database: Database,
    display: Display,
) -> list[Result]:
    """Run the searches of some plans, in one pool of builders, to the end of their trials."""
    limits = shared.limits or Limits()
    workers = shared.workers or (REMOTE_WORKERS if shared.fleet else 2)
    threads = 0 if shared.fleet else workers
    job = Problems(tuple(plan.problem for plan in plans))
    with start_pool(job, workers, limits, display, shared.fleet) as pool:
        loops = [
            Loop(
                *(pool, plan.search, database, display, plan.entry, limits, threads),
                plan.baselines(),
                n,
            )
            for n, plan in enumerate(plans)
        ]
        for plan, loop in zip(plans, loops, strict=True):
            if plan.first and not loop.records:
                loop.store((list(plan.first), ""))
        return _Scheduler(plans, loops, weights, shared).run(display)


class _Scheduler:
    """Gives out rounds until all trials are made."""

    def __init__(
        self,
        plans: Sequence[Plan],
        loops: Sequence[Loop],
        weights: Sequence[float],
        shared: Shared,
    ) -> None:
        self._plans = plans
        self._loops = loops
        self._weights = weights
        self._trials = shared.trials
        self._earlier = shared.earlier

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
        """Let the search make one more round, and learn from the other programs; one trial at least
        is left for each that has had none."""
        plan, done = self._plans[n], len(self._loops[n].records)
        options: Options = plan.search.options
        waiting = sum(not loop.records for m, loop in enumerate(self._loops) if m != n)
        size = min(options.round_size, max(left - waiting, 1))
        # Beyond its even share a program is in the last phase of its search.
        beyond = max(options.trials, done + size)
        plan.search.options = replace(options, trials=beyond, batch=size)  # type: ignore[misc]
        taught = list(self._earlier)
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
