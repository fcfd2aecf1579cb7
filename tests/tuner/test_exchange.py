"""Records go to TVM's JSONDatabase and come back; TVM alone replays them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import tvm
from test_tune import TARGET, matvec
from tvm import te
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms

import atim
from atim.schedules.rules import apply
from atim.tuner.database import Database
from atim.tuner.exchange import ANNOTATION, FILES, TVM_TARGET, export_records, import_records
from atim.tuner.plan import key_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return atim.tune(matvec(), TARGET, trials=5, work_dir=folder, progress=False)


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tvm")
    written, skipped = export_records(run.folder, folder)
    assert (written, skipped) == (sum(r.status == "ok" for r in run.records), 0)
    return folder


def test_tvm_finds_and_replays_the_best(run, exported):
    database = ms.database.JSONDatabase(work_dir=str(exported))
    module = tvm.IRModule({"main": te.create_prim_func(matvec())})
    found = database.query_tuning_record(module, tvm.target.Target(TVM_TARGET), "main")
    assert float(found.run_secs[0]) == pytest.approx(min(r.objective_s for r in run.records))
    schedule = Schedule(module)
    found.trace.apply_to_schedule(schedule, remove_postproc=False)
    schedule.unannotate(schedule.get_sblock("root"), ANNOTATION)
    best = min(run.records, key=lambda r: r.objective_s)
    ours = apply(run.sketches[best.sketch], best.decisions)
    tvm.ir.assert_structural_equal(schedule.mod["main"], ours.mod["main"])


def test_what_was_exported_comes_back_and_is_used(run, exported, tmp_path):
    counts = import_records(exported, tmp_path)
    assert counts["added"] == sum(r.status == "ok" for r in run.records)
    assert counts["foreign"] == counts["refused"] == counts["of another version"] == 0
    with Database(tmp_path, write=False) as database:
        (stored,) = database.runs()
        back = {r.digest: r.timing for r in database.records(stored.id)}
        assert all(database.trace(stored.id, n) for n in range(counts["added"]))
    assert stored.key == run.key
    assert back == {r.digest: r.timing for r in run.records if r.timing}
    assert import_records(exported, tmp_path)["added"] == 0
    again = atim.tune(matvec(), TARGET, trials=5, work_dir=tmp_path, progress=False)
    assert again.best.timing == run.best.timing


def altered(folder, into, change):
    """A copy of a TVM database with the text of its records changed."""
    into.mkdir()
    for name in FILES:
        (into / name).write_text(change((folder / name).read_text()))
    return into


def test_records_of_another_version_are_kept_and_not_used(run, exported, tmp_path):
    version = run.key.version
    other = altered(exported, tmp_path / "tvm", lambda text: text.replace(version, "0.0.9-old"))
    counts = import_records(other, tmp_path / "run")
    assert counts["of another version"] == counts["added"] > 0
    with Database(tmp_path / "run", write=False) as database:
        (stored,) = database.runs()
    assert stored.key == replace(run.key, version="0.0.9-old")


def test_decisions_that_do_not_give_the_trace_are_refused(exported, tmp_path):
    tasklets = "%22tasklets%22%3A%20"
    other = altered(exported, tmp_path / "tvm", lambda text: text.replace(tasklets, tasklets + "1"))
    counts = import_records(other, tmp_path / "run")
    assert counts["refused"] > 0
    assert counts["added"] == 0


def test_traces_of_others_are_left_out(tmp_path):
    func = te.create_prim_func(matvec())
    (tmp_path / "tvm").mkdir()
    database = ms.database.JSONDatabase(work_dir=str(tmp_path / "tvm"))
    schedule = Schedule(func)
    schedule.split(schedule.get_loops(schedule.get_sblock("y"))[0], [None, 4])
    target = tvm.target.Target(TVM_TARGET)
    workload = database.commit_workload(tvm.IRModule({"main": func}))
    info = ms.arg_info.ArgInfo.from_prim_func(func)
    database.commit_tuning_record(
        ms.database.TuningRecord(schedule.trace, workload, [1.0], target, info)
    )
    assert dict(import_records(tmp_path / "tvm", tmp_path / "run")) == {"foreign": 1}


def test_bad_folders_are_one_line(run, exported, tmp_path):
    with pytest.raises(atim.RecordError, match="holds a TVM database already"):
        export_records(run.folder, exported)
    with pytest.raises(atim.RecordError, match="holds no TVM database"):
        import_records(tmp_path, tmp_path / "run")
    for name in FILES:
        (tmp_path / name).write_text(json.dumps("nonsense") + "\n")
    with pytest.raises(atim.RecordError, match="damaged TVM database"):
        import_records(tmp_path, tmp_path / "run")


def test_a_search_of_another_kind_has_another_key():
    func = te.create_prim_func(matvec())
    plain, other = (key_of(func, "y", TARGET, [], 0, kind) for kind in ("evolutionary", "random"))
    assert plain != other
    assert plain.program == other.program
