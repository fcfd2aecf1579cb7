"""A program of several stages, tuned: its search, what it gives back, and how it is found again.

Every stage of the DPUs has records of its own in the run's folder, beside those of the program,
whose facts say which they are. The stages share the trials as several programs do (scheduler.py).
Each stage is measured on what the stages before it really give; the host's stages are compared with
NumPy before the first trial. The program's time is that of all stages as one chain (linked.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx

from atim.errors import AtimError, ScheduleError, UnsupportedError
from atim.schedules.stages import Stage
from atim.target import Target
from atim.tuner import experience
from atim.tuner.agreement import agreeing
from atim.tuner.compare import check_outputs
from atim.tuner.database import Database, Record, RunKey
from atim.tuner.display import PHASES, Display, breakdown
from atim.tuner.linked import Linked, StagedBest, first_that_fits
from atim.tuner.loop import Entry, Result
from atim.tuner.measure import sample_inputs, staged_arrays
from atim.tuner.plan import Plan, key_of
from atim.tuner.result import Best, Run, history_of, run_of
from atim.tuner.scheduler import Shared, tune_plans
from atim.tuner.search import Options
from atim.tuner.setup import tell_earlier, tell_others
from atim.tuner.staged import HostStep, residents_of

__all__ = [
    "PART_OF",
    "Opened",
    "StagedPlan",
    "StagedRun",
    "chosen",
    "close_staged",
    "open_staged",
    "tune_staged",
]

# of a stage's trials: one of so many, and not more than these, are spent on tiles that agree
AGREEING_SHARE, MOST_AGREEING = 4, 8

PART_OF = "part_of"  # in a stage's setting: the key of the program's run


@dataclass(frozen=True)
class StagedPlan:
    """A program of stages made ready: for each a plan of its search, or the host's code."""

    entry: Entry
    func: tirx.PrimFunc
    stages: tuple[Stage, ...]
    target: Target
    resident: tuple[str, ...]
    parts: tuple[Plan | HostStep, ...]

    @staticmethod
    def of(
        func: tirx.PrimFunc,
        title: str,
        stages: Sequence[Stage],
        target: Target,
        options: Options,
        resident: Sequence[str],
        search: str,
    ) -> StagedPlan:
        """Raises UsageError (resident), UnsupportedError (a host's stage that has no C form, or
        that NumPy can't check), MismatchError (one that is wrong)."""
        once, there = residents_of(func, stages, resident)
        key = key_of(func, title, target, resident, options.seed, search)
        setting = {"target": dataclasses.asdict(target), "resident": list(resident)}
        entry = Entry(key, tvm.ir.save_json(func), setting)
        kernels = sum(stage.reason is None for stage in stages)
        options = replace(options, trials=max(1, options.trials // kernels))
        origin = [tvm.ir.save_json(func)]
        parts: list[Plan | HostStep] = []
        for number, stage in enumerate(stages, 1):
            if stage.reason is not None:
                parts.append(HostStep.of(stage, target, number - 1 in once))
            else:
                mine = [name for name in there if name in stage.inputs]
                name = f"{title}, stage {number} ({stage.outputs[-1]})"
                plan = Plan.of(stage.func, target, options, resident=mine, name=name, search=search)
                parts.append(_as_part(plan, key, tuple(origin)))
            origin.append(tvm.ir.save_json(stage.func))
        if search == "evolutionary":
            parts = _agreeing(stages, parts, there, options.trials)
        whole = StagedPlan(entry, func, tuple(stages), target, tuple(resident), tuple(parts))
        whole._check_hosts()
        return whole

    @property
    def kernels(self) -> list[Plan]:
        return [part for part in self.parts if isinstance(part, Plan)]

    def _check_hosts(self) -> None:
        """Compare the host's stages with NumPy, on the inputs that tuning uses."""
        places = [n for n, part in enumerate(self.parts) if isinstance(part, HostStep)]
        if not places:
            return
        upto = self.stages[: places[-1] + 1]
        try:
            arrays = staged_arrays(sample_inputs(self.func), [stage.func for stage in upto])
        except IndexError as error:
            raise UnsupportedError(f"no inputs to measure it with: {error}") from error
        for part in self.parts:
            if isinstance(part, HostStep):
                outputs, _ = part.run(arrays, threads=1)
                check_outputs(part.stage.func, arrays, outputs)


def _agreeing(
    stages: Sequence[Stage],
    parts: Sequence[Plan | HostStep],
    resident: Sequence[str],
    trials: int,
) -> list[Plan | HostStep]:
    """The parts, whose searches begin with schedules that agree: a share of each one's trials."""
    plans = [part for part in parts if isinstance(part, Plan)]
    count = min(MOST_AGREEING, trials // AGREEING_SHARE)
    found = iter(agreeing(stages, plans, resident, count) if count and len(plans) > 1 else [])
    return [
        part if isinstance(part, HostStep) else replace(part, first=next(found, ()))
        for part in parts
    ]


def _as_part(plan: Plan, whole: RunKey, origin: tuple[str, ...]) -> Plan:
    """The plan of a stage: measured on what the stages before it give, recorded as such."""
    program = hashlib.sha256(f"{plan.key.program} {whole.program}".encode()).hexdigest()[:16]
    key = replace(plan.key, program=program)
    setting = {**plan.entry.setting, PART_OF: whole.text()}
    problem = replace(plan.problem, origin=origin)
    return replace(plan, entry=Entry(key, plan.entry.program, setting), problem=problem)


@dataclass(frozen=True, repr=False)
class StagedRun:
    """A finished run of a program of several stages. `parts`: a Run for each stage of the DPUs, the
    host's code for the others. `linked`: the stages together, or why they can't be."""

    plan: StagedPlan
    folder: Path
    parts: tuple[Run | HostStep, ...]
    linked: Linked | str

    def __repr__(self) -> str:
        return self.report()

    @property
    def key(self) -> RunKey:
        return self.plan.entry.key

    @property
    def runs(self) -> tuple[Run, ...]:
        """Of the stages of the DPUs, in order."""
        return tuple(part for part in self.parts if isinstance(part, Run))

    @property
    def records(self) -> tuple[Record, ...]:
        """Of all stages, one stage after the other."""
        return tuple(record for run in self.runs for record in run.records)

    @property
    def ended(self) -> str:
        """Why the search ended."""
        return "; ".join(dict.fromkeys(run.ended for run in self.runs))

    @property
    def best(self) -> StagedBest:
        """The fastest schedules that fit together, verified on all DPUs. AtimError when a stage has
        no valid one, or none fit."""
        best = _winners(self.plan, self.parts)
        if isinstance(self.linked, str):
            raise AtimError(self.linked)
        return chosen(best, [run.records for run in self.runs], self.linked)

    def summary(self) -> dict[str, Any]:
        """The end of a run in plain values, as JSON lines have it."""
        found = isinstance(self.linked, Linked)
        timing = dataclasses.astuple(self.best.timing) if found else None
        return {
            "program": self.key.workload,
            "target": self.key.target,
            "version": self.key.version,
            "trials": len(self.records),
            "failed": sum(record.status == "failed" for record in self.records),
            "ended": self.ended,
            "folder": str(self.folder),
            "total_s": None if timing is None else sum(timing),
            "timing_s": None if timing is None else dict(zip(PHASES, timing, strict=True)),
            "stages": [
                part.summary() if isinstance(part, Run) else _host_summary(part)
                for part in self.parts
            ],
        }

    def report(self) -> str:
        """A few lines: the whole, then each stage with its best and its decisions."""
        lines = [f"{self.key.workload} on {self.key.target}"]
        if isinstance(self.linked, Linked):
            lines.append(f"best: {breakdown(dataclasses.astuple(self.best.timing))}")
        else:
            lines.append(f"best: none, {self.linked}")
        for number, part in enumerate(self.parts, 1):
            if isinstance(part, HostStep):
                spent = breakdown(dataclasses.astuple(part.timing))
                timing = "once, with the residents, not counted" if part.once else spent
                lines += [f"stage {number}, {part.stage.outputs[-1]}, on the host: {timing}"]
                lines += [f"  {part.stage.reason}"]
                continue
            rest = part.report().splitlines()[1:]
            lines.append(f"stage {number}, {self.plan.stages[number - 1].outputs[-1]}:")
            lines += [f"  {line}" for line in rest if not line.startswith("ended: ")]
        lines.append(f"ended: {self.ended}; records in {self.folder}")
        return "\n".join(lines)


def _winners(plan: StagedPlan, parts: Sequence[Run | HostStep]) -> StagedBest:
    """The best of each stage alone. AtimError when one has none."""
    best = tuple(part.best if isinstance(part, Run) else part for part in parts)
    title = plan.entry.key.workload
    return StagedBest(title, plan.func, plan.stages, plan.target, plan.resident, best)


def chosen(best: StagedBest, records: Sequence[Sequence[Record]], linked: Linked) -> StagedBest:
    """The schedules that were linked; `records`: of each stage of the DPUs."""
    left = iter(records)
    parts: list[Best | HostStep] = []
    for part, number in zip(best.parts, linked.records, strict=True):
        if isinstance(part, Best):
            record = next(r for r in next(left) if r.number == number)
            parts.append(part.instead(record))
        else:
            parts.append(part)
    return replace(best, parts=tuple(parts), timings=linked.timings)


def _link(plan: StagedPlan, parts: Sequence[Run | HostStep], earlier: Any) -> Linked | str:
    """The stages together, or why not. `earlier`: what an earlier call noted, with its winners."""
    runs = [part for part in parts if isinstance(part, Run)]
    winners = [run.winner.number if run.winner else None for run in runs]
    if None in winners:
        return "a stage has no valid candidate"
    if earlier and earlier.get("winners") == winners and "records" in earlier:
        return Linked.of(earlier)
    valid = [[r for r in run.records if r.timing is not None] for run in runs]
    try:
        return first_that_fits(_winners(plan, parts), valid)
    except ScheduleError as error:
        return str(error)


def _host_summary(step: HostStep) -> dict[str, Any]:
    return {
        "program": step.stage.name,
        "host": step.stage.reason,
        "once": step.once,
        "total_s": step.timing.total,
        "timing_s": dict(zip(PHASES, dataclasses.astuple(step.timing), strict=True)),
    }


@dataclass(frozen=True, slots=True)
class Opened:
    """A program of stages whose run has begun: its number in the database, what is noted of its
    stages, and what an earlier call noted of its chain."""

    plan: StagedPlan
    number: int
    facts: Mapping[str, Any]
    before: Any


def open_staged(plan: StagedPlan, trials: int, database: Database, display: Display) -> Opened:
    """Begin the program's own run, beside those of its stages."""
    entry = plan.entry
    number = database.start(entry.key, trials, entry.program, entry.setting)
    before = next(r for r in database.runs() if r.id == number).facts.get("linked")
    facts = {"stages": [_fact(p) for p in plan.parts]}
    database.note(number, facts | ({"linked": before} if before else {}))
    _tell_stages(plan, display)
    return Opened(plan, number, facts, before)


def close_staged(
    opened: Opened, folder: Path, results: Sequence[Result], database: Database
) -> StagedRun:
    """Link what was found; `results`: of the searches of the stages of the DPUs, in order."""
    plan = opened.plan
    found = zip(plan.kernels, results, strict=True)
    runs = iter([run_of(kernel, folder, result) for kernel, result in found])
    parts = tuple(p if isinstance(p, HostStep) else next(runs) for p in plan.parts)
    linked = _link(plan, parts, opened.before)
    run = StagedRun(plan, folder, parts, linked)
    if isinstance(linked, Linked):
        winners = [r.winner.number for r in run.runs if r.winner]
        fact = {**linked.fact(), "winners": winners}
        database.note(opened.number, {**opened.facts, "linked": fact})
    database.end(opened.number, run.ended, None)
    return run


def tune_staged(
    plan: StagedPlan, shared: Shared, folder: Path, mode: str, model: str | Path | None
) -> StagedRun:
    """Search all stages, going on from what the folder holds. Errors as `tune`."""
    kernels = plan.kernels
    earlier = [] if model is None else experience.read(Path(model), kernels[0].model)
    shared = replace(shared, earlier=tuple(earlier))
    if shared.trials < len(kernels):
        shared = replace(shared, trials=len(kernels))
    weights = {kernel.key.workload: 1.0 for kernel in kernels}
    with Database(folder, write=True) as database, Display(mode, weights, "stages") as display:
        tell_others(database, [plan.entry.key, *(kernel.key for kernel in kernels)], display)
        tell_earlier(earlier, display)
        opened = open_staged(plan, shared.trials, database, display)
        results = tune_plans(kernels, list(weights.values()), shared, database, display)
        run = close_staged(opened, folder, results, database)
        display.end(**run.summary())
    if model is not None:
        for kernel, result in zip(kernels, results, strict=True):
            samples = kernel.samples(history_of(kernel, result))
            if samples is not None:
                experience.add(Path(model), kernel.model, samples)
    return run


def _tell_stages(plan: StagedPlan, display: Display) -> None:
    for number, (stage, part) in enumerate(zip(plan.stages, plan.parts, strict=True), 1):
        where = f"host: {stage.reason}" if isinstance(part, HostStep) else "DPUs"
        display.say(f"stage {number}, {stage.outputs[-1]}: {where}")


def _fact(part: Plan | HostStep) -> Mapping[str, Any]:
    """What the program's run keeps of a stage."""
    if isinstance(part, Plan):
        return {"name": part.key.workload, "key": part.key.text()}
    return {
        "name": part.stage.name,
        "reason": part.stage.reason,
        "timing": list(dataclasses.astuple(part.timing)),
        "once": part.once,
    }
