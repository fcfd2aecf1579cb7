"""Records for TVM users and from them: MetaSchedule's JSONDatabase.

An exported record holds an ordinary trace, which TVM alone replays on the workload beside it, and
its total seconds. A last instruction notes in an annotation of the root block which record of ours
it is. Coming back, a record is taken over under its own key: one of this software version only when
its sketch and decisions give the same trace, one of another version or target as it is, to be kept
but never used. Traces that are not ours are counted and left out.
"""

from __future__ import annotations

import dataclasses
import json
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.target import Target as TvmTarget

from atim.errors import RecordError, ScheduleError, UsageError
from atim.schedules import Sketch
from atim.schedules.program import inlined
from atim.schedules.rules import apply
from atim.target import Target
from atim.tuner.database import Database, Record, RunKey, StoredRun
from atim.tuner.measure import Problem
from atim.tuner.merge import add_run
from atim.tuner.plan import key_of
from atim.tuner.trace import plain, replay, text_of
from atim.tuner.version import software_version

__all__ = ["ANNOTATION", "FILES", "TVM_TARGET", "export_records", "import_records"]

ANNOTATION = "atim.record"
FILES = ("database_workload.json", "database_tuning_record.json")  # as TVM names them
# TVM knows no target of DPUs; C is what it would generate.
TVM_TARGET = {"kind": "c", "keys": ["upmem", "cpu"]}


def export_records(folder: Path, into: Path) -> tuple[int, int]:
    """Write valid records of a folder as `JSONDatabase(work_dir=into)`, which must not exist.

    Returns how many were written, and how many could not be because this software does not know
    their sketch any more. RecordError when a folder can't be read or written.
    """
    written = skipped = 0
    with Database(folder, write=False) as database:
        runs = [(run, database.records(run.id)) for run in database.runs()]
        traces = {(r.id, t.number): database.trace(r.id, t.number) for r, ts in runs for t in ts}
    out = _open(into, fresh=True)
    for run, records in runs:
        valid = [r for r in records if r.timing is not None and traces[run.id, r.number]]
        try:
            problem = _problem(run) if valid else None
            sketches = {s.name: s for s in problem.sketches()} if problem else {}
        except (TypeError, UsageError, ScheduleError, tvm.error.InternalError):
            problem, sketches = None, {}
        for record in valid:
            if problem is None or record.sketch not in sketches:
                skipped += 1
                continue
            _commit(
                out, problem, sketches[record.sketch], run, record, traces[run.id, record.number]
            )
            written += 1
    return written, skipped


def import_records(source: Path, into: Path) -> Counter[str]:
    """Add what is ours in `JSONDatabase(work_dir=source)` to the records of a folder.

    Returns how many are "added" (of them "of another version"), "known" already, "foreign" (no
    trace of ours) and "refused" (its decisions give another trace). RecordError as above.
    """
    found = _open(source, fresh=False)
    counts: Counter[str] = Counter()
    groups: dict[RunKey, list[tuple[Record, str]]] = {}
    stored: dict[RunKey, StoredRun] = {}
    for item in found.get_all_tuning_records():
        note = _note_of(item)
        if note is None:
            counts["foreign"] += 1
            continue
        run, record, trace = note
        if run.key.version == software_version() and not _same_trace(run, record, trace):
            counts["refused"] += 1
            continue
        counts["of another version"] += run.key.version != software_version()
        stored.setdefault(run.key, run)
        groups.setdefault(run.key, []).append((record, trace))
    with Database(into, write=True) as database:
        for key, members in groups.items():
            members.sort(key=lambda member: member[0].number)
            records = [dataclasses.replace(r, number=n) for n, (r, _) in enumerate(members)]
            texts = {n: text for n, (_, text) in enumerate(members)}
            _, known, added = add_run(database, stored[key], records, texts)
            counts["known"] += known
            counts["added"] += added
    return counts


