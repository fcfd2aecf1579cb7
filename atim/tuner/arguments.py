"""What can be said of a tuner's arguments from them alone, without the seconds that TVM takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from atim.errors import RecordError, UsageError
from atim.target import Target
from atim.tuner.database import Database, StoredRun

__all__ = ["SEARCHES", "check_arguments", "check_search", "require_run", "runs_in"]

MOST_TRIALS = 1_000_000
MOST_WORKERS = 256

SEARCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "evolutionary": ("ours, with all of the below", {}),
    "unbalanced": ("without drawing both kinds of design equally at first", {"balanced": False}),
    "constant-exploration": ("a constant 5 % of random candidates", {"adaptive": False}),
    "long-exploration": ("both for 40 % of the trials, as ATiM does", {"explored": 0.4}),
    "coarse": ("never off the grid", {"refine": False}),
    "no-model": ("ranked by the closed-form estimate, nothing is learned", {"learn": False}),
    "no-estimate": ("the model learns times from nothing", {"estimate": False}),
    "random": ("uniform over the grids of each sketch", {}),
    "tvm": ("MetaSchedule's EvolutionarySearch and XGBModel over our sketches", {}),
}
"""Name -> what it is, and the options in which it differs from ours."""


def check_search(name: str) -> None:
    """UsageError with the names that there are, unless this is one."""
    if name not in SEARCHES:
        raise UsageError(f"search: {name!r} unknown, known: {', '.join(SEARCHES)}")


def check_arguments(target: object, trials: int, workers: int | None, seed: int) -> None:
    """UsageError for a target that is none, such as its name alone, and for wrong numbers."""
    if not isinstance(target, Target):
        raise UsageError(f"target: {target!r} is no Target; make one: Target('upmem-v1a')")
    some = 1 if workers is None else workers
    for what, value, low, high in (
        ("trials", trials, 1, MOST_TRIALS),
        ("workers", some, 1, MOST_WORKERS),
        ("seed", seed, 0, None),
    ):
        if not isinstance(value, int):
            raise UsageError(f"{what}: {value!r} is no integer")
        if value < low:
            raise UsageError(f"{what}: {value} requested, at least {low} needed")
        if high is not None and value > high:
            raise UsageError(f"{what}: {value} requested, limit {high}")


def require_run(folder: Path) -> None:
    """RecordError unless a folder holds a run that can be read."""
    with Database(folder, write=False) as database:
        runs_in(database, folder)


def runs_in(database: Database, folder: Path) -> list[StoredRun]:
    """The runs recorded in a folder; RecordError when there is none."""
    runs = database.runs()
    if not runs:
        raise RecordError(f"{folder}: no run recorded")
    return runs
