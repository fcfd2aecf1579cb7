"""What is to be tuned, made ready: the program's space, its search, and the key of its records."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import te, tirx

from atim.errors import ScheduleError, UnsupportedError, UsageError
from atim.hardware import find_tools
from atim.schedules import Sketch
from atim.schedules.canonical import canonical
from atim.schedules.manual import prim_choices
from atim.schedules.normal import normal
from atim.schedules.verify import check, explain, nearest
from atim.target import Target
from atim.tuner.baselines import make
from atim.tuner.cost_model import CostModel, Samples
from atim.tuner.database import RunKey
from atim.tuner.features import FEATURES, VERSION, describe
from atim.tuner.loop import Baseline, Entry
from atim.tuner.measure import Problem
from atim.tuner.proposals import Candidate, Space
from atim.tuner.search import Observation, Options, Proposer, samples_of
from atim.tuner.trial import Task
from atim.tuner.version import software_version
from atim.workloads import Workload

__all__ = ["Plan", "key_of", "program_of"]


@dataclass(frozen=True)
class Plan:
    """One program and how it is searched."""

    entry: Entry
    problem: Problem
    sketches: tuple[Sketch, ...]
    search: Proposer
    model: CostModel
    first: tuple[Candidate, ...] = ()  # what the search begins with

    @staticmethod
    def of(
        program: Workload | tirx.PrimFunc | Sequence[te.Tensor],
        target: Target,
        options: Options,
        *,
        resident: Sequence[str] | None = None,
        name: str = "",
        search: str = "evolutionary",
    ) -> Plan:
        """Arguments as those of `tune`. Raises UsageError and UnsupportedError."""
        func, title = program_of(program, name)
        if resident is None:
            resident = program.resident if isinstance(program, Workload) else ()
        problem = Problem.of(func, target, tuple(resident))
        sketches = tuple(problem.sketches())
        space = Space(sketches, canonical, lambda s, m: check(s, m, target)[0], describe)
        model = CostModel([f.name for f in FEATURES], VERSION, options.seed)
        key = key_of(func, title, target, resident, options.seed, search)
        setting = {"target": dataclasses.asdict(target), "resident": list(resident)}
        entry = Entry(key, problem.program, setting)
        return Plan(entry, problem, sketches, make(search, space, model, options), model)

    @property
    def key(self) -> RunKey:
        return self.entry.key

    @property
    def target(self) -> Target:
        return self.problem.target

    def samples(self, history: Sequence[Observation]) -> Samples | None:
        """What the program's trials teach the models of others."""
        label = f"{self.key.workload} {self.target.dpus} DPUs"
        return samples_of(self.search.space, label, history)

    def baselines(self) -> tuple[Baseline, ...]:
        """The hand schedule on several numbers of DPUs, where the program has one and it is legal;
        the fastest counts."""
        try:
            choices = prim_choices(self.sketches, self.target)
        except UnsupportedError:
            return ()
        return tuple(
            Baseline(f"PrIM-style, {dpus} DPUs", Task(sketch.name, decisions))
            for dpus, sketch, decisions in choices
            if explain(sketch, decisions, self.target) is None
        )

    def nothing_legal(self) -> ScheduleError:
        """The error for a space without candidates: what the one that is nearest to the limits of
        memory lacks."""
        _, why = min(nearest(sketch, self.target) for sketch in self.sketches)
        return ScheduleError(f"{self.key.workload}: no legal candidate: {why}")


def program_of(program: Any, name: str = "") -> tuple[tirx.PrimFunc, str]:
    """The PrimFunc with 32-bit loops and axes everywhere, and what to call it."""
    if isinstance(program, Workload):
        sizes = "x".join(map(str, program.shape))
        return program.func, name or f"{program.name} {sizes} {program.dtype}"
    if isinstance(program, tirx.PrimFunc):
        func = program
    elif isinstance(program, Sequence) and all(
        isinstance(t, te.Tensor | tirx.Var) for t in program
    ):
        _check_tensors(program)
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
    return normal(func), name or " ".join(filter(None, (output.name, sizes, str(output.dtype))))


def _check_tensors(tensors: Sequence[Any]) -> None:
    """The mistakes that te.create_prim_func answers with a failed check of its own."""
    if not tensors:
        raise UsageError("tune: no te tensors given, inputs and the output last are needed")
    left, inputs, seen = list(tensors), [], set()
    while left:
        tensor = left.pop()
        if not isinstance(tensor, te.Tensor) or tensor.op in seen:
            continue
        seen.add(tensor.op)
        left.extend(tensor.op.input_tensors)
        inputs += [tensor] if isinstance(tensor.op, te.PlaceholderOp) else []
    twice = [t.op.name for n, t in enumerate(tensors) if any(t.same_as(x) for x in tensors[:n])]
    if twice and not isinstance(tensors[-1].op, te.PlaceholderOp):
        raise UsageError(f"tune: {twice[0]} is given twice, each tensor is needed once")
    given = {t.op for t in tensors if isinstance(t, te.Tensor)}
    missing = sorted(t.op.name for t in inputs if t.op not in given)
    if missing:
        raise UsageError(f"tune: {', '.join(missing)} is used, but not among the tensors given")
    if isinstance(tensors[-1], te.Tensor) and isinstance(tensors[-1].op, te.PlaceholderOp):
        raise UsageError(
            f"tune: the last tensor, {tensors[-1].op.name}, is no result of the others"
        )


def key_of(
    func: tirx.PrimFunc,
    title: str,
    target: Target,
    resident: Sequence[str],
    seed: int,
    search: str = "evolutionary",
) -> RunKey:
    """What records of a run are valid for."""
    names = ",".join(p.name for p in func.params)
    program = hashlib.sha256(f"{tvm_ffi.structural_hash(func)} {names}".encode()).hexdigest()[:16]
    machine = (
        f"{target.label}, {target.dpus} DPUs, {target.tasklets} tasklets,"
        f" {target.stack_bytes} B stacks, transfers {target.transfer}"
    )
    if target.hardware:
        kind = "simulated DPUs, through the exported program" if find_tools().simulated else "DIMMs"
        machine += f", measured on {kind}"
    objective = "h2d + kernel + d2h + host"
    if resident:
        objective += f", without h2d of {', '.join(sorted(resident))}"
    if search != "evolutionary":
        objective += f"; search {search}"
    return RunKey(title, program, machine, objective, seed, software_version())
