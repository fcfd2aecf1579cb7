"""Runs of several folders in one: nothing lost, nothing counted twice, nothing applied silently."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from synthetic import ToyJob
from test_loop import KEY, tune, what

from atim.errors import RecordError, UsageError
from atim.tuner.database import Database, Record
from atim.tuner.merge import merge


def stored(folder):
    with Database(folder, write=False) as database:
        return {run.key: (run, database.records(run.id)) for run in database.runs()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, tune(folder)


def test_runs_of_different_keys_stay_apart(tmp_path, whole):
    folder, result = whole
    other = tune(tmp_path / "other", key=replace(KEY, seed=1), trials=6)
    done = merge([folder, tmp_path / "other"], tmp_path / "both")
    assert [(known, added) for _, known, added in done] == [(0, 24), (0, 6)]
    runs = stored(tmp_path / "both")
    assert tuple(runs[KEY][1]) == result.records
    assert tuple(runs[replace(KEY, seed=1)][1]) == other.records
    assert runs[KEY][0].winner == result.winner.number
    assert runs[KEY][0].ended == "all trials done"


def test_a_run_and_its_beginning_are_the_run(tmp_path, whole):
    folder, result = whole
    with Database(tmp_path / "part", write=True) as database:
        run = database.start(KEY, 24)
        database.add(run, result.records[:9], {})
        pending = replace(result.records[9], status="pending", timing=None)
        database.add(run, [pending], {})
    for sources in ([folder, tmp_path / "part"], [tmp_path / "part", folder]):
        shutil.rmtree(tmp_path / "both", ignore_errors=True)
        assert sum(added for _, _, added in merge(sources, tmp_path / "both")) == 24
        assert [r.decisions for r in stored(tmp_path / "both")[KEY][1]] == [
            r.decisions for r in result.records
        ]
        assert all(r.status == "ok" for r in stored(tmp_path / "both")[KEY][1])
    log = tmp_path / "log"
    again = tune(tmp_path / "both", ToyJob(log=str(log)))
    assert again.winner.objective_s == result.winner.objective_s
    assert not log.exists() or "False" not in log.read_text()


def record(number: int, **changes) -> Record:
    made = Record(number, 0, "rows", {"dpus": number}, "ok", timing=(1e-3, 0.0, 0.0, 0.0))
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ({"status": "pending", "timing": None}, {}, "ok"),
        ({"status": "failed", "reason": "timeout", "timing": None}, {}, "ok"),
        ({}, {"status": "failed", "reason": "crash", "timing": None}, "ok"),
        ({}, {"status": "failed", "reason": "mismatch", "timing": None}, "failed"),
        ({}, {"status": "pending", "timing": None}, "ok"),
    ],
)
def test_the_better_known_outcome_is_kept(tmp_path, first, second, kept):
    for name, changes in (("a", first), ("b", second)):
        with Database(tmp_path / name, write=True) as database:
            run = database.start(KEY, 1, "program", {"resident": ["A"]})
            database.add(run, [record(0, **changes)], {0: f"trace of {name}"})
    merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    with Database(tmp_path / "c", write=False) as database:
        (run,) = database.runs()
        assert (run.program, run.setting) == ("program", {"resident": ["A"]})
        (found,) = database.records(run.id)
        assert found.status == kept
        assert database.trace(run.id, 0) in ("trace of a", "trace of b")


def test_bad_folders_are_one_line(tmp_path, whole):
    folder, _ = whole
    with pytest.raises(UsageError, match="is both source and destination"):
        merge([folder], folder)
    with pytest.raises(RecordError, match="does not exist"):
        merge([tmp_path / "nowhere"], tmp_path / "c")


def test_a_merged_file_is_resumed_like_any_other(tmp_path, whole):
    folder, result = whole
    merge([folder], tmp_path / "copy")
    assert what(tune(tmp_path / "copy")) == what(result)
