"""Full disks, read-only folders, clocks that jump, kernels that are alike: clear, and no loss."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import ToyJob
from test_loop import HERE, KEY, tune, what

from atim.errors import AtimError, RecordError
from atim.tuner.database import Database

SCRIPT = f"""
import os, resource, sys; sys.path.insert(0, {HERE!r})
from synthetic import ToyJob
from test_loop import tune
from atim.errors import AtimError
"""


def child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", SCRIPT + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def stored(folder):
    with Database(folder, write=False) as database:
        return database.records(database.runs()[0].id)


def reported(done) -> list[int]:
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [event["number"] for event in events if event["event"] == "trial"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return tune(tmp_path_factory.mktemp("undisturbed"), trials=48)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small file system")
def test_a_full_disk_stops_with_one_line_and_loses_nothing(tmp_path, undisturbed):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        (small / "ballast").write_bytes(bytes(920 << 10))
        done = child(
            "try: tune(sys.argv[1], ToyJob(), trials=48, mode='json')\n"
            "except AtimError as error: print(error)",
            small,
        )
        assert done.stdout.splitlines()[-1].endswith("database or disk is full"), done
        assert done.stderr == ""
        told = reported(done)
        assert 0 < len(told) < 48
        assert {r.number for r in stored(small) if r.status == "ok"} >= set(told)
        (small / "ballast").unlink()
        assert what(tune(small, trials=48)) == what(undisturbed)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_file_that_may_not_grow_is_the_same(tmp_path, undisturbed):
    done = child(
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: tune(sys.argv[1], ToyJob(), trials=48, mode='json')\n"
        "except AtimError as error: print(error)",
        tmp_path,
    )
    last = done.stdout.splitlines()[-1]
    assert "records.db: " in last, done
    assert "full" in last or "disk I/O error" in last
    assert {r.number for r in stored(tmp_path) if r.status == "ok"} >= set(reported(done))
    assert what(tune(tmp_path, trials=48)) == what(undisturbed)


def test_a_builder_without_room_blames_no_candidate(tmp_path, undisturbed):
    with pytest.raises(AtimError, match="No space left on device: make room and run the same"):
        tune(tmp_path, ToyJob(failing="disk"), trials=48)
    assert not any(r.status == "failed" for r in stored(tmp_path))
    assert what(tune(tmp_path, trials=48)) == what(undisturbed)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_read_only_folder_is_one_line_and_can_be_read():
    folder = Path(tempfile.mkdtemp())
    try:
        tune(folder, trials=6)
        folder.chmod(0o755)
        done = child(
            "from atim.tuner.database import Database\n"
            "os.setuid(65534)\n"
            "with Database(sys.argv[1], write=False) as d: print(len(d.records(1)))\n"
            "try: tune(sys.argv[1])\n"
            "except AtimError as error: print(error)",
            folder,
        )
        found, error = done.stdout.splitlines()
        assert found == "6"
        assert error == f"folder {folder} can't be written: Permission denied"
    finally:
        shutil.rmtree(folder)


def test_a_clock_that_jumps_changes_nothing(tmp_path, monkeypatch, undisturbed):
    jumps = itertools.cycle([0.0, -3e7, 5e8, -1e9, 1.0])
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + next(jumps))
    result = tune(tmp_path, trials=24, progress=True)
    monkeypatch.undo()
    assert what(tune(tmp_path, trials=48)) == what(
        replace(undisturbed, records=tuple(stored(tmp_path)))
    )
    assert result.winner is not None
    assert all(0 <= r.wall_s < 60 for r in result.records)


def test_two_tunes_in_one_folder_are_refused(tmp_path):
    refused = pytest.raises(RecordError, match=r"another tune writes to .* \(process \d+\)")
    with Database(tmp_path, write=True), refused:
        tune(tmp_path)
    assert len(tune(tmp_path, trials=6).records) == 6


def test_kernels_that_are_alike_are_measured_once(tmp_path):
    log = tmp_path / "log"
    one = tune(tmp_path / "1", ToyJob(alike=True, log=str(log)), trials=48, workers=1)
    reused = [r for r in one.records if r.same_as is not None]
    assert reused
    assert log.read_text().count("False") == 48 - len(reused)
    for record in reused:
        source = one.records[record.same_as]
        assert source.same_as is None
        assert source.number < record.number
        assert (source.digest, source.timing) == (record.digest, record.timing)
    two = tune(tmp_path / "2", ToyJob(alike=True), trials=48, workers=2)
    assert what(two) == what(one)
    assert tuple(stored(tmp_path / "1")) == one.records


def test_json_lines_tell_the_whole_story(tmp_path, capsys):
    tune(tmp_path, ToyJob(failing="some"), trials=12, mode="json")
    captured = capsys.readouterr()
    assert captured.err == ""
    events = [json.loads(line) for line in captured.out.splitlines()]
    assert events[0] == {"event": "start", "trials": 12, "done": 0}
    trials = {e["number"]: e for e in events if e["event"] == "trial"}
    for record in stored(tmp_path):
        assert trials[record.number]["decisions"] == record.decisions
        assert trials[record.number]["reason"] == record.reason
        expected = None if record.timing is None else record.objective_s
        assert trials[record.number]["total_s"] == expected
    rounds = [e for e in events if e["event"] == "round"]
    assert [e["done"] for e in rounds] == [6, 12]
    assert all(e["trials_per_s"] > 0 and e["program"] == KEY.workload for e in rounds)
    assert rounds[-1]["left_s"] == 0


def test_a_terminal_gets_a_bar(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    tune(tmp_path, trials=12, progress=True)
    last = capsys.readouterr().err.split("\r")
    bars = [text for text in last if "/12 |" in text]
    assert "12/12 |" in bars[-1]
    assert re.search(r"\| best \d", bars[-1])
    assert ", round 2, " in bars[-1]
    assert " trials/s, 0:00 left" in bars[-1]
