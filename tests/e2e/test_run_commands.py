"""`atim export`, `explain` and `trace` on a folder with one measured schedule."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from atim import Target, cli, workloads
from atim.explain import explain, kernel_bounds
from atim.tuner.database import Database, Record
from atim.tuner.folder import open_best
from atim.tuner.measure import run_task, sample_inputs
from atim.tuner.plan import Plan
from atim.tuner.search import Options
from atim.tuner.trial import Task
from upmem_sim.host import places

CHOSEN = {"dpus_i": 4, "pieces": 2, "tasklets": 4, "tile": 16, "host_threads": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one trial, measured here, with nothing searched."""
    path = tmp_path_factory.mktemp("run")
    plan = Plan.of(workloads.get("mtv", (64, 96)), Target(dpus=16), Options(trials=1, seed=0))
    sketch = next(s for s in plan.sketches if s.name == "rows_split")
    decisions = {d.name: min(d.values) for d in sketch.decisions} | CHOSEN
    decisions = {name: decisions[name] for name in sketch.names}
    task = Task(sketch.name, decisions, whole=True)
    measured = run_task(sketch.func, sketch, task, sample_inputs(sketch.func))
    assert measured.timing is not None, measured.message
    with Database(path, write=True) as database:
        run = database.start(plan.key, 1, plan.entry.program, plan.entry.setting)
        record = Record(0, 0, sketch.name, decisions)
        database.propose(run, [record])
        counters, timing = measured.counters, measured.timing
        database.finish(run, replace(record, status="ok", counters=counters, timing=timing), "")
        database.end(run, "all trials done", 0)
    return path


def test_export_checks_itself(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["export", str(folder), "--out", str(tmp_path)]) == 0
    assert f"wrote {tmp_path}/host.c" in capsys.readouterr().out
    path = f"{places.bin_dir()}:/usr/bin:/bin"
    done = subprocess.run(
        ["make", "-C", str(tmp_path), "run"], capture_output=True, text=True, env={"PATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("right") == 1
    cycles = int(open_best(folder).record.counters["cycles"])
    assert ["cycles", str(cycles)] in [line.split() for line in done.stdout.splitlines()]


def test_explain_names_the_bound(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", str(folder)]) == 0
    text = capsys.readouterr().out
    best = open_best(folder)
    assert text.startswith(f"mtv 64x96 int32: {best.timing.total * 1e3:.3f} ms on 8 DPUs")
    assert "x: 192 B a DPU" in text
    assert "4 tasklets, an instruction each in 11 cycles" in text
    assert "128 partial results, 2 threads" in text


def test_the_tightest_bound_comes_first(folder: Path) -> None:
    counters = {"instructions": 5000.0, "dma_busy_cycles": 7000.0}
    names = [b.name for b in kernel_bounds(counters, 16, Target())]
    assert names == ["MRAM", "issue slots"]
    bounds = kernel_bounds(counters, 4, Target())
    assert (bounds[0].cycles, bounds[0].name[:10]) == (13750, "4 tasklets")


def test_without_counters_the_phases_are_explained(folder: Path) -> None:
    best = open_best(folder)
    text = explain(replace(best, record=replace(best.record, counters={"cycles": 0})))
    assert "DIMMs do not tell" in text


def test_parts_of_the_tasklets_time_make_a_whole(folder: Path) -> None:
    text = explain(open_best(folder)).split("spend their time:\n")[1].split("\n\n")[0]
    assert sum(float(line.split("%")[0]) for line in text.splitlines()) == pytest.approx(100, abs=2)


def test_trace_is_a_timeline_of_each_tasklet(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["trace", str(folder), "-o", str(folder / "trace.json")]) == 0
    told = re.match(r"DPU [0-7]: ([\d,]+) cycles", capsys.readouterr().out)
    assert told is not None
    # of one DPU of each class: with other numbers, multiplications take other times
    slowest = open_best(folder).record.counters["cycles"]
    assert 0.9 * slowest < int(told[1].replace(",", "")) <= slowest
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert {e["tid"] for e in events if e["ph"] == "X"} == {0, 1, 2, 3}


@pytest.mark.parametrize("command", ["export", "explain", "trace"])
def test_folders_without_a_winner_are_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([command, str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("atim: no records: ")
    with Database(tmp_path, write=True):
        pass
    assert cli.run([command, str(tmp_path)]) == 1
    assert "no run recorded" in capsys.readouterr().err
