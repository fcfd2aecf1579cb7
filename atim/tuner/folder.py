"""What a tuning run left in its folder, opened again: its winner, ready to be built.

In: a folder. Out: the winner of its newest run that has one, from the program, target and decisions
that its records hold: a `Best`, or a `StagedBest` for a program of several stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tvm

from atim.errors import RecordError, ScheduleError
from atim.schedules import Sketch
from atim.schedules.stages import stages_of
from atim.target import Target
from atim.tuner.database import Database, Record, StoredRun
from atim.tuner.linked import Linked, StagedBest
from atim.tuner.measure import Problem
from atim.tuner.result import Best
from atim.tuner.staged import HostStep, residents_of
from atim.tuner.staged_run import PART_OF, chosen

__all__ = ["linked_in", "newest", "open_best", "stages_in"]

# Runs of a file by the text of their keys
Runs = Mapping[str, StoredRun]


def newest(runs: Sequence[StoredRun]) -> StoredRun:
    """The last run that was started; the whole program where that is a stage of it."""
    last = runs[-1]
    whole = {run.key.text(): run for run in runs}.get(str(last.setting.get(PART_OF)))
    return whole or last


def stages_in(run: StoredRun) -> list[Mapping[str, Any]]:
    """What a program's run says of its stages: "name", and "key" of a run for DPUs or "reason" and
    "timing" for the host; nothing for a program of one kernel."""
    found = run.facts.get("stages", [])
    return list(found) if isinstance(found, Sequence) else []


def linked_in(run: StoredRun) -> Linked | None:
    """The program's stages together, if its run got so far."""
    fact = run.facts.get("linked")
    return Linked.of(fact) if isinstance(fact, Mapping) else None


def open_best(folder: str | Path) -> Best | StagedBest:
    """The verified winner recorded in a folder; RecordError when there is none to build."""
    with Database(folder, write=False) as database:
        runs = [run for run in database.runs() if run.program]
        by_key = {run.key.text(): run for run in runs}
        ready = [run for run in runs if PART_OF not in run.setting and _complete(run, by_key)]
        if not ready:
            raise RecordError(f"{folder}: no run with a verified winner is recorded")
        run = ready[-1]
        if not stages_in(run):
            return _best(folder, run, _winner(database, run))
        linked = linked_in(run)
        assert linked is not None
        kernels = [by_key[fact["key"]] for fact in stages_in(run) if "key" in fact]
        winners = [_best(folder, kernel, _winner(database, kernel)) for kernel in kernels]
        records = [database.records(kernel.id) for kernel in kernels]
    return chosen(_staged(folder, run, winners), records, linked)


def _complete(run: StoredRun, runs: Runs) -> bool:
    """The run, or each of its stages on the DPUs and all together, has a verified winner."""
    parts = [runs.get(fact["key"]) for fact in stages_in(run) if "key" in fact] or [run]
    found = all(part is not None and part.winner is not None for part in parts)
    return found and (not stages_in(run) or linked_in(run) is not None)


def _winner(database: Database, run: StoredRun) -> Record:
    return next(r for r in database.records(run.id) if r.number == run.winner)


def _best(folder: str | Path, run: StoredRun, record: Record) -> Best:
    sketches = _sketches(run)
    for sketch in sketches:
        if sketch.name == record.sketch:
            if set(sketch.names) != set(record.decisions):
                raise RecordError(f"{folder}: recorded by software {run.key.version}: tune again")
            return Best(record, sketch, run.key.workload, tuple(sketches))
    raise RecordError(f"{folder}: sketch {record.sketch} is unknown here: tune again")


def _staged(folder: str | Path, run: StoredRun, winners: Sequence[Best]) -> StagedBest:
    target, resident = _setting(run)
    func = tvm.ir.load_json(run.program)
    stages = stages_of(func)
    if [stage.reason is None for stage in stages] != ["key" in fact for fact in stages_in(run)]:
        raise RecordError(f"{folder}: recorded by software {run.key.version}: tune again")
    left = iter(winners)
    once, _ = residents_of(func, stages, resident)
    parts = tuple(
        next(left) if stage.reason is None else HostStep.of(stage, target, number in once)
        for number, stage in enumerate(stages)
    )
    return StagedBest(run.key.workload, func, stages, target, resident, parts)


def _setting(run: StoredRun) -> tuple[Target, tuple[str, ...]]:
    try:
        return Target(**run.setting["target"]), tuple(run.setting["resident"])
    except (KeyError, TypeError) as error:
        raise RecordError(f"run {run.key.workload} can't be read ({error}): tune again") from error


def _sketches(run: StoredRun) -> list[Sketch]:
    target, resident = _setting(run)
    try:
        return Problem(run.program, target, resident).sketches()
    except ScheduleError as error:
        raise RecordError(f"run {run.key.workload} can't be read ({error}): tune again") from error
