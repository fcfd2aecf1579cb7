"""`tune`: a tensor program, a target and a folder in; a `Run` out.

Puts the pieces of this package together and checks what the caller asks for; the loop itself is in
`loop`, the search in `search`, several programs at once in `tasks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tvm import te, tirx

from atim import toolchain
from atim.errors import UsageError
from atim.target import Target
from atim.tuner import experience
from atim.tuner.cost_model import Samples
from atim.tuner.database import Database, RunKey
from atim.tuner.display import MODES, Display
from atim.tuner.loop import Limits, Result, tune_records
from atim.tuner.plan import Plan
from atim.tuner.proposals import Candidate
from atim.tuner.remote import KEY, Fleet
from atim.tuner.result import Run
from atim.tuner.search import Observation, Options
from atim.workloads import Workload

__all__ = [
    "REMOTE_WORKERS",
    "check_arguments",
    "display_mode",
    "fleet_of",
    "tell_others",
    "tune",
]

MOST_TRIALS = 1_000_000
MOST_WORKERS = 256
REMOTE_WORKERS = 64  # workers of a tracker that are used at most, unless asked otherwise


def tune(
    program: Workload | tirx.PrimFunc | Sequence[te.Tensor],
    target: Target,
    *,
    trials: int = 64,
    resident: Sequence[str] | None = None,
    work_dir: str | Path | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | str = True,
    name: str = "",
    limits: Limits | None = None,
    search: str = "evolutionary",
    model: str | Path | None = None,
    tracker: str | None = None,
    key: str = KEY,
) -> Run:
    """Find a fast schedule of a program for a target.

    program: a named workload, a PrimFunc, or te tensors (inputs first, output last). resident:
    inputs that lie on the DPUs before the call, whose transfer is not counted (None: the workload's
    usual ones, or none). work_dir: where records are kept and found again, by default runs/NAME.
    The same arguments give the same records whatever `workers` (builder processes, 2 by default)
    is; a call that was interrupted goes on where it was. name: what reports call the program.
    progress: False, or one of `display.MODES`.
    search: one of `baselines.SEARCHES`. model: a file, or a folder of them, with what earlier runs
    measured, of any program; the search starts from it, and this run is added to it at the end.
    tracker: "HOST:PORT" of an `atim tracker`: trials are measured by the workers that offer
    themselves there under `key` (`atim worker`), `workers` of them at most.

    Raises UsageError (wrong arguments), UnsupportedError (can't be placed on DPUs), ScheduleError
    (no legal candidate), ToolchainError (no compiler), RecordError (folder, model file).
    """
    check_arguments(target, trials, workers, seed)
    mode, fleet = display_mode(progress), fleet_of(tracker, key)
    options = Options(trials=trials, seed=seed)
    plan = Plan.of(program, target, options, resident=resident, name=name, search=search)
    earlier = [] if model is None else experience.read(Path(model), plan.model)
    plan.model.start_from(earlier)
    folder = Path(work_dir or Path("runs") / plan.key.workload.replace(" ", "-"))
    with Database(folder, write=True) as database, Display(mode) as display:
        tell_others(database, [plan.key], display)
        _tell_earlier(earlier, display)
        result = tune_records(
            plan.problem,
            plan.search,
            plan.entry,
            database,
            display,
            workers=min(trials, workers or (REMOTE_WORKERS if fleet else 2)),
            limits=limits,
            baselines=plan.baselines(),
            fleet=fleet,
        )
        run = run_of(plan, folder, result)
        display.end(**run.summary())
    samples = None if model is None else plan.samples(_history(plan, result))
    if model is not None and samples is not None:
        experience.add(Path(model), plan.model, samples)
    return run


def _tell_earlier(earlier: Sequence[Samples], display: Display) -> None:
    if earlier:
        count = sum(len(run.seconds) for run in earlier)
        display.say(f"starts from {count} trials of {len(earlier)} earlier runs")


def run_of(plan: Plan, folder: Path, result: Result) -> Run:
    """What the caller gets. Raises ScheduleError when there was no candidate at all."""
    if not result.records:
        raise plan.nothing_legal()
    by_name = {sketch.name: sketch for sketch in plan.sketches}
    return Run(plan.key, folder, result.records, result.winner, result.ended, result.facts, by_name)


def _history(plan: Plan, result: Result) -> list[Observation]:
    places = {sketch.name: n for n, sketch in enumerate(plan.sketches)}
    return [
        Observation(Candidate(places[r.sketch], tuple(r.decisions.values())), r.objective_s)
        for r in result.records
    ]


def check_arguments(target: object, trials: int, workers: int | None, seed: int) -> None:
    """UsageError for a target that is none, such as its name alone, and for wrong numbers."""
    if not isinstance(target, Target):
        raise UsageError(f"target: {target!r} is no Target; make one: Target('upmem-v1a')")
    some = 1 if workers is None else workers
    for what, value, low, high in (
        ("trials", trials, 1, MOST_TRIALS),
        ("workers", some, 1, MOST_WORKERS),
        ("seed", seed, 0, None),
    ):
        if not isinstance(value, int):
            raise UsageError(f"{what}: {value!r} is no integer")
        if value < low:
            raise UsageError(f"{what}: {value} requested, at least {low} needed")
        if high is not None and value > high:
            raise UsageError(f"{what}: {value} requested, limit {high}")


def display_mode(progress: bool | str) -> str:
    """One of `display.MODES`; True is text, False is quiet."""
    if isinstance(progress, bool):
        return "text" if progress else "quiet"
    if progress not in MODES:
        raise UsageError(f"progress: {progress!r} unknown, known: {', '.join(MODES)}")
    return progress


def fleet_of(tracker: str | None, key: str) -> Fleet | None:
    """The workers of a tracker that answers; without one, this machine needs a C compiler."""
    if tracker is None:
        toolchain.find_compiler()
        return None
    fleet = Fleet.at(tracker, key)
    fleet.check()
    return fleet


def tell_others(database: Database, keys: Sequence[RunKey], display: Display) -> None:
    """Say that records for something else are in the folder, and left alone."""
    others = [run.key for run in database.runs() if run.key not in keys]
    wanted = {(key.program, key.target): key.version for key in keys}
    ours = [k for k in others if (k.program, k.target) in wanted]
    if ours and all(k.version != wanted[k.program, k.target] for k in ours):
        display.say("records of another software version are in the folder: they are not used")
    elif others and not ours:
        display.say("records of another program or target are in the folder: they are not used")
