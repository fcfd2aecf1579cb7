"""Records survive, are found by key alone, and every failure is one clear line."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from atim.errors import RecordError
from atim.tuner.database import Database, Record, RunKey

KEY = RunKey("mtv 4,4 int32", "hash", "upmem 8", "total", 0, "1")


def pending(number: int) -> Record:
    return Record(number, number // 2, "rows", {"dpus": 8, "tile": number})


def done(number: int) -> Record:
    return replace(
        pending(number), status="ok", timing=(1e-3, 2e-3, 3e-3, 0.0), counters={"cycles": 7.0}
    )


def test_records_come_back_as_they_went_in(tmp_path):
    with Database(tmp_path, write=True) as db:
        run = db.start(KEY, 4)
        db.propose(run, [pending(n) for n in range(3)])
        db.finish(run, done(0))
        failed = replace(pending(1), status="failed", reason="timeout", message="60 s", wall_s=60.0)
        db.finish(run, failed)
        db.note(run, {"baseline_s": 0.5})
        db.end(run, "all trials done", 0)
    with Database(tmp_path, write=False) as db:
        (stored,) = db.runs()
        assert (stored.key, stored.trials, stored.winner) == (KEY, 4, 0)
        assert stored.facts == {"baseline_s": 0.5}
        assert db.records(stored.id) == [done(0), failed, pending(2)]
    assert done(0).objective_s == pytest.approx(6e-3)
    assert failed.objective_s == float("inf")


def test_the_same_key_continues_and_another_key_starts_anew(tmp_path):
    with Database(tmp_path, write=True) as db:
        run = db.start(KEY, 4)
        db.propose(run, [pending(0)])
        assert db.start(KEY, 9) == run
        for field, value in (
            ("seed", 1),
            ("target", "upmem 9"),
            ("version", "2"),
            ("program", "x"),
        ):
            other = db.start(replace(KEY, **{field: value}), 4)
            assert other != run
            assert db.records(other) == []
        assert len(db.runs()) == 5


def test_a_round_is_stored_whole_or_not_at_all(tmp_path):
    with Database(tmp_path, write=True) as db:
        run = db.start(KEY, 4)
        with pytest.raises(RecordError, match="UNIQUE"):
            db.propose(run, [pending(0), pending(1), pending(1)])
        assert db.records(run) == []


def test_two_writers_in_one_folder_are_refused_but_a_reader_is_not(tmp_path):
    with Database(tmp_path, write=True) as db:
        run = db.start(KEY, 4)
        db.propose(run, [pending(0)])
        message = rf"another tune writes to .* \(process {os.getpid()}\)"
        with pytest.raises(RecordError, match=message):
            Database(tmp_path, write=True)
        with Database(tmp_path, write=False) as reader:
            assert reader.records(run) == [pending(0)]
    Database(tmp_path, write=True).close()


def test_kill_loses_nothing_finished_and_frees_the_lock(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); from test_database import *\n"
        "db = Database(sys.argv[1], write=True); run = db.start(KEY, 4)\n"
        "db.propose(run, [pending(0), pending(1)]); db.finish(run, done(0))\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), os.path.dirname(__file__)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
    with Database(tmp_path, write=True) as db:
        assert db.records(db.start(KEY, 4)) == [done(0), pending(1)]


def test_damage_is_one_line(tmp_path):
    (tmp_path / "records.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(RecordError, match=r"records\.db: file is not a database: move it"):
        Database(tmp_path, write=True)


def test_damage_inside_a_page_is_found(tmp_path):
    with Database(tmp_path, write=True) as db:
        run = db.start(KEY, 400)
        db.propose(run, [pending(n) for n in range(400)])
    path = tmp_path / "records.db"
    data = bytearray(path.read_bytes())
    for page in range(4096, len(data), 4096):
        data[page : page + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(RecordError, match=r"records\.db"):
        Database(tmp_path, write=False)


def test_another_schema_version_is_refused(tmp_path):
    Database(tmp_path, write=True).close()
    connection = sqlite3.connect(tmp_path / "records.db")
    connection.execute("UPDATE meta SET value = '99'")
    connection.commit()
    connection.close()
    with pytest.raises(RecordError, match="schema version 99, this software reads 2: use another"):
        Database(tmp_path, write=False)


def test_a_full_disk_is_one_line_and_keeps_what_was_there(tmp_path):
    with Database(tmp_path, write=True) as db:
        run = db.start(KEY, 4)
        db.propose(run, [pending(0)])
        pages = db._connection.execute("PRAGMA page_count").fetchone()[0]
        db._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(RecordError, match="database or disk is full"):
            db.propose(run, [pending(n) for n in range(1, 5000)])
        assert db.records(run) == [pending(0)]


def test_an_unwritable_folder_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match=r"folder .*file/run can't be written: Not a directory"):
        Database(tmp_path / "file" / "run", write=True)


def test_a_closed_database_is_one_file_that_a_reader_leaves_alone(tmp_path):
    with Database(tmp_path, write=True) as db:
        db.start(KEY, 4)
    with Database(tmp_path, write=False) as reader:
        assert len(reader.runs()) == 1
    assert sorted(os.listdir(tmp_path)) == ["records.db", "records.lock"]


def test_reading_what_is_not_there_is_one_line(tmp_path):
    with pytest.raises(RecordError, match="does not exist"):
        Database(tmp_path, write=False)
    sqlite3.connect(tmp_path / "records.db").close()
    with pytest.raises(RecordError, match="holds no records of atim"):
        Database(tmp_path, write=False)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE trials SET decisions = '{bad'",
        "UPDATE runs SET facts = 'x'",
        "UPDATE runs SET program = x'00'",
        "UPDATE runs SET key = '{}'",
    ],
)
def test_damaged_contents_are_one_line(tmp_path, damage):
    with Database(tmp_path, write=True) as db:
        db.propose(db.start(KEY, 4), [pending(0)])
    with sqlite3.connect(tmp_path / "records.db") as file:
        file.execute(damage)
    file.close()
    with Database(tmp_path, write=False) as db:
        read = db.records if "trials" in damage else lambda _: db.runs()
        with pytest.raises(RecordError, match=r"records\.db: damaged"):
            read(1)
