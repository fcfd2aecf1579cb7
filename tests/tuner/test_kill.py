"""A handful of what `benchmarks/kill.py` does: nothing that was reported is lost."""

from __future__ import annotations

import random
import sys

from test_loop import HERE, tune

from benchmarks.kill import Torture

TUNE = f"""
import sys; sys.path.insert(0, {HERE!r})
from synthetic import ToyJob
from test_loop import tune
tune(sys.argv[2], ToyJob(slow_s=0.03), trials=48, mode="json")
"""


def test_kills_lose_nothing_that_was_reported(tmp_path):
    torture = Torture([sys.executable, "-P", "-c", TUNE], tmp_path / "run", random.Random(0))
    torture.round(2)
    torture.round(1)
    torture.finish()
    assert torture.problems == []
    assert sum(torture.blows.values()) >= 2
    assert len(torture.reported) >= 6
    undisturbed = tune(tmp_path / "undisturbed", trials=48)
    assert [(r.decisions, r.timing) for r in torture.records()] == [
        (r.decisions, r.timing) for r in undisturbed.records
    ]
