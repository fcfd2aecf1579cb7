"""Several programs at once, such as the layers of a model: trials go where they help most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from atim.errors import UsageError
from atim.schedules.stages import stages_of
from atim.target import Target
from atim.tuner.arguments import check_arguments
from atim.tuner.database import Database
from atim.tuner.display import Display
from atim.tuner.loop import Limits
from atim.tuner.plan import Plan, program_of
from atim.tuner.remote import KEY
from atim.tuner.result import Run, run_of
from atim.tuner.scheduler import Shared, tune_plans
from atim.tuner.search import Options
from atim.tuner.setup import (
    display_mode,
    fleet_of,
    tell_others,
)
from atim.tuner.staged_run import StagedPlan, StagedRun, close_staged, open_staged
from atim.workloads import Workload

__all__ = ["tune_tasks"]


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
) -> list[Run | StagedRun]:
    """Tune programs together so that the weighted sum of their best totals gets small.

    programs: each as for `tune`. weights: how often each occurs, 1 by default. trials: of all
    together, one at least for each kernel: of a program of several stages each stage is searched,
    and they are linked in the end. resident, names: for each program. Programs that occur twice are
    tuned once. The other arguments, and the errors, are those of `tune`. Returns a run for each
    program, in order.
    """
    check_arguments(target, trials, workers, seed)
    mode, fleet = display_mode(progress), fleet_of(tracker, key)
    options = Options(trials=max(1, trials // max(1, len(programs))), seed=seed)
    unique, shares, order = _plans(programs, target, options, weights, resident, names)
    kernels = [kernel for plan in unique for kernel in _kernels(plan)]
    each = [share for plan, share in zip(unique, shares, strict=True) for _ in _kernels(plan)]
    staged = [plan for plan in unique if isinstance(plan, StagedPlan)]
    keys = [plan.entry.key for plan in staged] + [kernel.key for kernel in kernels]
    folder = Path(work_dir)
    by_name = dict(zip((kernel.key.workload for kernel in kernels), each, strict=True))
    shared = Shared(max(trials, len(kernels)), workers, limits, fleet)
    what = "stages and programs" if staged else "programs"
    with Database(folder, write=True) as database, Display(mode, by_name, what) as display:
        tell_others(database, keys, display)
        opened = {
            plan.entry.key: open_staged(plan, options.trials, database, display) for plan in staged
        }
        left = iter(tune_plans(kernels, each, shared, database, display))
        runs: list[Run | StagedRun] = []
        for plan in unique:
            results = list(islice(left, len(_kernels(plan))))
            if isinstance(plan, StagedPlan):
                runs.append(close_staged(opened[plan.entry.key], folder, results, database))
            else:
                runs.append(run_of(plan, folder, results[0]))
        display.end(programs=[run.summary() for run in runs])
    return [runs[place] for place in order]


def _kernels(plan: Plan | StagedPlan) -> list[Plan]:
    return plan.kernels if isinstance(plan, StagedPlan) else [plan]


def _plans(
    programs: Sequence[Any],
    target: Target,
    options: Options,
    weights: Sequence[float] | None,
    resident: Sequence[Sequence[str] | None] | None,
    names: Sequence[str] | None,
) -> tuple[list[Plan | StagedPlan], list[float], list[int]]:
    """Each different program, its weight, and which of them the given ones are."""
    for what, given in (("weights", weights), ("resident", resident), ("names", names)):
        if given is not None and len(given) != len(programs):
            raise UsageError(f"{what}: {len(given)} given for {len(programs)} programs")
    if not programs:
        raise UsageError("programs: none given, at least 1 needed")
    plans: list[Plan | StagedPlan] = []
    shares: list[float] = []
    places: dict[tuple[str, str], int] = {}
    named: Counter[str] = Counter()
    order = []
    for n, program in enumerate(programs):
        weight = 1.0 if weights is None else float(weights[n])
        if not math.isfinite(weight) or weight <= 0:
            raise UsageError(f"weights: {weight:g} given, more than 0 needed")
        kept, name = resident[n] if resident else None, names[n] if names else ""
        plan = _plan(program, target, options, kept, name)
        key = plan.entry.key
        same = (key.program, key.objective)
        if same not in places:
            places[same] = len(plans)
            named[key.workload] += 1
            if named[key.workload] > 1:  # another program is called the same
                title = f"{key.workload} #{named[key.workload]}"
                plan = _plan(program, target, options, kept, title)
            plans.append(plan)
            shares.append(0.0)
        order.append(places[same])
        shares[places[same]] += weight
    return plans, shares, order


def _plan(
    program: Any, target: Target, options: Options, resident: Sequence[str] | None, name: str
) -> Plan | StagedPlan:
    func, title = program_of(program, name)
    if resident is None:
        resident = program.resident if isinstance(program, Workload) else ()
    stages = stages_of(func)
    if len(stages) > 1:
        return StagedPlan.of(func, title, stages, target, options, resident, "evolutionary")
    return Plan.of(stages[0].func, target, options, resident=resident, name=title)
