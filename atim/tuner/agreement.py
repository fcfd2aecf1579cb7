"""Schedules of a program's stages whose tiles agree, so that values between them stay in MRAM.

In: the stages' plans. Out: for each a few candidates that its search begins with. Tiles agree when
stages cut a tensor along the same dimensions into the same spans, over the same DPUs, with the same
padding; dimensions of different tensors are the same if one axis of a stage runs through both. All
of this is closed form (schedules/memory.py): thousands of candidates a stage are drawn, grouped by
their tiles, and joined to the combinations with the least time, where a tile is transferred once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atim.schedules import Sketch
from atim.schedules.memory import copies_of
from atim.schedules.shapes import shape_of
from atim.schedules.stages import Stage
from atim.schedules.terms import terms_of
from atim.timing import model_of
from atim.tuner.features import estimate
from atim.tuner.plan import Plan
from atim.tuner.proposals import Candidate, Matrix

__all__ = ["Tiles", "agreeing", "shared_by", "tiles_of"]

DRAWN = 2048  # candidates of each sketch
FIRSTS = 64  # tiles of the first stage for which others are sought
COUNTS = 6  # numbers of DPUs: as many as may be used, half of them, ...

Place = tuple[str, int]  # a tensor and one of its dimensions
Sides = tuple[int, ...]  # of a tile in MRAM, in elements, then DPUs along each dimension
Tiles = Mapping[str, Sides]  # by tensor


@dataclass(frozen=True, slots=True)
class _Found:
    """A candidate, its seconds without transfers, and the tiles of what other stages use too."""

    candidate: Candidate
    seconds: float
    dpus: int
    tiles: Tiles


@dataclass(frozen=True, slots=True)
class _Part:
    """A stage of the DPUs, with the plan of its search."""

    stage: Stage
    plan: Plan


def agreeing(
    stages: Sequence[Stage], plans: Sequence[Plan], resident: Sequence[str], count: int
) -> list[tuple[Candidate, ...]]:
    """At most `count` candidates for each stage of the DPUs, whose plans are given in order."""
    on_dpus = [stage for stage in stages if stage.reason is None]
    parts = [_Part(*pair) for pair in zip(on_dpus, plans, strict=True)]
    shared = shared_by(on_dpus)
    classes = _dimensions(parts, shared)
    pools = {at: _pool(part.plan, classes, shared) for at, part in enumerate(parts)}
    pools = {at: pool for at, pool in pools.items() if pool}
    if len(pools) < 2:
        return [()] * len(parts)
    found = sorted(_joined(stages, parts, pools, resident), key=lambda item: item[0])
    kept = [chosen for _, chosen in found[:count]]
    return [
        tuple(dict.fromkeys(chosen[at] for chosen in kept if at in chosen))
        for at in range(len(parts))
    ]


def shared_by(stages: Sequence[Stage]) -> set[str]:
    """Tensors that several of these stages touch."""
    touched = Counter(name for stage in stages for name in {*stage.inputs, *stage.outputs})
    return {name for name, count in touched.items() if count > 1}


def tiles_of(sketch: Sketch, matrix: Matrix, shared: set[str]) -> list[tuple[int, Tiles]]:
    """(DPUs, tiles of the shared tensors) of each candidate, by closed form. Partial results, which
    the host adds up, are none."""
    columns = sketch.columns(matrix)
    shape = shape_of(sketch, columns)
    copies = {}
    for copy in copies_of(sketch, shape, columns):
        operand = copy.operand
        if operand.name in shared and not (copy.write and sketch.split_reduction):
            counts = [
                np.prod([shape.grid[a] for a, factor in enumerate(row) if factor], axis=0)
                * np.ones_like(shape.tasklets)
                for row in operand.index
            ]
            copies[operand.name] = np.stack([*copy.sides, *counts], axis=1)
    dpus = np.prod(shape.grid, axis=0)
    return [
        (int(dpus[n]), {name: tuple(sides[n].tolist()) for name, sides in copies.items()})
        for n in range(len(matrix))
    ]


def _axes_of(sketch: Sketch, name: str) -> list[int | None] | None:
    """The axis of each dimension of a tensor, None for one that is 1 long; None for all unless each
    is indexed by one axis alone."""
    operand = next((o for o in (*sketch.inputs, sketch.output) if o.name == name), None)
    if operand is None or any(operand.offset) or any(operand.extra):
        return None
    found: list[int | None] = []
    for row, extent in zip(operand.index, operand.shape, strict=True):
        hits = [axis for axis, factor in enumerate(row) if factor]
        if len(hits) == 1 and row[hits[0]] == 1:
            found.append(hits[0])
        elif extent == 1:
            found.append(None)
        else:
            return None
    return found


def _dimensions(parts: Sequence[_Part], shared: set[str]) -> list[set[Place]]:
    """Dimensions of shared tensors that are the same one, as an axis of some stage says."""
    classes: list[set[Place]] = []
    for part in parts:
        by_axis: dict[int, set[Place]] = {}
        for name in shared:
            for at, axis in enumerate(_axes_of(part.plan.sketches[0], name) or ()):
                if axis is not None:
                    by_axis.setdefault(axis, set()).add((name, at))
        for places in by_axis.values():
            joined = [c for c in classes if c & places]
            classes = [c for c in classes if not c & places]
            classes.append(places.union(*joined))
    return classes


def _pool(plan: Plan, classes: Sequence[set[Place]], shared: set[str]) -> list[_Found]:
    """Candidates that cut shared dimensions over DPUs and nothing else, the best for each tiling of
    the shared tensors, best first."""
    best: dict[tuple[tuple[str, Sides], ...], _Found] = {}
    space, cuts = plan.search.space, _cuts(len(classes), plan.target.dpus)
    for number, sketch in enumerate(plan.sketches):
        axes = [_axis(sketch, places, shared) for places in classes]
        rng = np.random.default_rng(number)
        matrix = space.random(rng, number, DRAWN)
        wanted = cuts[rng.integers(len(cuts), size=len(matrix))]
        for column, name in enumerate(sketch.names):
            along = _along(sketch, name)
            if along in axes:
                matrix[:, column] = wanted[:, axes.index(along)]
            elif along is not None:
                matrix[:, column] = 1
        for one in _described(sketch, number, space.legal(number, matrix), axes, shared):
            key = tuple(sorted(one.tiles.items()))
            if one.tiles and (key not in best or one.seconds < best[key].seconds):
                best[key] = one
    return sorted(best.values(), key=lambda one: one.seconds)


def _cuts(dimensions: int, dpus: int) -> NDArray[np.int64]:
    """DPUs along each dimension, [n, dimensions]: powers of two down from as many as there are."""
    counts = [np.maximum(dpus >> np.arange(COUNTS), 1), 1 << np.arange(COUNTS)]
    along = np.unique(np.concatenate(counts))
    every = np.stack(np.meshgrid(*[along] * dimensions, indexing="ij"), axis=-1)
    rows = every.reshape(-1, dimensions)
    used = rows.prod(axis=1)
    kept: NDArray[np.int64] = rows[(used <= dpus) & (used >= dpus >> COUNTS)]
    return kept


def _along(sketch: Sketch, decision: str) -> int | None:
    """The axis that a decision cuts over DPUs."""
    if decision == "pieces":
        return sketch.roles.tile if sketch.roles.piece is None else sketch.roles.piece
    names = [f"dpus_{axis.name}" for axis in sketch.program.axes]
    return names.index(decision) if decision in names else None


def _axis(sketch: Sketch, places: set[Place], shared: set[str]) -> int | None:
    """The sketch's axis along these dimensions."""
    for name in sorted(shared):
        for at, axis in enumerate(_axes_of(sketch, name) or ()):
            if axis is not None and (name, at) in places:
                return axis
    return None


