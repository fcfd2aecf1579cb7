"""Several programs at once, such as the layers of a model: trials go where they help most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from atim.errors import UnsupportedError, UsageError
from atim.schedules.stages import stages_of
from atim.target import Target
from atim.tuner.arguments import check_arguments
from atim.tuner.database import Database
from atim.tuner.display import Display
from atim.tuner.loop import Entry, Limits
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
) -> list[Run]:
    """Tune programs together so that the weighted sum of their best totals gets small.

    programs: each as for `tune`, but of one kernel (else UnsupportedError). weights: how often each
    occurs, 1 by default. trials: of all together. resident, names: for each program. Programs that
    occur twice are tuned once. The other arguments, and the errors, are those of `tune`. Returns a
    run for each program, in order.
    """
    check_arguments(target, trials, workers, seed)
    mode, fleet = display_mode(progress), fleet_of(tracker, key)
    options = Options(trials=max(1, trials // max(1, len(programs))), seed=seed)
    plans, shares, order = _plans(programs, target, options, weights, resident, names)
    unique = _named_apart(list(plans.values()))
    folder = Path(work_dir)
    by_name = dict(zip((p.key.workload for p in unique), shares.values(), strict=True))
    shared = Shared(trials, workers, limits, fleet)
    with Database(folder, write=True) as database, Display(mode, by_name) as display:
        tell_others(database, [plan.key for plan in unique], display)
        results = tune_plans(unique, list(shares.values()), shared, database, display)
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
        plan = _plan(program, target, options, kept, name)
        same = (plan.key.program, plan.key.objective)
        order.append(same)
        plans.setdefault(same, plan)
        weight = 1.0 if weights is None else float(weights[n])
        if not math.isfinite(weight) or weight <= 0:
            raise UsageError(f"weights: {weight:g} given, more than 0 needed")
        shares[same] = shares.get(same, 0.0) + weight
    return plans, shares, order


def _plan(
    program: Any, target: Target, options: Options, resident: Sequence[str] | None, name: str
) -> Plan:
    """Of a program that one kernel holds. UnsupportedError for one of several stages."""
    func, title = program_of(program, name)
    if resident is None:
        resident = program.resident if isinstance(program, Workload) else ()
    stages = stages_of(func)
    if len(stages) > 1:
        shown = ", ".join(stage.name for stage in stages)
        raise UnsupportedError(
            f"{title}: {len(stages)} stages ({shown}), tune_tasks takes programs of one kernel:"
            " tune takes this one"
        )
    return Plan.of(stages[0].func, target, options, resident=resident, name=title)


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
