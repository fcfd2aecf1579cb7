"""`tune` from a tensor expression to a callable, through the whole road."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tvm import te, topi

import atim
from atim.tuner.database import Database, RunKey
from atim.tuner.display import Display
from atim.tuner.setup import tell_others
from atim.tuner.version import software_version


def matvec(rows: int = 24, columns: int = 40):
    A = te.placeholder((rows, columns), "int32", "A")
    x = te.placeholder((columns,), "int32", "x")
    k = te.reduce_axis((0, columns), "k")
    return [A, x, te.compute((rows,), lambda i: te.sum(A[i, k] * x[k], axis=k), "y")]


TARGET = atim.Target(dpus=8, tasklets=4)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return atim.tune(
        matvec(), TARGET, trials=6, resident=["A"], work_dir=folder, progress=False, seed=1
    )


def test_what_a_notebook_shows_is_short(run):
    assert repr(run) == run.report()
    assert len(repr(run)) < 1000
    assert repr(run.best).startswith(f"best of {run.key.workload}: ")
    assert "\n" not in repr(run.best)


def test_the_best_is_right_on_new_numbers(run):
    built = run.best.build()
    rng = np.random.default_rng(3)
    a = rng.integers(-1000, 1000, (24, 40), dtype="int32")
    x = rng.integers(-1000, 1000, 40, dtype="int32")
    y, _ = built(a, x)
    np.testing.assert_array_equal(y, a @ x)
    by_name, _ = built(x=x, A=a)
    np.testing.assert_array_equal(by_name, y)
    _, timing = built(a % 50, x % 50)  # products take as long as the values are large
    assert timing.total == pytest.approx(run.best.timing.total, rel=0.2)


def test_wrong_arrays_are_refused(run):
    built = run.best.build()
    with pytest.raises(atim.UsageError, match="1 inputs given, needs A, x"):
        built(np.zeros((24, 40), "int32"))
    with pytest.raises(atim.UsageError, match=r"input x: got int32\[41\], needs int32\[40\]"):
        built(np.zeros((24, 40), "int32"), np.zeros(41, "int32"))


def test_the_report_names_what_matters(run):
    text = run.report()
    assert text.startswith("y 24 int32 on upmem-v1a, 8 DPUs, 4 tasklets")
    assert "PrIM-style, " in text
    assert "x as fast as PrIM-style" in text
    assert "6 trials: 6 valid" in text


def test_the_schedule_is_an_ordinary_trace(run):
    assert "sch.bind" in str(run.best.schedule.trace)


def test_sources_can_be_written(run, tmp_path):
    run.best.build().export(tmp_path / "out", data=False)
    assert "mram" in (tmp_path / "out/kernel.c").read_text()
    assert "dpu_launch" in (tmp_path / "out/host.c").read_text()
    (tmp_path / "file").write_text("")
    with pytest.raises(atim.RecordError, match="file"):
        run.best.build().export(tmp_path / "file")


def test_records_say_where_the_time_went(run):
    with Database(run.folder, write=False) as database:
        records = database.records(database.runs()[0].id)
    assert tuple(records) == run.records
    for record in records:
        assert record.counters["cycles"] > 0
        assert {"compile_wall_s", "build_wall_s", "run_wall_s"} <= set(record.counters)


def test_a_script_needs_no_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import atim\n"
        "from atim import workloads\n"
        "run = atim.tune(workloads.get('va', (64,)), atim.Target(dpus=2, tasklets=2), trials=2,\n"
        f"                work_dir={str(tmp_path / 'run')!r}, progress=False, workers=1)\n"
        "print(len(run.records))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"trials": 0}, "trials: 0 requested, at least 1 needed"),
        ({"workers": 0}, "workers: 0 requested, at least 1 needed"),
        ({"seed": -1}, "seed: -1 requested, at least 0 needed"),
        ({"resident": ["B"]}, "resident: 'B' unknown, inputs: A, x"),
    ],
)
def test_bad_arguments_are_one_line(tmp_path, changed, message):
    with pytest.raises(atim.UsageError, match=message):
        atim.tune(matvec(), TARGET, work_dir=tmp_path / "run", **changed)
    assert not (tmp_path / "run").exists()


def test_bad_programs_are_one_line(tmp_path):
    with pytest.raises(atim.UsageError, match="te tensors or a PrimFunc needed, int given"):
        atim.tune(3, TARGET, work_dir=tmp_path)
    A = te.placeholder((8,), "int32", "A")
    c = te.var("c", "int32")
    with pytest.raises(atim.UnsupportedError, match="parameter c: scalar"):
        atim.tune([A, c, te.compute((8,), lambda i: A[i] * c, "y")], TARGET, work_dir=tmp_path)


def test_no_compiler_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(atim.ToolchainError, match="no C compiler found on PATH"):
        atim.tune(matvec(), TARGET, work_dir=tmp_path / "run")


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(atim.RecordError, match="can't be written"):
        atim.tune(matvec(), TARGET, work_dir=tmp_path / "file" / "run")


KEY = RunKey("va", "hash", "8 DPUs", "total", 0, "1")


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, ""),
        ({"seed": 1}, ""),
        ({"version": "2"}, "records of another software version are in the folder"),
        ({"target": "9 DPUs"}, "records of another program or target are in the folder"),
        ({"program": "other"}, "records of another program or target are in the folder"),
    ],
)
def test_records_that_are_not_used_are_mentioned(tmp_path, capsys, changed, line):
    with Database(tmp_path, write=True) as database:
        database.start(replace(KEY, **changed), 4)
        tell_others(database, [KEY], Display())
    err = capsys.readouterr().err
    assert err == (f"{line}: they are not used\n" if line else "")


def test_the_version_names_the_software_that_decides_results():
    version = software_version()
    assert version.startswith("0.")
    assert len(version.rpartition("-")[2]) == 8


def _backwards():
    A = te.placeholder((8, 5), "int32", "A")
    return [A, te.compute((8, 5), lambda i, j: A[7 - i, j], "B")], lambda a: a[::-1]


def _padded():
    A = te.placeholder((6, 7), "int32", "A")
    return [A, topi.nn.pad(A, (1, 0), (1, 2), name="P")], lambda a: np.pad(a, ((1, 1), (0, 2)))


def _sums_around():
    A = te.placeholder((9, 7), "int32", "A")
    P, k = topi.nn.pad(A, (1, 0), (1, 0)), te.reduce_axis((0, 3), "k")
    sums = te.compute((9, 7), lambda i, j: te.sum(P[i + k, j], axis=k), "S")
    return [A, sums], lambda a: sum(np.pad(a, ((1, 1), (0, 0)))[n : n + 9] for n in range(3))


@pytest.mark.parametrize("program", [_backwards, _padded, _sums_around])
def test_inputs_read_before_their_start(program, tmp_path, rng):
    args, reference = program()
    run = atim.tune(args, TARGET, trials=2, work_dir=tmp_path, progress=False, seed=1)
    assert run.summary()["failed"] == 0
    a = rng.integers(-99, 99, [int(n) for n in args[0].shape], dtype="int32")
    np.testing.assert_array_equal(run.best.build()(a)[0], reference(a))
