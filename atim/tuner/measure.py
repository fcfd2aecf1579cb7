"""What a builder does with a candidate: compile, build, run, compare with NumPy.

In: a `Problem` (once) and tasks. Out: a `Measurement` a task. Every simulated DPU's results are
compared with `evaluate` over its own part of the iteration space, exactly for integers; whatever
goes wrong is a measurement too, with a reason out of `trial.REASONS`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import tirx

from atim import pipeline, runtime, toolchain
from atim.codegen import Sources
from atim.errors import (
    AtimError,
    HardwareError,
    MismatchError,
    ScheduleError,
    ToolchainError,
    UnsupportedError,
)
from atim.evaluate import evaluate, written
from atim.export import Data
from atim.schedules import Sketch, design_space
from atim.schedules.loads import loads_of
from atim.schedules.rules import apply
from atim.schedules.terms import terms_of
from atim.target import Target
from atim.tuner import trace
from atim.tuner.compare import check_outputs, check_piece, terms_summed, tolerance_of
from atim.tuner.trial import Measurement, Task
from atim.tuner.version import software_version
from atim.workloads import random_array
from upmem_sim import SimError, SimFault

__all__ = [
    "Problem",
    "Problems",
    "check_data",
    "digest_of",
    "run_task",
    "sample_inputs",
    "staged_arrays",
    "staged_data",
]

Array = NDArray[Any]

# A kernel is stopped when it takes this many times its estimate, so that hangs end the same way
# on every machine; the floor is 0.1 s of a DPU.
CYCLES_FACTOR = 20
CYCLES_FLOOR = 35_000_000
# The numbers that kernels are run on do not depend on the search's seed.
DATA_SEED = 0
# What a machine without room says; compilers pass it on in words only.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
NO_ROOM_WORDS = ("No space left", "NoSpaceLeft", "Disk quota exceeded", "DiskQuota")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is tuned, as a picklable job for builders. `program` is a PrimFunc as TVM's JSON.

    version: the software that the tuner runs, which must be the builder's too. origin: of a stage,
    the program it is part of and the stages before it, from which its inputs are computed.
    given: inputs by name with the values they have, instead of random ones.
    choose_groups: whether ranks may compute while others transfer, where it pays.
    """

    program: str
    target: Target
    resident: tuple[str, ...] = ()
    version: str = ""
    origin: tuple[str, ...] = ()
    given: tuple[tuple[str, tuple[int, ...]], ...] = ()
    choose_groups: bool = True

    @staticmethod
    def of(func: tirx.PrimFunc, target: Target, resident: tuple[str, ...] = ()) -> Problem:
        return Problem(tvm.ir.save_json(func), target, resident, software_version())

    def func(self) -> tirx.PrimFunc:
        return tvm.ir.load_json(self.program)

    def sketches(self) -> list[Sketch]:
        return design_space(self.func(), self.target, self.resident)

    def inputs(self) -> dict[str, Array]:
        """Inputs by name: those given, else integers 0 to 49, floats in [0, 1), always the same;
        of a stage, what the stages before it make of such inputs."""
        func = self.func()
        if not self.origin:
            arrays = sample_inputs(func)
            return arrays | {n: np.array(v, arrays[n].dtype) for n, v in self.given}
        whole, *before = (tvm.ir.load_json(text) for text in self.origin)
        arrays = staged_arrays(sample_inputs(whole), before)
        return {p.name: arrays[p.name] for p in input_tensors(func)}

    def prepare(self) -> Any:
        """For `builder`: a function from `Task` to `Measurement`.

        AtimError when the software is not the tuner's, as after an edit or an update meanwhile.
        """
        if self.version not in ("", software_version()):
            now = software_version()
            raise AtimError(f"software {self.version} is tuning, but here is {now}: start again")
        func, arrays = self.func(), self.inputs()
        sketches = {sketch.name: sketch for sketch in self.sketches()}
        return lambda task: run_task(func, sketches[task.sketch], task, arrays, self.choose_groups)


def sample_inputs(func: tirx.PrimFunc) -> dict[str, Array]:
    """The inputs that kernels are run on; those that are places in another tensor lie in it, and
    integers that something is divided by aren't 0."""
    rng = np.random.default_rng(DATA_SEED)
    arrays = {
        p.name: random_array(rng, tuple(int(n) for n in p.shape), str(p.dtype))
        for p in input_tensors(func)
    }
    for name, extent in _extents_behind(func).items():
        if name in arrays:
            arrays[name] %= arrays[name].dtype.type(min(extent, np.iinfo(arrays[name].dtype).max))
    for name in _divisors(func) & set(arrays):
        arrays[name][arrays[name] == 0] = 1
    return arrays


def _divisors(func: tirx.PrimFunc) -> set[str]:
    """The names of tensors that stand alone as a divisor."""
    found = set()

    def visit(division: Any) -> None:
        divisor = division.b
        while isinstance(divisor, tirx.Cast):
            divisor = divisor.value
        if isinstance(divisor, tvm.ir.TensorLoad):
            found.add(str(divisor.source.name))

    kinds = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
    tvm_ffi.structural_walk(func.body, [(kind, visit) for kind in kinds])
    return found


def _extents_behind(func: tirx.PrimFunc) -> dict[str, int]:
    """For the names of tensors that others are read through: the least extent of an axis."""
    extents: dict[str, int] = {}

    def visit(load: Any) -> None:
        for index, extent in zip(load.indices, load.source.shape, strict=True):
            for inner in loads_of(index, {}):
                name = str(inner.source.name)
                extents[name] = min(extents.get(name, int(extent)), int(extent))

    tvm_ffi.structural_walk(func.body, [(tvm.ir.TensorLoad, visit)])
    return extents


