"""The benchmarks that compare searches and schedules read their tables and judge as they say."""

from __future__ import annotations

import dataclasses
import math

import pytest

from atim import Target, workloads
from atim.schedules import design_space
from atim.schedules.terms import terms_of
from atim.schedules.verify import explain
from atim.tuner.arguments import SEARCHES
from atim.tuner.measure import Problem
from benchmarks import figure9, search, shipped

TARGET = Target(dpus=figure9.DPUS, transfer=figure9.PRESET)


def sketches_of(op, shape):
    workload = workloads.get(op, shape)
    return design_space(workload.func, TARGET, workload.resident)


def test_the_figures_have_their_cases():
    suites = [case.suite for case in figure9.cases()]
    assert {suite: suites.count(suite) for suite in figure9.GOALS} == {
        "figure9": 26,
        "fc": 8,
        "mha": 16,
    }


def test_published_means_follow_from_the_table():
    """ATiM's text: 3.7 times PrIM on the fully connected layers; the best of them 8.21."""
    ratios = [case.prim / case.atim for case in figure9.cases() if case.suite == "fc" and case.prim]
    assert max(ratios) == pytest.approx(8.21, abs=0.01)
    assert math.prod(ratios) ** (1 / len(ratios)) == pytest.approx(4.3, abs=0.3)  # five of eight


def test_every_shipped_schedule_has_a_legal_reading_that_uses_its_dpus():
    rows = shipped.table()
    for case in figure9.cases()[::5]:
        row = rows[case.op, case.shape]
        sketches = {sketch.name: sketch for sketch in sketches_of(case.op, case.shape)}
        tasks = shipped.readings(row, list(sketches.values()))
        assert tasks, case.title
        for name, decisions in tasks:
            sketch = sketches[name]
            terms = terms_of(sketch, sketch.vector(decisions))
            assert terms["dpus"][0] == math.prod(row.grid), case.title
            assert terms["tasklets"][0] == row.tasklets, case.title
            assert sketch.split_reduction == (row.splits[0][0] == "T2"), case.title


def test_a_shipped_schedule_is_read_as_written():
    """mtv_4096: T2[32,128]; T[64,8,1,2,4]; T[2,4,16]."""
    row = shipped.table()["mtv", (4096, 4096)]
    tasks = shipped.readings(row, sketches_of("mtv", (4096, 4096)))
    for name, decisions in tasks:
        assert name == "rows_split"
        assert (decisions["dpus_i"], decisions["pieces"], decisions["tasklets"]) == (64, 32, 8)
        assert decisions["host_threads"] == 1
        assert decisions["unroll"] in (1, min(decisions["tile"], 64))  # by the SDK's compiler
    assert {d["tile"] for _, d in tasks} == {16, 64}
    assert {d["row_block"] for _, d in tasks} == {4, 8}


def test_prims_gemv_scales_every_element_and_its_red_comes_out_of_wram():
    scaled, given = figure9.scaled(figure9.Case("", "gemv", (64, 32), None, None, None))
    assert [t.op.name for t in scaled.args] == ["A", "x", "s", "y"]
    assert scaled.resident == ("A", "s")
    assert given == (("s", (3,)),)
    func = figure9.te.create_prim_func(list(scaled.args))
    inputs = dataclasses.replace(Problem.of(func, TARGET), given=given).inputs()
    assert inputs["s"].tolist() == [3]
    assert inputs["s"].dtype == inputs["A"].dtype

    class Fake:
        workload = workloads.get("red", (8388608,))
        sketches = sketches_of("red", (8388608,))

    fake = Fake()
    sketch, decisions = figure9.manual.prim_of(fake.sketches, TARGET, 512)
    timing = (0.0, 1e-3, 5e-4, 0.0)
    total = sum(figure9.prim_timing(fake, (sketch.name, decisions), timing))
    assert 1e-3 + 1e-3 < total < 1e-3 + 2e-3  # 256 bytes out of each WRAM take over a millisecond
    fake.workload = workloads.get("mtv", (64, 64))
    assert figure9.prim_timing(fake, ("rows", {}), timing) == timing


def test_prims_grid_is_that_of_the_baseline():
    class Fake:
        workload = workloads.get("mmtv", (16, 64, 256))
        sketches = sketches_of("mmtv", (16, 64, 256))
        target = TARGET

    tasks = list(figure9.prim_grid(Fake(), search=False))
    assert len(tasks) == 127  # 32 to 2048 DPUs, 16 at a time
    sketch = Fake.sketches[0]
    legal = [d for _, d in tasks if explain(sketch, d, TARGET) is None]
    assert {d["tasklets"] for d in legal} == {16}
    searched = list(figure9.prim_grid(Fake(), search=True))
    assert {d["tile"] for _, d in searched} == {16, 32, 64, 128, 256}


def row_of(suite, prim, prim_search, replayed, total):
    case = figure9.Case(suite, "mtv", (4, 4), None, None, None)
    return figure9.Row(case, prim, prim_search, replayed, (0.0, total, 0.0, 0.0), "")


def test_figure9_is_judged_by_means_and_by_the_worst():
    lines, good = figure9.summary([row_of("fc", 8.0, 7.0, 2.0, 1.0), row_of("fc", 2, 2, 1.5, 1.0)])
    assert good
    assert "4.00x PrIM" in lines[0]
    assert not figure9.summary([row_of("fc", 8.0, 7.0, 2.0, 1.0), row_of("fc", 3, 3, 0.9, 1.0)])[1]
    assert not figure9.summary([row_of("fc", 8.0, 0.9, 2.0, 1.0), row_of("fc", 8, 99, 2, 1.0)])[1]


def test_trials_needed_are_counted_to_the_first_that_is_near():
    trace = search.Trace((9.0, float("inf"), 1.04, 1.0))
    assert trace.best == 1.0
    assert trace.needed(1.05, 64) == 3
    assert trace.needed(0.9, 64) == 64
    assert search.geometric([2, 8]) == pytest.approx(4)


def test_every_search_is_compared():
    assert set(search.VARIANTS) <= set(SEARCHES)
    assert {search.OURS, search.TVM, "random", "no-model"} <= set(search.VARIANTS)
    assert len(search.CASES) >= 8
    assert search.FULL.seeds == 5
