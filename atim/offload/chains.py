"""Two kernels of one program, the second reading from MRAM what the first left there.

In: a launch of form "chain". Out: its price, and the `atim.chain.Chain` that runs it. Tiles agree
when both kernels cut the value between them along one dimension over the same DPUs, in equal spans
without padding, and cut nothing else. Such schedules are searched for each number of DPUs; that the
value then stays is read off the planned transfers. A product that reads a vector so has partial
results, one a DPU, that the host adds up: this pays for few rows, not for many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atim import pipeline
from atim.chain import Chain, link
from atim.codegen import Sources
from atim.codegen.chain_plan import Step, clear_what_stays, plan_moves
from atim.errors import AtimError, ScheduleError
from atim.evaluate import evaluate
from atim.offload.estimates import Price, Ranked, best_estimates, priced
from atim.offload.factors import Factor, extra_s
from atim.offload.launches import BETWEEN, RESULT, Launch, Part
from atim.schedules import Sketch, design_space
from atim.schedules.canonical import canonical
from atim.schedules.shapes import shape_of
from atim.target import Target
from atim.timing import model_of, pull_seconds, push_seconds
from atim.tuner.measure import Problem, run_task
from atim.tuner.proposals import Matrix
from atim.tuner.trial import Task

__all__ = ["Pair", "agreeing", "linked", "simulated", "sketch_of"]

Array = NDArray[Any]

# the DPUs that may be used are divided by these: fewer DPUs, fewer partial results
SHARES = (1, 2, 4, 8, 16, 32)
SIMULATED = 2


@dataclass(frozen=True)
class Pair:
    """Schedules of both kernels whose tiles agree, what they compile to, and their price."""

    choices: Ranked
    steps: list[Step]
    price: Price


def agreeing(
    launch: Launch, target: Target, factors: Mapping[str, Factor | None] | None = None
) -> list[Pair]:
    """The best pairs by closed form, best first. ScheduleError when no tiles agree.

    factors: the values of integers, by the chain's names.
    """
    tried: list[tuple[float, int, Ranked, list[Price]]] = []
    for choices in _choices(launch, target):
        halves = [
            _estimated(part, choice, factors or {})
            for part, choice in zip(launch.parts, choices, strict=True)
        ]
        tried.append((sum(p.kernel + p.host for p in halves), len(tried), choices, halves))
    tried.sort(key=lambda item: item[:2])
    found: list[Pair] = []
    for least, _, choices, halves in tried:
        if len(found) >= SIMULATED and least >= found[SIMULATED - 1].price.total:
            break  # transfers come on top
        steps = _steps(launch.parts, choices, target)
        price = _together(launch, steps, choices, halves, target)
        if price is not None:
            found.append(Pair(choices, steps, price))
            found.sort(key=lambda pair: pair.price.total)
    if not found:
        raise ScheduleError("tiles of the two kernels disagree in every schedule tried")
    return found[:SIMULATED]


def _estimated(
    part: Part, choice: tuple[Sketch, dict[str, int]], factors: Mapping[str, Factor | None]
) -> Price:
    price = priced(*choice, None, "estimated")
    own = {tensor: factors.get(name) for tensor, name in part.values.items()}
    return replace(price, kernel=price.kernel + extra_s(*choice, own))


def simulated(
    launch: Launch, pairs: Sequence[Pair], target: Target, arrays: Mapping[str, Array] | None
) -> Price:
    """The price of the best pair, simulated on `arrays` (by the chain's names; None: random)."""
    prices, failures = [], []
    for pair in pairs:
        try:
            link(pair.steps, target, outputs=[RESULT])
            halves = _simulated(launch, pair.choices, target, arrays)
            price = _together(launch, pair.steps, pair.choices, halves, target)
            prices += [price] if price is not None else []
        except AtimError as error:
            failures.append(error)
    if not prices:
        raise failures[0]
    return min(prices, key=lambda price: price.total)


def linked(
    parts: Sequence[Part], choices: Sequence[tuple[str, Mapping[str, int]]], target: Target
) -> Chain:
    """The program of a chain, with the schedules that its price names."""
    chosen = [
        (sketch_of(part.func, target, part.resident, name), dict(decisions))
        for part, (name, decisions) in zip(parts, choices, strict=True)
    ]
    resident = [p.values[t] for p in parts for t in p.resident if p.values[t] != BETWEEN]
    steps = _steps(parts, chosen, target)
    return link(steps, target, outputs=[RESULT], resident=resident)


def sketch_of(func: Any, target: Target, resident: tuple[str, ...], name: str) -> Sketch:
    """A sketch by its name."""
    return next(s for s in design_space(func, target, resident) if s.name == name)


def _steps(parts: Sequence[Part], pair: Ranked, target: Target) -> list[Step]:
    return [
        Step(f"part {n}", pipeline.compile(sketch, decisions, target), part.values)
        for n, (part, (sketch, decisions)) in enumerate(zip(parts, pair, strict=True))
    ]


def _choices(launch: Launch, target: Target) -> Iterator[Ranked]:
    """Pairs of schedules whose tiles agree by closed form: the best for each dimension and number
    of DPUs."""
    first, second = launch.parts
    shape = tuple(int(n) for n in first.func.params[-1].shape)
    spaces = [design_space(p.func, target, p.resident) for p in launch.parts]
    makers = [s for s in spaces[0] if not s.split_reduction]
    for dimension, extent in enumerate(shape):
        counts = {_divisor(extent, target.dpus // share) for share in SHARES}
        for dpus in sorted(counts - {0, 1}, reverse=True):
            try:
                yield [
                    best_estimates(sketches, target, _Cut(tensor, dimension, dpus))[0]
                    for sketches, tensor in (
                        (makers, _tensor(first, BETWEEN)),
                        (spaces[1], _tensor(second, BETWEEN)),
                    )
                ]
            except ScheduleError:
                continue


def _divisor(extent: int, limit: int) -> int:
    """The largest divisor up to a limit, 0 when that is below 1."""
    return next((d for d in range(min(extent, limit), 0, -1) if extent % d == 0), 0)


def _tensor(part: Part, value: str) -> str:
    return next(tensor for tensor, name in part.values.items() if name == value)


class _Cut:
    """Makes candidates cut one dimension of a tensor over so many DPUs, in equal spans, and nothing
    else; leaves out those that can't."""

    def __init__(self, tensor: str, dimension: int, dpus: int) -> None:
        self.tensor, self.dimension, self.dpus = tensor, dimension, dpus

    def __call__(self, sketch: Sketch, matrix: Matrix) -> Matrix:
        used = _axes_of(sketch, self.tensor)
        if used is None or not len(matrix):
            return matrix[:0]
        cut, axes = used[self.dimension], sketch.program.axes
        forced = matrix.copy()
        for column, name in enumerate(sketch.names):
            piece = name == "pieces" and sketch.roles.piece is not None
            along = sketch.roles.piece if piece else None
            if name.startswith("dpus_"):
                along = next(n for n, a in enumerate(axes) if a.name == name[len("dpus_") :])
            if along is not None:
                forced[:, column] = self.dpus if along == cut else 1
        rows = canonical(sketch, forced)
        shape = shape_of(sketch, sketch.columns(rows))
        fits = np.ones(len(rows), bool)
        for number, axis in enumerate(axes):
            fits &= shape.grid[number] == (self.dpus if number == cut else 1)
            if number in used:
                fits &= shape.grid[number] * shape.dpu[number] == axis.extent
        kept: Matrix = rows[fits]
        return kept


def _axes_of(sketch: Sketch, tensor: str) -> list[int] | None:
    """The axis of each dimension of a tensor, None unless each is indexed by one axis alone."""
    operand = next((o for o in (*sketch.inputs, sketch.output) if o.name == tensor), None)
    if operand is None or any(operand.offset) or any(operand.extra):
        return None
    found = []
    for row in operand.index:
        hits = [axis for axis, factor in enumerate(row) if factor]
        if len(hits) != 1 or row[hits[0]] != 1:
            return None
        found.append(hits[0])
    return found


def _simulated(
    launch: Launch, pair: Ranked, target: Target, arrays: Mapping[str, Array] | None
) -> list[Price]:
    """Prices of the two kernels alone, each on what it reads in the chain, results compared with
    NumPy."""
    known: dict[str, Array] = dict(arrays or {})
    prices = []
    for part, (sketch, decisions) in zip(launch.parts, pair, strict=True):
        given = {} if arrays else Problem.of(part.func, target).inputs()
        given |= {t: known[name] for t, name in part.values.items() if name in known}
        task = Task(sketch.name, decisions)
        measured = run_task(part.func, sketch, task, given, choose_groups=False)
        if measured.timing is None:
            raise ScheduleError(f"{measured.reason}: {measured.message}")
        prices.append(priced(sketch, decisions, measured.timing, "simulated"))
        output = str(part.func.params[-1].name)
        if part.values[output] == BETWEEN:
            known[BETWEEN] = evaluate(part.func, given, output=output)
    return prices


def _together(
    launch: Launch,
    compiled: list[Step],
    choices: Ranked,
    halves: Sequence[Price],
    target: Target,
) -> Price | None:
    """The price of both, transfers as planned; None when the value between them does not stay."""
    parts = launch.parts
    steps = clear_what_stays(compiled)
    resident = [p.values[t] for p in parts for t in p.resident if p.values[t] != BETWEEN]
    moves = plan_moves(steps, [RESULT], resident)
    model = model_of(target)
    h2d = d2h = 0.0
    loaded = 0
    for step, part, move in zip(steps, parts, moves, strict=True):
        assert move is not None
        assert isinstance(step.work, Sources)
        dpus = step.work.plan.dpus
        if any(part.values.get(t.tensor) == BETWEEN for t in (*move.pushed, *move.pulled)):
            return None
        h2d += sum(push_seconds(model, t, dpus) for t in move.pushed)
        d2h += sum(pull_seconds(model, t, dpus) for t in move.pulled)
        loaded += sum(t.slice_bytes for t in move.loaded)
    return Price(
        h2d=h2d,
        kernel=sum(p.kernel for p in halves),
        d2h=d2h,
        host=sum(p.host for p in halves),
        dpus=halves[0].dpus,
        resident_bytes=loaded,
        mram_bytes=sum(p.mram_bytes for p in halves),
        sketch="",
        decisions={},
        how=halves[0].how,
        parts=tuple((sketch.name, decisions) for sketch, decisions in choices),
    )
