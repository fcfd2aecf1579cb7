"""What a builder does with a candidate: compile, build, run, compare with NumPy.

In: a `Problem` (once) and tasks. Out: a `Measurement` a task. Every simulated DPU's results are
compared with `evaluate` over its own part of the iteration space, exactly for integers; whatever
goes wrong is a measurement too, with a reason out of `trial.REASONS`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import tirx

from atim import pipeline, runtime, toolchain
from atim.errors import MismatchError, ScheduleError, ToolchainError, UnsupportedError
from atim.evaluate import evaluate
from atim.schedules import Sketch, design_space
from atim.schedules.shapes import shape_of
from atim.target import Target
from atim.tuner.trial import Measurement, Task
from atim.workloads import random_array
from upmem_sim import SimFault

__all__ = ["Problem", "check_outputs", "check_piece", "run_task"]

Array = NDArray[Any]
Box = tuple[tuple[int, int], ...]

# A kernel is stopped when it takes this many times its estimate, so that hangs end the same way
# on every machine; the floor is 0.1 s of a DPU.
CYCLES_FACTOR = 20
CYCLES_FLOOR = 35_000_000
# The numbers that kernels are run on do not depend on the search's seed.
DATA_SEED = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is tuned, as a picklable job for builders. `program` is a PrimFunc as TVM's JSON."""

    program: str
    target: Target
    resident: tuple[str, ...] = ()

    @staticmethod
    def of(func: tirx.PrimFunc, target: Target, resident: tuple[str, ...] = ()) -> Problem:
        return Problem(tvm.ir.save_json(func), target, resident)

    def func(self) -> tirx.PrimFunc:
        return tvm.ir.load_json(self.program)

    def sketches(self) -> list[Sketch]:
        return design_space(self.func(), self.target, self.resident)

    def inputs(self) -> dict[str, Array]:
        """Inputs by name: integers 0 to 49, floats in [0, 1), always the same."""
        rng = np.random.default_rng(DATA_SEED)
        func = self.func()
        return {
            p.name: random_array(rng, tuple(int(n) for n in p.shape), str(p.dtype))
            for p in input_tensors(func)
        }

    def prepare(self) -> Any:
        """For `builder`: a function from `Task` to `Measurement`."""
        sketches = {sketch.name: sketch for sketch in self.sketches()}
        arrays = self.inputs()
        return lambda task: run_task(sketches[task.sketch], task, arrays)


def input_tensors(func: tirx.PrimFunc) -> list[Any]:
    """Parameters that are read only, in order; the last parameter is the output."""
    return list(func.params)[:-1]


def run_task(sketch: Sketch, task: Task, arrays: Mapping[str, Array]) -> Measurement:
    """Build and run one candidate; failures are measurements."""
    clock = _Stopwatch()
    try:
        with clock("compile"):
            sources = pipeline.compile(sketch, task.decisions, sketch.target)
        with clock("build"):
            artifact = toolchain.build(sources, sketch.target, host=task.whole)
        with clock("run"):
            outcome = runtime.run(
                artifact,
                arrays,
                representatives=not task.whole,
                resident=sketch.resident,
                max_cycles=_cycle_limit(sketch, task.decisions),
                threads=task.threads,
            )
        with clock("check"):
            if outcome.outputs is not None:
                check_outputs(sketch, arrays, outcome.outputs)
            for piece in outcome.pieces:
                check_piece(sketch, task.decisions, arrays, piece)
    except (ScheduleError, UnsupportedError, ToolchainError, MismatchError, SimFault) as error:
        return Measurement("failed", _reason(error, clock.now), str(error), parts=clock.parts)
    t = outcome.timing
    counters = {name: float(value) for name, value in outcome.counters.items()}
    return Measurement("ok", "", "", (t.h2d, t.kernel, t.d2h, t.host), counters, clock.parts)


def check_piece(
    sketch: Sketch, decisions: Mapping[str, int], arrays: Mapping[str, Array], piece: runtime.Piece
) -> None:
    """Compare what one DPU computed with NumPy. Raises MismatchError."""
    for box, values in _boxes(sketch, decisions, piece):
        wanted = evaluate(sketch.func, arrays, box, output=sketch.program.output.name)
        _compare(f"DPU {piece.dpu}: {piece.tensor}", values, wanted, _terms(sketch, box))


