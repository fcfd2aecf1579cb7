"""`tune`: a tensor program, a target and a folder in; a `Run` out.

Puts the pieces of this package together and checks what the caller asks for; the loop itself is in
`loop`, the search in `search`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tvm_ffi
from tvm import te, tirx

from atim import toolchain
from atim.errors import ScheduleError, UnsupportedError, UsageError
from atim.schedules import Sketch
from atim.schedules.manual import prim_of
from atim.schedules.verify import check, explain
from atim.target import Target
from atim.tuner import experience
from atim.tuner.baselines import make
from atim.tuner.cost_model import CostModel
from atim.tuner.database import Database, Record, RunKey
from atim.tuner.display import Display
from atim.tuner.features import FEATURES, VERSION, describe
from atim.tuner.loop import Baseline, Limits, tune_records
from atim.tuner.measure import Problem
from atim.tuner.proposals import Candidate, Space
from atim.tuner.result import Run
from atim.tuner.search import Observation, Options, samples_of
from atim.tuner.trial import Task
from atim.tuner.version import software_version
from atim.workloads import Workload

__all__ = ["tune"]


def tune(
    program: Workload | tirx.PrimFunc | Sequence[te.Tensor],
    target: Target,
    *,
    trials: int = 64,
    resident: Sequence[str] | None = None,
    work_dir: str | Path | None = None,
    seed: int = 0,
    workers: int = 2,
    progress: bool = True,
    name: str = "",
    limits: Limits | None = None,
    search: str = "evolutionary",
    model: str | Path | None = None,
) -> Run:
    """Find a fast schedule of a program for a target.

    program: a named workload, a PrimFunc, or te tensors (inputs first, output last). resident:
    inputs that lie on the DPUs before the call, whose transfer is not counted (None: the workload's
    usual ones, or none). work_dir: where records are kept and found again, by default runs/NAME.
    The same arguments give the same records whatever `workers` (builder processes) is; a call that
    was interrupted goes on where it was. name: what reports call the program.
    search: one of `baselines.SEARCHES`. model: a file, or a folder of them, with what earlier runs
    measured, of any program; the search starts from it, and this run is added to it at the end.

    Raises UsageError (wrong arguments), UnsupportedError (can't be placed on DPUs), ScheduleError
    (no legal candidate), ToolchainError (no compiler), RecordError (folder, model file).
    """
    for what, value, least in (("trials", trials, 1), ("workers", workers, 1), ("seed", seed, 0)):
        if value < least:
            raise UsageError(f"{what}: {value} requested, at least {least} needed")
    func, title = _program(program, name)
    if resident is None:
        resident = program.resident if isinstance(program, Workload) else ()
    toolchain.find_compiler()
    problem = Problem.of(func, target, tuple(resident))
    sketches = problem.sketches()
    space = Space(sketches, lambda s, m: check(s, m, target)[0], describe)
    trees = CostModel([f.name for f in FEATURES], VERSION, seed)
    earlier = [] if model is None else experience.read(Path(model), trees)
    trees.start_from(earlier)
    finder = make(search, space, trees, Options(trials=trials, seed=seed))
    key = _key(func, title, target, tuple(resident), seed)
    if search != "evolutionary":
        key = replace(key, objective=f"{key.objective}; search {search}")
    folder = Path(work_dir) if work_dir is not None else Path("runs") / title.replace(" ", "-")
    with Database(folder, write=True) as database, Display(enabled=progress) as display:
        _tell_others(database, key, display)
        if earlier:
            count = sum(len(run.seconds) for run in earlier)
            display.say(f"starts from {count} trials of {len(earlier)} earlier runs")
        result = tune_records(
            problem,
            finder,
            key,
            database,
            display,
            workers=workers,
            limits=limits,
            baseline=_baseline(sketches, target),
        )
    if not result.records:
        raise ScheduleError(f"no legal candidate: {_why_illegal(sketches, target)}")
    if model is not None:
        samples = samples_of(space, f"{title} {target.dpus} DPUs", _history(space, result.records))
        if samples is not None:
            experience.add(Path(model), trees, samples)
    by_name = {sketch.name: sketch for sketch in sketches}
    return Run(key, folder, result.records, result.winner, result.ended, result.facts, by_name)


def _history(space: Space, records: Sequence[Record]) -> list[Observation]:
    places = {sketch.name: n for n, sketch in enumerate(space.sketches)}
    return [
        Observation(Candidate(places[r.sketch], tuple(r.decisions.values())), r.objective_s)
        for r in records
    ]


def _program(program: Any, name: str) -> tuple[tirx.PrimFunc, str]:
    """The PrimFunc, and what to call it."""
    if isinstance(program, Workload):
        sizes = "x".join(map(str, program.shape))
        return program.func, name or f"{program.name} {sizes} {program.dtype}"
    if isinstance(program, tirx.PrimFunc):
        func = program
    elif isinstance(program, Sequence) and all(
        isinstance(t, te.Tensor | tirx.Var) for t in program
    ):
        func = te.create_prim_func(list(program))
    else:
        raise UsageError(f"tune: te tensors or a PrimFunc needed, {type(program).__name__} given")
    for parameter in func.params:
        if not tirx.is_buffer_var(parameter):
            raise UnsupportedError(
                f"parameter {parameter.name}: scalar, only tensors are supported"
            )
    output = func.params[-1]
    sizes = "x".join(str(n) for n in output.shape)
    return func, name or f"{output.name} {sizes} {output.dtype}"


def _key(
    func: tirx.PrimFunc, title: str, target: Target, resident: tuple[str, ...], seed: int
) -> RunKey:
    names = ",".join(p.name for p in func.params)
    program = hashlib.sha256(f"{tvm_ffi.structural_hash(func)} {names}".encode()).hexdigest()[:16]
    machine = (
        f"{target.name}, {target.dpus} DPUs, {target.tasklets} tasklets,"
        f" {target.stack_bytes} B stacks, transfers {target.transfer}"
    )
    objective = "h2d + kernel + d2h + host"
    if resident:
        objective += f", without h2d of {', '.join(sorted(resident))}"
    return RunKey(title, program, machine, objective, seed, software_version())


def _tell_others(database: Database, key: RunKey, display: Display) -> None:
    """Say that records for something else are in the folder, and left alone."""
    others = [run.key for run in database.runs() if run.key != key]
    same_but_version = [k for k in others if (k.program, k.target) == (key.program, key.target)]
    if same_but_version and all(k.version != key.version for k in same_but_version):
        display.say("records of another software version are in the folder: they are not used")
    elif others and not same_but_version:
        display.say("records of another program or target are in the folder: they are not used")


def _baseline(sketches: Sequence[Sketch], target: Target) -> Baseline | None:
    """The hand schedule, where the program has one that is legal on the target."""
    try:
        sketch, decisions = prim_of(sketches, target)
    except UnsupportedError:
        return None
    if explain(sketch, decisions, target) is not None:
        return None
    return Baseline("PrIM-style", Task(sketch.name, decisions))


def _why_illegal(sketches: Sequence[Sketch], target: Target) -> str:
    sketch = sketches[0]
    smallest = {decision.name: min(decision.values) for decision in sketch.decisions}
    return explain(sketch, smallest, target) or "none was found"