def _described(
    sketch: Sketch, number: int, matrix: Matrix, axes: Sequence[int | None], shared: set[str]
) -> Iterator[_Found]:
    """The candidates whose tiles follow each other without overlap, best first."""
    if not len(matrix):
        return
    shape = shape_of(sketch, sketch.columns(matrix))
    apart = np.ones(len(matrix), bool)
    for axis in (a for a in axes if a is not None):
        apart &= (shape.reach[axis] == shape.dpu[axis]) | (shape.grid[axis] == 1)
    matrix = matrix[apart]
    phases = estimate(terms_of(sketch, matrix), sketch)
    seconds: NDArray[np.float64] = phases["kernel_s"] + phases["host_s"]
    if sketch.split_reduction:
        seconds = seconds + phases["d2h_s"]
    tiled = tiles_of(sketch, matrix, shared)
    for n in np.argsort(seconds, kind="stable").tolist():
        candidate = Candidate(number, tuple(matrix[n].tolist()))
        yield _Found(candidate, float(seconds[n]), *tiled[n])


def _joined(
    stages: Sequence[Stage],
    parts: Sequence[_Part],
    pools: Mapping[int, list[_Found]],
    resident: Sequence[str],
) -> Iterator[tuple[float, dict[int, Candidate]]]:
    """Combinations of one candidate of each stage with a pool whose tiles agree, by stage, and
    their seconds."""
    start, *others = pools
    for first in pools[start][:FIRSTS]:
        chosen, fixed = {start: first}, dict(first.tiles)
        for at in others:
            fitting = (
                one
                for one in pools[at]
                if one.dpus == first.dpus
                and all(fixed.get(name, sides) == sides for name, sides in one.tiles.items())
            )
            match = next(fitting, None)
            if match is None:
                break
            chosen[at] = match
            fixed |= match.tiles
        else:
            seconds = sum(one.seconds for one in chosen.values())
            moved = _moved(stages, parts, fixed, resident, first.dpus)
            yield seconds + moved, {at: one.candidate for at, one in chosen.items()}


def _moved(
    stages: Sequence[Stage],
    parts: Sequence[_Part],
    tiles: Tiles,
    resident: Sequence[str],
    dpus: int,
) -> float:
    """Seconds of transfers of the shared tensors, each once and only if the host needs it."""
    model = model_of(parts[0].plan.target)
    made = {name for part in parts for name in part.stage.outputs}
    by_host = {name for s in stages if s.reason is not None for name in (*s.inputs, *s.outputs)}
    ends = {str(name) for name in stages[-1].outputs}
    operands = [o for p in parts for o in (*p.plan.sketches[0].inputs, p.plan.sketches[0].output)]
    items = {o.name: o.item_bytes for o in operands}
    ranks = {o.name: len(o.index) for o in operands}
    total = 0.0
    for name, sides in tiles.items():
        rank = len(sides) - ranks[name]
        size = int(np.prod(sides[:rank], dtype=np.int64)) * items[name]
        if name in made:
            total += float(model.from_dpus(size, dpus)) if name in by_host | ends else 0.0
        elif name not in resident:
            total += float(model.to_dpus(size, dpus))
    return total