def check_outputs(
    sketch: Sketch, arrays: Mapping[str, Array], outputs: Mapping[str, Array]
) -> None:
    """Compare complete outputs with NumPy. Raises MismatchError."""
    whole = tuple((0, axis.extent) for axis in sketch.program.axes)
    for name, values in outputs.items():
        wanted = evaluate(sketch.func, arrays, output=name)
        _compare(name, values, wanted, _terms(sketch, whole))


def _boxes(
    sketch: Sketch, decisions: Mapping[str, int], piece: runtime.Piece
) -> list[tuple[Box, Array]]:
    """The part of the iteration space behind a piece and its values, for each partial result.

    Where a reduction is cut over DPUs follows from the decisions alone, not from the generated
    code, which is what is being checked.
    """
    program, axis = sketch.program, sketch.roles.piece
    if axis is None or piece.tensor == program.output.name:
        return [_spatial_box(sketch, piece.start, piece.values)]
    # Partial results: the first dimension counts the pieces.
    shape = shape_of(sketch, sketch.columns(sketch.vector(decisions)))
    span, extent = int(shape.dpu[axis][0]), program.axes[axis].extent
    found = []
    for number, values in enumerate(piece.values, piece.start[0]):
        box, inside = _spatial_box(sketch, piece.start[1:], values)
        cut = (min(number * span, extent), min((number + 1) * span, extent))
        found.append(((*box[:axis], cut, *box[axis + 1 :]), inside))
    return found


def _spatial_box(sketch: Sketch, start: Sequence[int], values: Array) -> tuple[Box, Array]:
    """Ranges of all axes, reductions whole, and the values without what lies past the axes."""
    box = [(0, axis.extent) for axis in sketch.program.axes]
    for low, size, axis in zip(start, values.shape, sketch.program.spatial, strict=True):
        box[axis] = (low, min(low + size, box[axis][1]))
    inside = tuple(slice(0, box[axis][1] - box[axis][0]) for axis in sketch.program.spatial)
    return tuple(box), values[inside]


def _terms(sketch: Sketch, box: Box) -> int:
    """How many terms are summed into one value."""
    count = 1
    for axis in sketch.program.reduction:
        count *= max(1, box[axis][1] - box[axis][0])
    return count


def _compare(what: str, values: Array, wanted: Array, terms: int) -> None:
    if values.shape != wanted.shape or values.dtype != wanted.dtype:
        raise MismatchError(
            f"{what} is {values.dtype}{list(values.shape)},"
            f" should be {wanted.dtype}{list(wanted.shape)}"
        )
    if np.issubdtype(wanted.dtype, np.floating):
        # Rounding errors of a sum walk at random: many standard deviations of that.
        scale = float(np.max(np.abs(wanted), initial=0.0))
        allowed = np.finfo(wanted.dtype).eps * (4 + 4 * terms**0.5) * scale
        wrong = ~(np.abs(values.astype(np.float64) - wanted.astype(np.float64)) <= allowed)
    else:
        wrong = values != wanted
    if wrong.any():
        at = tuple(int(n) for n in np.argwhere(wrong)[0])
        raise MismatchError(
            f"{what}{list(at)} is {values[at]}, should be {wanted[at]}"
            f" ({int(wrong.sum())} of {wrong.size} wrong)"
        )


def _cycle_limit(sketch: Sketch, decisions: Mapping[str, int]) -> int:
    terms = sketch.terms(sketch.vector(decisions))
    return int(CYCLES_FACTOR * terms["kernel_cycles"][0]) + CYCLES_FLOOR


def _reason(error: Exception, stage: str) -> str:
    if isinstance(error, ScheduleError):
        return "overflow" if stage == "build" else "schedule"
    if isinstance(error, SimFault):
        return "cycles" if error.kind == "cycle-limit" else "fault"
    if isinstance(error, UnsupportedError):
        return "unsupported"
    return "toolchain" if isinstance(error, ToolchainError) else "mismatch"


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