def staged_arrays(inputs: Mapping[str, Array], stages: Sequence[tirx.PrimFunc]) -> dict[str, Array]:
    """The inputs, and the output of each stage after the other, by NumPy."""
    arrays = dict(inputs)
    for stage in stages:
        output = str(stage.params[-1].name)
        arrays[output] = evaluate(stage, arrays, output=output)
    return arrays


def check_data(func: tirx.PrimFunc) -> Data:
    """The same for the check program of an exported folder, with what NumPy makes of them."""
    arrays = sample_inputs(func)
    expected = {name: evaluate(func, arrays, output=name) for name in written(func)}
    terms = terms_summed(func)
    return Data(arrays, expected, {n: tolerance_of(v, terms) for n, v in expected.items()})


def staged_data(
    func: tirx.PrimFunc, stages: Sequence[tirx.PrimFunc], outputs: Sequence[str]
) -> Data:
    """The same for a program of stages, whose errors add up."""
    inputs = {name: a for name, a in sample_inputs(func).items() if name not in outputs}
    arrays = staged_arrays(inputs, stages)
    expected = {name: arrays[name] for name in outputs}
    allowed = {
        name: sum(tolerance_of(value, terms_summed(stage)) for stage in stages)
        for name, value in expected.items()
    }
    return Data(inputs, expected, allowed)


def input_tensors(func: tirx.PrimFunc) -> list[Any]:
    """Parameters that are read only, in order; the last parameter is the output."""
    return list(func.params)[:-1]


@dataclass(frozen=True, slots=True)
class Problems:
    """Several problems as one job; a task says which. Each is prepared when it is first needed, and
    only one is kept, for inputs may be large."""

    problems: tuple[Problem, ...]

    def prepare(self) -> Any:
        """For `builder`, as `Problem.prepare`."""
        prepared: dict[int, Any] = {}

        def work(task: Task) -> Measurement:
            if task.problem not in prepared:
                prepared.clear()
                prepared[task.problem] = self.problems[task.problem].prepare()
            measured: Measurement = prepared[task.problem](task)
            return measured

        return work


def run_task(
    func: tirx.PrimFunc,
    sketch: Sketch,
    task: Task,
    arrays: Mapping[str, Array],
    choose_groups: bool = True,
) -> Measurement:
    """Build and run one candidate of the program `func`; failures are measurements."""
    clock = _Stopwatch()
    found = Measurement("failed")
    try:
        with clock("compile"):
            schedule = apply(sketch, task.decisions)
            found = replace(found, trace=trace.text_of(schedule))
            sources = pipeline.compile_func(schedule.mod["main"], sketch.target)
            found = replace(found, digest=digest_of(sources))
        if found.digest in task.known:
            return replace(found, status="same", parts=clock.parts)
        outcome = _build_and_run(clock, sketch, task, sources, arrays, choose_groups)
        with clock("check"):
            if outcome.outputs is not None:
                check_outputs(func, arrays, outcome.outputs)
            for piece in outcome.pieces:
                check_piece(sketch, task.decisions, arrays, piece)
    except (AtimError, SimError, OSError) as error:
        reason = _reason(error, clock.now)
        if reason is None:
            raise
        message = str(error)
        if isinstance(error, SimFault) and "division by zero" in message:
            message = f"a divisor is 0 in the test data (integers 0 to 49): {message}"
        return replace(found, reason=reason, message=message, parts=clock.parts)
    t = outcome.timing
    counters = {name: float(value) for name, value in outcome.counters.items()}
    timing = (t.h2d, t.kernel, t.d2h, t.host)
    return replace(found, status="ok", timing=timing, counters=counters, parts=clock.parts)


def _build_and_run(
    clock: _Stopwatch,
    sketch: Sketch,
    task: Task,
    sources: Sources,
    arrays: Mapping[str, Array],
    choose_groups: bool,
) -> runtime.Outcome:
    with clock("build"):
        artifact = toolchain.build(sources, sketch.target, host=task.whole)
    with clock("run"):
        return runtime.run(
            artifact,
            arrays,
            representatives=not task.whole,
            resident=sketch.resident,
            max_cycles=_cycle_limit(sketch, task.decisions),
            threads=task.threads or os.cpu_count() or 1,
            choose_groups=choose_groups,
        )


def digest_of(sources: Sources) -> str:
    """Of all that decides how a candidate runs: equal digests, equal measurements."""
    parts = (sources.kernel_c, sources.host_c, repr(sources.plan))
    text = "\0".join([*parts, str(sources.nr_tasklets), str(sources.stack_bytes)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cycle_limit(sketch: Sketch, decisions: Mapping[str, int]) -> int:
    terms = terms_of(sketch, sketch.vector(decisions))
    return int(CYCLES_FACTOR * terms["kernel_cycles"][0]) + CYCLES_FLOOR


def _reason(error: Exception, stage: str) -> str | None:
    """A key of `trial.REASONS`; None for what nobody foresaw."""
    no_room = isinstance(error, OSError) and error.errno in NO_ROOM
    if no_room or any(words in str(error) for words in NO_ROOM_WORDS):
        return "disk"
    if isinstance(error, ScheduleError):
        return "overflow" if stage == "build" else "schedule"
    if isinstance(error, SimFault):
        return "cycles" if error.kind == "cycle-limit" else "fault"
    kinds = ((UnsupportedError, "unsupported"), (ToolchainError, "toolchain"))
    for kind, reason in (*kinds, (MismatchError, "mismatch"), (HardwareError, "fault")):
        if isinstance(error, kind):
            return reason
    return None


class _Stopwatch:
    """Wall seconds of named stages, and which of them is running."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self.now = ""
        self._since = 0.0

    def __call__(self, stage: str) -> _Stopwatch:
        self.now = stage
        return self

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.parts[self.now] = time.perf_counter() - self._since
