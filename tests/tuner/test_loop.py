"""A run survives interruption, gives the same records for any number of workers, and is honest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from synthetic import ROWS, ToyJob, canonical, describe, search

from atim.errors import AtimError
from atim.tuner import proposals
from atim.tuner.database import Database, RunKey
from atim.tuner.display import Display
from atim.tuner.loop import Baseline, Entry, tune_records
from atim.tuner.search import Options
from atim.tuner.trial import Task

KEY = RunKey("toy", "hash", "toy target", "total", 0, "1")
HERE = str(Path(__file__).parent)


def tune(folder, job=None, *, trials=24, key=KEY, progress=False, mode="", **options):
    asked = Options(trials=trials, batch=6)
    mode = mode or ("text" if progress else "quiet")
    with Database(folder, write=True) as database, Display(mode) as display:
        return tune_records(
            job or ToyJob(),
            search(asked),
            Entry(key),
            database,
            display,
            **options,
        )


def what(result):
    """Records without wall times."""
    return [replace(r, wall_s=0.0, counters={}) for r in result.records]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return tune(tmp_path_factory.mktemp("undisturbed"))


def test_all_trials_are_recorded_and_the_best_is_verified(undisturbed):
    assert [r.number for r in undisturbed.records] == list(range(24))
    assert [r.round for r in undisturbed.records[::6]] == [0, 1, 2, 3]
    assert undisturbed.ended == "all trials done"
    assert undisturbed.winner == min(undisturbed.records, key=lambda r: r.objective_s)


def test_one_worker_gives_the_same_records_as_two(tmp_path, undisturbed):
    assert what(tune(tmp_path, workers=1)) == what(undisturbed)


def test_a_round_is_proposed_while_the_one_before_is_measured(tmp_path):
    finder, asked = search(Options(trials=24, batch=6)), []

    def propose(history, waiting=()):
        asked.append((len(history), len(waiting)))
        return type(finder).propose(finder, history, waiting)

    finder.propose = propose
    with Database(tmp_path, write=True) as database, Display("quiet") as display:
        early = tune_records(ToyJob(), finder, Entry(KEY), database, display)
        asked_early = asked.copy()
        finder.early = False
        late = tune_records(ToyJob(), finder, Entry(replace(KEY, version="2")), database, display)
    assert asked_early[:5] == [(0, 0), (5, 1), (11, 1), (17, 1), (23, 1)]
    assert asked[len(asked_early) :] == [(n, 0) for n in (0, 6, 12, 18, 24)]
    assert what(early) != what(late)


def test_the_same_command_again_measures_nothing(tmp_path, undisturbed):
    tune(tmp_path)
    log = tmp_path / "log"
    again = tune(tmp_path, ToyJob(log=str(log)))
    assert what(again) == what(undisturbed)
    assert not log.exists()


def test_more_trials_go_on_from_the_earlier_ones(tmp_path, undisturbed):
    tune(tmp_path)
    log = tmp_path / "log"
    more = tune(tmp_path, ToyJob(log=str(log)), trials=36)
    assert len(more.records) == 36
    assert what(more)[:24] == what(undisturbed)
    assert log.read_text().count("False") == 12


def test_records_of_another_key_are_not_used(tmp_path):
    tune(tmp_path)
    log = tmp_path / "log"
    tune(tmp_path, ToyJob(log=str(log)), key=replace(KEY, version="2"))
    assert log.read_text().count("False") == 24


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_and_gives_the_same_records(tmp_path, undisturbed, how):
    log = tmp_path / "log"
    script = (
        f"import sys; sys.path.insert(0, {HERE!r})\n"
        "from test_loop import ToyJob, tune\n"
        f"tune({str(tmp_path)!r}, ToyJob(log={str(log)!r}, slow_s=0.1))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as child:
        while not log.exists() or log.read_text().count("\n") < 9:
            assert child.poll() is None
            os.sched_yield()
        child.send_signal(how)
    with Database(tmp_path, write=False) as database:
        records = database.records(1)
        finished = [r for r in records if r.status == "ok"]
        assert 6 <= len(finished) < len(records) <= 18
    log.unlink()
    resumed = tune(tmp_path, ToyJob(log=str(log)))
    assert what(resumed) == what(undisturbed)
    assert log.read_text().count("False") == 24 - len(finished)


def test_a_winner_that_is_wrong_is_recorded_and_the_next_best_taken(tmp_path, undisturbed):
    tasklets = undisturbed.winner.decisions["tasklets"]
    result = tune(tmp_path, ToyJob(wrong_tasklets=tasklets))
    assert result.winner is not None
    assert result.winner.decisions["tasklets"] != tasklets
    wrong = [r for r in result.records if r.reason == "mismatch"]
    assert wrong
    assert all(r.timing is None and r.message == "y[3] is 0, should be 1" for r in wrong)
    with Database(tmp_path, write=False) as database:
        assert database.runs()[0].winner == result.winner.number
        assert tuple(database.records(1)) == result.records


def test_failed_trials_count_and_never_win(tmp_path):
    result = tune(tmp_path, ToyJob(failing="some"))
    failed = [r for r in result.records if r.status == "failed"]
    assert 0 < len(failed) < 24
    assert {(r.reason, r.message) for r in failed} == {("fault", "memory fault")}
    assert result.winner not in failed


def test_a_broken_tool_ends_the_run_with_its_message(tmp_path):
    with pytest.raises(AtimError, match="no candidate can be built: toolchain: no compiler"):
        tune(tmp_path, ToyJob(failing="all"))
    with Database(tmp_path, write=False) as database:
        assert len(database.records(1)) == 6


def test_the_fastest_baseline_is_a_fact_and_not_a_trial(tmp_path):
    task = Task("rows", {"dpus": 1024, "tasklets": 16, "tile": 256, "unroll": 1})
    slow = Task("rows", {"dpus": 1, "tasklets": 1, "tile": 256, "unroll": 1})
    baselines = [Baseline("slow", slow), Baseline("by hand", task), Baseline("again", task)]
    result = tune(tmp_path, baselines=baselines)
    assert len(result.records) == 24
    assert result.facts["baseline"]["name"] == "by hand"
    assert len(result.facts["baseline"]["timing"]) == 4


def test_progress_without_a_terminal_is_one_line_a_round(tmp_path, capsys):
    tune(tmp_path, ToyJob(failing="some"), progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" trials")[0] for line in lines[:4]] == ["6/24", "12/24", "18/24", "24/24"]
    assert "ms (h2d " in lines[3]
    assert " failed, round 4, " in lines[3]
    assert lines[3].endswith(" left")
    assert len(lines) == 5
    assert lines[4].startswith("checking the best (trial ")
    tune(tmp_path, ToyJob(failing="some"), trials=30, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "resumed: 24 of 30 trials are recorded already"
    assert lines[1].startswith("30/30 trials: best ")


def test_quiet_says_nothing(tmp_path, capfd):
    tune(tmp_path, trials=6)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_space_smaller_than_the_trials_ends_early_and_says_so(tmp_path, capsys, monkeypatch):
    small = replace(ROWS, decisions=tuple(replace(d, values=d.values[-2:]) for d in ROWS.decisions))
    space = proposals.Space([small], canonical, lambda s, m: m[:, 1] > 0, describe)
    monkeypatch.setattr(synthetic, "make_space", lambda: space)
    result = tune(tmp_path, progress=True)
    size = result.records[-1].number + 1
    assert size < 24
    assert result.ended == "the space is exhausted"
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"the space has {size} legal candidates: all will be tried"
    assert f"{size}/{size} trials: " in "\n".join(lines)
    assert f"stopped after {size} trials: the space is exhausted" in lines