def _open(folder: Path, *, fresh: bool) -> Any:
    from tvm.s_tir.meta_schedule.database import JSONDatabase  # seconds that others can spare

    if fresh and any((folder / name).exists() for name in FILES):
        raise RecordError(f"{folder} holds a TVM database already")
    if not fresh and not all((folder / name).is_file() for name in FILES):
        raise RecordError(f"{folder} holds no TVM database ({' and '.join(FILES)})")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return JSONDatabase(work_dir=str(folder))
    except OSError as error:
        raise RecordError(f"folder {folder}: {error.strerror}") from error
    except (tvm.error.InternalError, ValueError, RuntimeError, TypeError) as error:
        raise RecordError(f"{folder}: damaged TVM database: {error}") from error


def _problem(run: StoredRun) -> Problem:
    setting = run.setting
    return Problem(run.program, Target(**setting["target"]), tuple(setting["resident"]))


def _start(problem: Problem, sketch: Sketch) -> tuple[tirx.PrimFunc, Schedule]:
    """The program as the user wrote it, and a schedule that brings it to where the sketch's traces
    begin; where instructions can't bring it there, the program as the sketch takes it."""
    func = problem.func()
    schedule = Schedule(func, debug_mask="none", error_render_level="fast")
    inlined(schedule)
    if tvm_ffi.structural_equal(schedule.mod["main"], sketch.func):
        return func, schedule
    return sketch.func, Schedule(sketch.func, debug_mask="none", error_render_level="fast")


def _commit(
    out: Any, problem: Problem, sketch: Sketch, run: StoredRun, record: Record, trace: str
) -> None:
    from tvm.s_tir import meta_schedule as ms

    func, schedule = _start(problem, sketch)
    replay(trace, schedule)
    note = {
        "key": dataclasses.asdict(run.key),
        "record": dataclasses.asdict(record),
        "trials": run.trials,
        "setting": dict(run.setting),
        "trace": trace,
        # the workload of the database is the program, except where it had to be another one
        "program": "" if tvm_ffi.structural_equal(func, problem.func()) else run.program,
    }
    text = urllib.parse.quote(json.dumps(note))
    schedule.annotate(schedule.get_sblock("root"), ANNOTATION, text)
    out.commit_tuning_record(
        ms.database.TuningRecord(
            schedule.trace,
            out.commit_workload(tvm.IRModule({"main": func})),
            [record.objective_s],
            TvmTarget(TVM_TARGET),
            ms.arg_info.ArgInfo.from_prim_func(func),
        )
    )


def _note_of(item: Any) -> tuple[StoredRun, Record, str] | None:
    """What an exported record says of itself; None when it is not one of ours."""
    instructions = plain(item.trace.as_json())[0]
    texts = [i[1][1] for i in instructions if i[0] == "Annotate" and i[2] == [ANNOTATION]]
    if not texts:
        return None
    try:
        note = json.loads(urllib.parse.unquote(texts[-1].strip('"')))
        program = note["program"] or tvm.ir.save_json(item.workload.mod["main"])
        key = RunKey(**note["key"])
        run = StoredRun(0, key, note["trials"], "", None, {}, program, note["setting"])
        values = {**note["record"], "timing": tuple(note["record"]["timing"]), "same_as": None}
        return run, Record(**values), note["trace"]
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"annotation {ANNOTATION}: damaged: {error}") from error


def _same_trace(run: StoredRun, record: Record, trace: str) -> bool:
    """True when the record's program and decisions lead to its trace with this software."""
    try:
        problem = _problem(run)
        key = key_of(
            problem.func(), run.key.workload, problem.target, problem.resident, run.key.seed
        )
        sketch = next(s for s in problem.sketches() if s.name == record.sketch)
        same = text_of(apply(sketch, record.decisions)) == trace
    except (StopIteration, TypeError, ScheduleError, UsageError):
        return False
    objective = run.key.objective.partition("; search ")[0]
    return same and key == dataclasses.replace(run.key, objective=objective)
