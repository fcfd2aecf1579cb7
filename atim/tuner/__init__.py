"""Search over the space of schedules: `tune` a tensor program, get a `Run`.

    api         tune: the pieces put together       tasks       several programs at once
    plan        a program made ready                result      Run, Best, Built
    loop        propose, measure, record, learn     search      one round after the other
    proposals   candidates by the thousand          features    closed forms -> what the model sees
    measure     what a builder does with one        cost_model  features -> predicted time
    pool        builders and their limits           process     one of them, from outside
    builder     one of them, from inside            remote      the way to workers elsewhere
    worker      builders for tuners elsewhere       database    records of a run in SQLite
    merge       records of several folders in one   exchange    records as TVM's JSONDatabase
    baselines   other searches to compare with      experience  what earlier runs measured
    trace       schedules as text                   display     progress
    staged      programs of several stages          staged_run  their search and its result
    scheduler   trials shared by several searches   linked      their stages as one chain
    setup       what calls check before they start

Names are loaded when first used: a builder process needs only a part of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atim.tuner.api import tune
    from atim.tuner.linked import StagedBest
    from atim.tuner.loop import Limits
    from atim.tuner.result import Best, Built, Run
    from atim.tuner.staged_run import StagedRun
    from atim.tuner.tasks import tune_tasks

__all__ = ["Best", "Built", "Limits", "Run", "StagedBest", "StagedRun", "tune", "tune_tasks"]

_HOME = {
    "Best": "atim.tuner.result",
    "Built": "atim.tuner.result",
    "Limits": "atim.tuner.loop",
    "Run": "atim.tuner.result",
    "StagedBest": "atim.tuner.linked",
    "StagedRun": "atim.tuner.staged_run",
    "tune": "atim.tuner.api",
    "tune_tasks": "atim.tuner.tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'atim.tuner' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
