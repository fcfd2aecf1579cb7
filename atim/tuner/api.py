"""`tune`: a tensor program, a target and a folder in; a `Run` out.

Puts the pieces of this package together and checks what the caller asks for; the loop itself is in
`loop`, the search in `search`, several programs at once in `tasks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tvm import te, tirx

from atim.schedules.stages import stages_of
from atim.target import Target
from atim.tuner import experience
from atim.tuner.arguments import check_arguments
from atim.tuner.database import Database
from atim.tuner.display import Display
from atim.tuner.loop import Limits, tune_records
from atim.tuner.plan import Plan, program_of
from atim.tuner.remote import KEY
from atim.tuner.result import Run, history_of, run_of
from atim.tuner.scheduler import Shared
from atim.tuner.search import Options
from atim.tuner.setup import (
    REMOTE_WORKERS,
    display_mode,
    fleet_of,
    tell_earlier,
    tell_others,
)
from atim.tuner.staged_run import StagedPlan, StagedRun, tune_staged
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
    workers: int | None = None,
    progress: bool | str = True,
    name: str = "",
    limits: Limits | None = None,
    search: str = "evolutionary",
    model: str | Path | None = None,
    tracker: str | None = None,
    key: str = KEY,
) -> Run | StagedRun:
    """Find a fast schedule of a program for a target.

    A program that one kernel holds gives a Run. Softmax, normalisations, places of maxima and other
    programs of several stages give a StagedRun: each stage of the DPUs is searched, the trials go
    where they help most, and what DPUs can't do is the host's, with the reason in the report.

    program: a named workload, a PrimFunc, or te tensors (inputs first, output last). resident:
    inputs that lie on the DPUs before the call, whose transfer is not counted (None: the workload's
    usual ones, or none). work_dir: where records are kept and found again, by default runs/NAME.
    The same arguments give the same records whatever `workers` (builder processes, 2 by default)
    is; a call that was interrupted goes on where it was. name: what reports call the program.
    progress: False, or one of `display.MODES`.
    search: one of `arguments.SEARCHES`. model: a file, or a folder of them, with what earlier runs
    measured, of any program; the search starts from it, and this run is added to it at the end.
    tracker: "HOST:PORT" of an `atim tracker`: trials are measured by the workers that offer
    themselves there under `key` (`atim worker`), `workers` of them at most.

    Raises UsageError (wrong arguments), UnsupportedError (can't be placed on DPUs), ScheduleError
    (no legal candidate), ToolchainError (no compiler), RecordError (folder, model file).
    """
    check_arguments(target, trials, workers, seed)
    mode, fleet = display_mode(progress), fleet_of(tracker, key)
    options = Options(trials=trials, seed=seed)
    func, title = program_of(program, name)
    if resident is None:
        resident = program.resident if isinstance(program, Workload) else ()
    folder = Path(work_dir or Path("runs") / title.replace(" ", "-"))
    stages = stages_of(func)
    shared = Shared(trials, workers, limits, fleet)
    if len(stages) > 1:
        whole = StagedPlan.of(func, title, stages, target, options, resident, search)
        return tune_staged(whole, shared, folder, mode, model)
    plan = Plan.of(stages[0].func, target, options, resident=resident, name=title, search=search)
    return _tune_kernel(plan, shared, folder, mode, model)


def _tune_kernel(
    plan: Plan, shared: Shared, folder: Path, mode: str, model: str | Path | None
) -> Run:
    """Search a program of one kernel, going on from what the folder holds."""
    earlier = [] if model is None else experience.read(Path(model), plan.model)
    plan.model.start_from(earlier)
    workers = shared.workers or (REMOTE_WORKERS if shared.fleet else 2)
    with Database(folder, write=True) as database, Display(mode) as display:
        tell_others(database, [plan.key], display)
        tell_earlier(earlier, display)
        result = tune_records(
            plan.problem,
            plan.search,
            plan.entry,
            database,
            display,
            workers=min(shared.trials, workers),
            limits=shared.limits,
            baselines=plan.baselines(),
            fleet=shared.fleet,
        )
        run = run_of(plan, folder, result)
        display.end(**run.summary())
    samples = None if model is None else plan.samples(history_of(plan, result))
    if model is not None and samples is not None:
        experience.add(Path(model), plan.model, samples)
    return run
