"""Programs of several stages (softmax, normalisations, chains of layers), built.

Each stage is a kernel of its own with its own schedule, or work of the host (schedules/stages.py
says why). They run as a chain (atim/chain.py): one allocation of DPUs, one program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import te, tirx

from atim import pipeline
from atim.chain import Chain, Step, link, on_host
from atim.codegen import Sources
from atim.codegen.chain_plan import made_once
from atim.codegen.host_stage import HostStage, host_stage
from atim.errors import ScheduleError, UnsupportedError, UsageError
from atim.outcome import Timing
from atim.schedules import Sketch, design_space
from atim.schedules.manual import prim_of
from atim.schedules.normal import normal, shaped
from atim.schedules.stages import Stage, stages_of
from atim.schedules.terms import terms_of
from atim.schedules.verify import check, explain, nearest
from atim.target import Target
from atim.tuner.measure import staged_data
from atim.tuner.result import array_of
from upmem_sim import TransferModel

__all__ = [
    "Choice",
    "HostStep",
    "KernelStep",
    "Staged",
    "build_stages",
    "ends_of",
    "residents_of",
]

Array = NDArray[Any]
Choice = Callable[[Stage, list[Sketch]], tuple[Sketch, Mapping[str, int]]]

# threads of the stages that the host does
HOST_THREADS = 16
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A stage that DPUs do, as C."""

    stage: Stage
    code: Sources


@dataclass(frozen=True, slots=True)
class HostStep:
    """A stage that the host does. Its time is modelled as one pass over the elements, like the
    addition of partial results; none for one that is done once, when residents are loaded."""

    stage: Stage
    code: HostStage
    target: Target
    timing: Timing
    once: bool = False

    @staticmethod
    def of(stage: Stage, target: Target, once: bool) -> HostStep:
        """Raises `UnsupportedError` for what has no C form, with the block's name."""
        try:
            code = host_stage(stage.func, HOST_THREADS)
        except UnsupportedError as error:
            raise UnsupportedError(f"block {stage.name}: {error}") from error
        widest = max(np.dtype(tensor.dtype).itemsize for tensor in code.tensors)
        model = TransferModel.preset(target.transfer)
        seconds = float(model.host_reduce(code.elements, widest, code.threads))
        return HostStep(stage, code, target, Timing(0.0, 0.0, 0.0, seconds * (not once)), once)

    def run(self, tensors: Mapping[str, Array], threads: int) -> tuple[dict[str, Array], Timing]:
        """The stage's outputs and its time. UsageError for arrays of other shapes or types."""
        needed = {name: tensors[name] for name in self.stage.inputs}
        return on_host(self.code, needed, self.target, threads)


@dataclass(frozen=True)
class Staged:
    """A program of stages: call it with its inputs in order, or by name. All stages are one program
    over one allocation, and tensors between them stay in MRAM where their tiles agree."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[KernelStep | HostStep, ...]
    target: Target
    resident: tuple[str, ...]
    func: tirx.PrimFunc
    title: str = ""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What each step does, with the names of what it reads and writes."""
        return tuple(step.stage for step in self.steps)

    def __call__(self, *inputs: Any, threads: int = 2, **named: Any) -> tuple[Any, Timing]:
        """Run on NumPy arrays or DLPack tensors; all DPUs run. Returns the output (a tuple if there
        are several) and the Timing of all stages together. UsageError for wrong arrays, errors of
        `chain`."""
        if len(inputs) + len(named) != len(self.inputs) or set(self.inputs[: len(inputs)]) & set(
            named
        ):
            names = ", ".join(self.inputs)
            raise UsageError(f"{len(inputs) + len(named)} inputs given, needs {names}")
        given = {**dict(zip(self.inputs, inputs, strict=False)), **named}
        for name in self.inputs:
            if name not in given:
                raise UsageError(f"input {name} is missing, needs {', '.join(self.inputs)}")
        tensors = {n: shaped(self.func, n, array_of(value)) for n, value in given.items()}
        read = {name: tensors[name] for name in self.chain.inputs}
        results, timing = self.chain(read, threads)
        found = zip(self.outputs, results, strict=True)
        outputs = tuple(shaped(self.func, name, a, back=True) for name, a in found)
        return outputs[0] if len(outputs) == 1 else outputs, timing

    @cached_property
    def chain(self) -> Chain:
        """The linked stages. ScheduleError when together they exceed a DPU's memories."""
        steps = [Step(s.stage.outputs[-1], s.code) for s in self.steps]
        return link(steps, self.target, outputs=self.outputs, resident=self.resident)

    def export(self, folder: str | Path, *, data: bool = True) -> list[Path]:
        """Write the linked stages as C, as `Built.export` does. Errors as those of `chain`;
        RecordError when something can't be written."""
        arrays = staged_data(self.func, [s.stage.func for s in self.steps], self.outputs)
        name = self.title.split()[0] or self.outputs[-1]
        return self.chain.export(folder, name=name, data=arrays if data else None)


