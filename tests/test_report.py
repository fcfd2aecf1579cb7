"""Reports: numbers in the table are the records', the page needs no other file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from atim.errors import RecordError
from atim.report import Story, best_so_far, page, read, text, write
from atim.runtime import Timing
from atim.tuner.database import Database, Record, RunKey
from atim.tuner.trial import told_failures

PRIM = Timing(2e-3, 5e-3, 0.5e-3, 0.0)
BEST = Timing(0.5e-3, 1e-3, 0.5e-3, 0.5e-3)


def story(**changes: object) -> Story:
    values = {
        "title": "mtv 4096x4096 int32 on <2048 DPUs>",
        "trials": (None, 4e-3, 3e-3, 2.5e-3, None),
        "failed": (("mismatch", "y[3]: 7, wanted 8"), ("timeout", "")),
        "baseline": ("PrIM-style", PRIM),
        "best": BEST,
        "sketch": "rows_split",
        "decisions": {"pieces": 8, "tasklets": 16},
        "notes": ("records: runs/mtv/records.db",),
    }
    return Story(**(values | changes))  # type: ignore[arg-type]


def test_table_shows_phases_totals_and_ratio() -> None:
    lines = text(story()).splitlines()
    assert lines[2].split() == ["milliseconds", "h2d", "kernel", "d2h", "host", "total"]
    assert lines[3].split() == ["PrIM-style", "2.000", "5.000", "0.500", "0.000", "7.500"]
    assert lines[4].split() == ["best", "0.500", "1.000", "0.500", "0.500", "2.500"]
    assert lines[5] == "best is 3.00x as fast as PrIM-style"
    assert "best: sketch rows_split: pieces 8, tasklets 16" in lines
    assert lines[-4:] == [
        "trials: 5 measured, 3 valid, 2 failed",
        "  mismatch 1: y[3]: 7, wanted 8",
        "  timeout 1",
        "records: runs/mtv/records.db",
    ]


def test_failures_are_told_by_the_limit_that_was_broken() -> None:
    stack = "stack: 600 bytes needed by each tasklet, limit 512"
    iram = "IRAM: 4,200 instructions needed, limit 4,096"
    failed = [("overflow", iram), ("overflow", stack), ("overflow", stack.replace("600", "520"))]
    assert told_failures(failed) == [f"  overflow 2, the first: {stack}", f"  overflow 1: {iram}"]
    many = [("overflow", f"{n}: needed") for n in range(8)]
    assert told_failures(many)[-1] == "  and 2 more kinds"
    assert "IRAM: 4,200" in page(story(failed=tuple(failed)), b"")


def test_a_run_without_a_valid_trial_says_so() -> None:
    lines = text(story(best=None, decisions={}, trials=(None,), failed=(("timeout", ""),)))
    assert "no valid trial" in lines
    assert "1 measured, 0 valid, 1 failed" in lines


def test_curve_is_the_running_minimum() -> None:
    inf = float("inf")
    assert best_so_far([None, 4.0, None, 5.0, 3.0]) == [inf, 4.0, 4.0, 4.0, 3.0]


@pytest.mark.parametrize(
    "changes",
    [{}, {"baseline": None}, {"best": None, "trials": (None, None)}, {"trials": (), "best": None}],
)
def test_plots_and_page_are_written(tmp_path: Path, changes: dict[str, object]) -> None:
    png, web = write(story(**changes), tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert web.stat().st_size > png.stat().st_size


def test_the_page_stands_alone_and_escapes_names() -> None:
    markup = page(story(), b"png")
    assert "&lt;2048 DPUs&gt;" in markup
    assert re.findall(r'(?:src|href)="(?!data:)', markup) == []
    assert "<script" not in markup
    assert "3.00x" in markup


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"report: .*missing cannot be written"):
        write(story(), tmp_path / "missing")


def test_a_run_is_read_from_its_records(tmp_path: Path) -> None:
    key = RunKey("mtv", "hash", "upmem-v1a", "total", 0, "0.1")
    with Database(tmp_path, write=True) as database:
        run = database.start(key, 4)
        rounds = [Record(n, 0, "rows", {"tile": n}) for n in range(4)]
        database.propose(run, rounds)
        timings = [(1e-3, 2e-3, 1e-3, 0.0), (1e-3, 1e-3, 1e-3, 0.0), None]
        for record, timing in zip(rounds, timings, strict=False):
            status, reason = ("ok", "") if timing else ("failed", "fault")
            database.finish(
                run,
                Record(record.number, 0, "rows", record.decisions, status, reason, "", timing),
            )
    found = read(tmp_path)
    assert found.trials == (pytest.approx(4e-3), pytest.approx(3e-3), None)  # the 4th is pending
    assert found.failed == (("fault", ""),)
    assert found.best == Timing(1e-3, 1e-3, 1e-3, 0.0)
    assert found.decisions == {"tile": 1}
    assert "ended: no, interrupted (asked for 4 trials)" in found.notes


def test_an_empty_folder_has_no_run(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no records: "):
        read(tmp_path)
