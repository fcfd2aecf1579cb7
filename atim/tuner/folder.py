"""What a tuning run left in its folder, opened again: its winner, ready to be built.

In: a folder. Out: the `Best` of its newest run that has one, from the program, target and decisions
that its records hold.
"""

from __future__ import annotations

from pathlib import Path

from atim.errors import RecordError, ScheduleError
from atim.schedules import Sketch
from atim.target import Target
from atim.tuner.database import Database, StoredRun
from atim.tuner.measure import Problem
from atim.tuner.result import Best

__all__ = ["open_best"]


def open_best(folder: str | Path) -> Best:
    """The verified winner recorded in a folder; RecordError when there is none to build."""
    with Database(folder, write=False) as database:
        runs = [run for run in database.runs() if run.winner is not None and run.program]
        if not runs:
            raise RecordError(f"{folder}: no run with a verified winner is recorded")
        run = runs[-1]
        record = next(r for r in database.records(run.id) if r.number == run.winner)
    for sketch in _sketches(run):
        if sketch.name == record.sketch:
            if set(sketch.names) != set(record.decisions):
                raise RecordError(f"{folder}: recorded by software {run.key.version}: tune again")
            return Best(record, sketch, run.key.workload)
    raise RecordError(f"{folder}: sketch {record.sketch} is unknown here: tune again")


def _sketches(run: StoredRun) -> list[Sketch]:
    setting = dict(run.setting)
    try:
        target = Target(**setting["target"])
        return Problem(run.program, target, tuple(setting["resident"])).sketches()
    except (KeyError, TypeError, ScheduleError) as error:
        message = f"run {run.key.workload} can't be read ({error}): tune again"
        raise RecordError(message) from error
