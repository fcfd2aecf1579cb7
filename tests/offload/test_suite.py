"""The models suite: what it fails for, and that it goes on where it was stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.model_rows import Progress, Row

ROW = Row("m", "int8", "papers", 64, "", {"all-host": 2.0, "greedy": 1.0, "ours": 1.0}, 3)


def test_what_a_row_fails_for() -> None:
    assert ROW.faults == []
    slower = replace(ROW, seconds={**ROW.seconds, "ours": 1.03})
    assert slower.faults == ["ours is not the best, predicted"]
    assert replace(ROW, ran={"greedy": 1.0, "ours": 1.01}).faults == []
    # where ours takes too long to run
    assert replace(ROW, ran={"all-host": 1.0}).faults == []
    ran = replace(ROW, ran={"greedy": 1.0, "ours": 1.06})
    assert ran.faults == ["ours is not the best, run", "ours takes other than predicted"]
    assert "2.00x, 3 moved; run: greedy 1000.00 ours 1060.00 ms" in ran.line()


def test_a_stopped_suite_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    progress = Progress.load(path)
    progress.measured.append("m, int8")
    progress.rows["m, int8"] = [ROW]
    progress.save()
    again = Progress.load(path)
    assert again.measured == ["m, int8"]
    assert again.rows["m, int8"][0].seconds == ROW.seconds
    for text in (path.read_text().replace(progress.version, "another"), "{", "[]"):
        path.write_text(text)
        assert Progress.load(path).rows == {}
