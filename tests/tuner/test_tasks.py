"""Several programs at once: trials go where they help, and the same for any number of workers."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from tvm import te

import atim
from atim import workloads
from atim.tuner.database import Database, Record
from atim.tuner.scheduler import expected_gain

TARGET = atim.Target(dpus=8, tasklets=4)
PROGRAMS = [workloads.get("va", (64,)), workloads.get("mtv", (96, 80)), workloads.get("va", (64,))]


def tune(folder, **options):
    return atim.tune_tasks(PROGRAMS, TARGET, work_dir=folder, **{"progress": False, **options})


def story(runs):
    return [[(r.round, r.sketch, dict(r.decisions), r.timing) for r in run.records] for run in runs]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tune(tmp_path_factory.mktemp("runs"), trials=24, weights=[1, 3, 2], workers=2)


def test_every_program_gets_a_verified_schedule(runs):
    assert [run.key.workload for run in runs] == ["va 64 int32", "mtv 96x80 int32", "va 64 int32"]
    assert runs[0] is runs[2]
    assert len(runs[0].records) + len(runs[1].records) == 24
    assert all(run.best.timing.total > 0 for run in runs)


def test_one_worker_and_an_interruption_change_nothing(runs, tmp_path):
    tune(tmp_path, trials=12, weights=[1, 3, 2], workers=1)
    begun = [len(run.records) for run in tune(tmp_path, trials=12, weights=[1, 3, 2], workers=1)]
    assert sum(begun[:2]) == 12
    again = tune(tmp_path / "whole", trials=24, weights=[1, 3, 2], workers=1)
    assert story(again) == story(runs)


def record(number: int, seconds: float, round_: int) -> Record:
    if math.isinf(seconds):
        return Record(number, round_, "rows", {}, "failed", "fault")
    return Record(number, round_, "rows", {}, "ok", timing=(seconds, 0.0, 0.0, 0.0))


def rounds(*bests: float, size: int = 4) -> list[Record]:
    return [record(size * n + i, best, n) for n, best in enumerate(bests) for i in range(size)]


def test_what_is_large_and_still_gets_better_comes_first():
    assert expected_gain([]) == math.inf
    assert expected_gain(rounds(8.0)) > expected_gain(rounds(2.0))
    assert expected_gain(rounds(8.0, 8.0)) > expected_gain(rounds(8.0, 8.0, 8.0, 8.0))
    assert expected_gain(rounds(9.0, 9.0, 7.0, 5.0)) > expected_gain(
        rounds(9.0, 5.0, 5.0, 5.0, 5.0)
    )


def test_a_program_that_never_works_does_not_hold_up_the_others():
    assert expected_gain(rounds(math.inf)) == math.inf
    assert expected_gain(rounds(math.inf, math.inf, math.inf)) == 0.0
    assert math.isfinite(expected_gain(rounds(math.inf, 3.0)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weights": [1, 2]}, "weights: 2 given for 3 programs"),
        ({"weights": [1, 0, 2]}, "weights: 0 given, more than 0 needed"),
        ({"names": ["a"]}, "names: 1 given for 3 programs"),
        ({"trials": 0}, "trials: 0 requested, at least 1 needed"),
        ({"progress": "loud"}, "progress: 'loud' unknown, known: text, json, quiet"),
    ],
)
def test_bad_arguments_are_one_line(tmp_path, changed, message):
    with pytest.raises(atim.UsageError, match=message):
        tune(tmp_path / "run", **changed)
    assert not (tmp_path / "run").exists()


def spread_out(rows: int, columns: int):
    """How far all elements of a row are from its largest together: two reductions."""
    a, k = te.placeholder((rows, columns), "int32", "A"), te.reduce_axis((0, columns), "k")
    j = te.reduce_axis((0, columns), "j")
    most = te.compute((rows,), lambda i: te.max(a[i, k], axis=k), "most")
    return [a, te.compute((rows,), lambda i: te.sum(most[i] - a[i, j], axis=j), "y")]


def test_programs_of_several_stages_take_part(tmp_path):
    programs = [workloads.get("va", (64,)), spread_out(9, 14), spread_out(5, 6), spread_out(9, 14)]
    options = {"names": ["", "spread", "spread", "spread"], "weights": [1, 2, 3, 4]}

    def tune_all(trials):
        return atim.tune_tasks(
            programs, TARGET, trials=trials, work_dir=tmp_path, progress=False, **options
        )

    begun = tune_all(1)  # one of each kernel at least
    assert [len(run.records) for run in begun] == [1, 2, 2, 2]
    added, first, other, again = tune_all(10)
    assert first is again
    assert [run.key.workload for run in (added, first, other)] == [
        "va 64 int32",
        "spread",
        "spread #2",
    ]
    assert sum(len(run.records) for run in (added, first, other)) == 10
    assert min(len(run.records) for run in first.runs) >= 1
    a = np.arange(126, dtype=np.int32).reshape(9, 14) % 29
    result, timing = first.best.build()(a)
    assert (result == (a.max(1, keepdims=True) - a).sum(1)).all()
    assert timing.total == pytest.approx(first.best.timing.total, rel=0.05)  # other numbers
    with Database(tmp_path, write=False) as database:
        found = {run.key.workload for run in database.runs()}
    assert {"va 64 int32", "spread", "spread #2"} <= found


def test_progress_is_one_for_all(tmp_path, capsys):
    tune(tmp_path, trials=8, progress=True, workers=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("checking the best")
    done = [line for line in lines if " trials: best" in line]
    assert done[0].startswith("4/8 trials: best of 1 of 2 programs")
    assert "ms for all 2 programs, 8 valid, 0 failed, round 2" in done[-1]
    assert Counter(line.split()[0] for line in lines)["4/8"] == 1