def build_stages(
    program: tirx.PrimFunc | Sequence[te.Tensor],
    target: Target,
    *,
    resident: Sequence[str] = (),
    choose: Choice | None = None,
) -> Staged:
    """Compile every stage. `choose` picks a stage's schedule among its sketches; by default the
    hand schedule in the style of PrIM.

    Raises `UnsupportedError` where nothing can be placed on DPUs, `ScheduleError` where a stage has
    no legal schedule, `UsageError` for unknown resident names.
    """
    func = program if isinstance(program, tirx.PrimFunc) else te.create_prim_func(list(program))
    func = normal(func)
    stages = stages_of(func)
    inputs, outputs = ends_of(func, stages, resident)
    once, there = residents_of(func, stages, resident)
    steps: list[KernelStep | HostStep] = []
    for number, stage in enumerate(stages):
        if stage.reason is not None:
            steps.append(HostStep.of(stage, target, number in once))
            continue
        mine = tuple(name for name in there if name in stage.inputs)
        sketches = design_space(stage.func, target, mine)
        sketch, decisions = (choose or _hand)(stage, sketches)
        why = explain(sketch, decisions, target)
        if why is not None:
            raise ScheduleError(f"stage {stage.name}: {why}")
        steps.append(KernelStep(stage, pipeline.compile(sketch, decisions, target)))
    return Staged(inputs, outputs, tuple(steps), target, tuple(resident), func)


def _hand(stage: Stage, sketches: list[Sketch]) -> tuple[Sketch, Mapping[str, int]]:
    """PrIM's style; where that is illegal, of some random legal schedules the one that should have
    the shortest kernel."""
    sketch, decisions = prim_of(sketches, sketches[0].target)
    if explain(sketch, decisions, sketch.target) is None:
        return sketch, decisions
    rng = np.random.default_rng(0)
    found: list[tuple[float, Sketch, Mapping[str, int]]] = []
    for sketch in sketches:
        matrix = np.stack([rng.choice(d.values, DRAWS) for d in sketch.decisions], axis=1)
        matrix = matrix[check(sketch, matrix, sketch.target)[0]]
        if len(matrix):
            cycles = terms_of(sketch, matrix)["kernel_cycles"]
            least = int(np.argmin(cycles))
            values = map(int, matrix[least])
            found.append((cycles[least], sketch, dict(zip(sketch.names, values, strict=True))))
    if not found:
        _, why = min(nearest(sketch, sketch.target) for sketch in sketches)
        raise ScheduleError(f"stage {stage.name}: nothing legal in {DRAWS} draws: {why}")
    _, fastest, chosen = min(found, key=lambda entry: entry[0])
    return fastest, chosen


def ends_of(
    func: tirx.PrimFunc, stages: Sequence[Stage], resident: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the program's inputs and outputs. UsageError for resident names that are none."""
    written = {name for stage in stages for name in stage.outputs}
    params = [str(p.name) for p in func.params]
    inputs = tuple(name for name in params if name not in written)
    for name in resident:
        if name not in inputs:
            raise UsageError(f"resident: {name!r} unknown, inputs: {', '.join(inputs)}")
    missing = [n for stage in stages for n in stage.inputs if n not in (*inputs, *written)]
    if missing:
        raise UnsupportedError(f"tensor {missing[0]}: read before anything is written to it")
    return inputs, tuple(name for name in params if name in written)


def residents_of(
    func: tirx.PrimFunc, stages: Sequence[Stage], resident: Sequence[str]
) -> tuple[set[int], tuple[str, ...]]:
    """(Numbers of the host's stages that are done once, when residents are loaded; what is resident
    then: the given ones, and what these stages make of them.) UsageError as `ends_of`."""
    _, outputs = ends_of(func, stages, resident)
    host = [None if stage.reason is None else (stage.inputs, stage.outputs) for stage in stages]
    return made_once(host, resident, outputs)
