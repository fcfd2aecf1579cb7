"""DPUs whose tiles are clipped alike take alike long, so that one of them stands for all."""

from __future__ import annotations

import numpy as np
import pytest

import atim
from atim import workloads
from atim.schedules.terms import terms_of
from atim.schedules.verify import check
from atim.tuner.measure import Problem, run_task
from atim.tuner.trial import Task

TARGET = atim.Target(dpus=12, tasklets=6)


@pytest.mark.parametrize(("name", "shape"), [("va", (1021,)), ("red", (977,)), ("mtv", (53, 77))])
def test_members_of_a_class_take_the_same_time_on_the_same_numbers(name, shape):
    """Multiplication takes longer for larger factors: numbers that differ may cost differently."""
    problem = Problem.of(workloads.get(name, shape).func, TARGET)
    func, rng = problem.func(), np.random.default_rng(0)
    arrays = {name: np.full_like(array, 7) for name, array in problem.inputs().items()}
    seen = 0
    for sketch in problem.sketches():
        columns = [rng.choice(d.values, 400) for d in sketch.decisions]
        matrix = np.stack(columns, axis=1).astype(np.int64)
        legal = matrix[check(sketch, matrix, TARGET)[0]]
        spread_out = legal[terms_of(sketch, legal)["dpus"] >= 6]
        for row in spread_out[:2].tolist():
            decisions = dict(zip(sketch.names, row, strict=True))
            one = run_task(func, sketch, Task(sketch.name, decisions), arrays)
            whole = run_task(func, sketch, Task(sketch.name, decisions, whole=True), arrays)
            assert (one.status, whole.status) == ("ok", "ok"), (one.message, whole.message)
            assert whole.counters["dpus_run"] > one.counters["dpus_run"]
            assert whole.counters["class_spread_cycles"] == 0, decisions
            assert one.timing == whole.timing
            seen += 1
    assert seen >= 2
