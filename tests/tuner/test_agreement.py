"""Schedules of stages whose tiles agree, and the chains that are made of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tvm import te, tirx

from atim import pipeline
from atim.chain import Step
from atim.codegen.chain_plan import plan_moves
from atim.schedules.normal import normal
from atim.schedules.stages import Stage, stages_of
from atim.target import Target
from atim.tuner.agreement import agreeing
from atim.tuner.combinations import combinations
from atim.tuner.database import Record
from atim.tuner.plan import Plan
from atim.tuner.result import Best
from atim.tuner.search import Options

TARGET = Target(dpus=64)
Parts = tuple[tuple[Stage, ...], list[Plan]]


@pytest.fixture(scope="module", params=[(96, 64), (101, 37)])
def parts(request: pytest.FixtureRequest) -> Parts:
    """Sums of rows, and of the squares of what is left without them: both read A."""
    m, n = request.param
    a, k, q = te.placeholder((m, n), "float32", "A"), te.reduce_axis((0, n)), te.reduce_axis((0, n))
    total = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), "total")

    def square(i: tirx.Var) -> tirx.PrimExpr:
        return te.sum((a[i, q] - total[i]) * (a[i, q] - total[i]), axis=q)

    stages = stages_of(normal(te.create_prim_func([a, te.compute((m,), square, "y")])))
    return stages, [Plan.of(s.func, TARGET, Options(), name=s.name) for s in stages]


def test_a_tensor_that_two_stages_read_is_sent_once(parts: Parts) -> None:
    stages, plans = parts
    found = agreeing(stages, plans, (), 3)
    assert len(stages) == 2
    assert all(found)
    first, second = (
        pipeline.compile(sketch, dict(zip(sketch.names, candidate.values, strict=True)), TARGET)
        for plan, (candidate, *_) in zip(plans, found, strict=True)
        for sketch in (plan.sketches[candidate.sketch],)
    )
    steps = [Step("first", first), Step("second", second)]
    moves = plan_moves(steps, stages[-1].outputs, ())
    pushed = [[t.tensor for t in move.pushed] for move in moves if move is not None]
    assert pushed[0] == ["A"]
    assert "A" not in pushed[1]


def record(plan: Plan, number: int, values: Sequence[int], kernel_s: float) -> Record:
    """A trial of the sketch that the plan's agreeing candidate has."""
    sketch = plan.sketches[plan.first[0].sketch]
    decisions = dict(zip(sketch.names, values, strict=True))
    timing, counters = (1e-3, kernel_s, 1e-4, 0.0), {"cycles": kernel_s * 350e6}
    return Record(number, 0, sketch.name, decisions, "ok", "", "", timing, counters, 0, str(number))


def sketch_names(plan: Plan) -> tuple[str, ...]:
    return plan.sketches[plan.first[0].sketch].names


@pytest.mark.parametrize(("kernel_s", "chosen"), [(1e-4, 1), (1.0, 0)])
def test_the_chain_with_the_least_time_is_first(parts: Parts, kernel_s: float, chosen: int) -> None:
    """Agreeing tiles win by the transfer that they save, unless their kernel is slow."""
    stages, plans = parts
    found = agreeing(stages, plans, (), 1)
    plans = [replace(plan, first=first) for plan, first in zip(plans, found, strict=True)]
    agreed = [plan.first[0].values for plan in plans]
    elsewhere = (max(agreed[1][0] // 2, 1), *agreed[1][1:])
    measured = [
        [record(plans[0], 0, agreed[0], 1e-4)],
        [record(plans[1], 0, elsewhere, 1e-4), record(plans[1], 1, agreed[1], kernel_s)],
    ]
    best = [
        Best(some[0], plan.sketches[0], sketches=plan.sketches)
        for plan, some in zip(plans, measured, strict=True)
    ]
    at = sketch_names(plans[1]).index("unroll")
    short = (*elsewhere[:at], 1, *elsewhere[at + 1 :])
    long = (*elsewhere[:at], 4, *elsewhere[at + 1 :])
    measured[1] += [record(plans[1], 2, short, 9.0), record(plans[1], 3, long, 9.0)]
    chains = [
        [record.number for record in chain]
        for chain in combinations(stages, best, measured, TARGET, stages[-1].outputs, ())
    ]
    assert chains[0] == [0, chosen]
    assert chains[-1] == [0, 2], "the least code is the last resort"
