"""Candidates by the thousand: drawing, changing and crossing decision vectors, all in NumPy.

A candidate is a row of decision values of one sketch. A `Batch` holds an int64 matrix
[n, decisions] for each sketch of the space. What is given out is legal in closed form, in canonical
form (the same schedule is the same row) and free of duplicates, unless it says "unchecked".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "Candidate", "Matrix", "Scores", "Space", "key", "keys", "without"]

Matrix = NDArray[np.int64]
Batch = list[Matrix]
Scores = NDArray[np.float64]

# Spaces up to this size are enumerated, so that their end is known exactly.
ENUMERABLE = 1 << 15
# Draws of candidates before an under-filled sample is taken as it is.
ATTEMPTS = 24
TIED = 0.5  # of the refined: decisions of equal value move together
CHOICE_LIMIT = 8  # decisions of no larger values are choices rather than sizes, and move alone


class DecisionLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def values(self) -> tuple[int, ...]: ...


class SketchLike(Protocol):
    """What the search needs of `atim.schedules.Sketch`."""

    @property
    def name(self) -> str: ...
    @property
    def decisions(self) -> Sequence[DecisionLike]: ...
    @property
    def split_reduction(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sketch by its place in the space, and its decision values in canonical form."""

    sketch: int
    values: tuple[int, ...]


class Space:
    """The candidates of several sketches.

    canonical: (sketch, matrix) -> the same candidates, equal schedules as equal rows.
    check: (sketch, matrix) -> bool [n], which rows are legal on the target.
    describe: (sketch, matrix) -> features float64 [n, f], and log of estimated seconds [n].
    """

    def __init__(
        self,
        sketches: Sequence[SketchLike],
        canonical: Callable[[Any, Matrix], Matrix],
        check: Callable[[Any, Matrix], NDArray[np.bool_]],
        describe: Callable[[Any, Matrix], tuple[NDArray[np.float64], Scores]],
    ) -> None:
        self.sketches = tuple(sketches)
        self._canonical = canonical
        self._check = check
        self._describe = describe
        self._grids = [[np.array(d.values, np.int64) for d in s.decisions] for s in sketches]
        self._limits = [
            tuple(np.array([grid[end] for grid in grids], np.int64) for end in (0, -1))
            for grids in self._grids
        ]

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Sketches without and with a split reduction, by place; only groups that have any."""
        groups = [
            tuple(n for n, s in enumerate(self.sketches) if s.split_reduction is split)
            for split in (False, True)
        ]
        return tuple(group for group in groups if group)

    @cached_property
    def everything(self) -> Batch | None:
        """All legal candidates when the space is small enough to know them, else None."""
        sizes = [math.prod(len(g) for g in grids) for grids in self._grids]
        if sum(sizes) > ENUMERABLE:
            return None
        batch = []
        for n, grids in enumerate(self._grids):
            columns = np.meshgrid(*grids, indexing="ij") if grids else []
            matrix = np.stack([c.reshape(-1) for c in columns], axis=1) if columns else _empty(0)
            batch.append(self.legal(n, matrix))
        return batch

    @property
    def size(self) -> int | None:
        """Number of legal candidates, None when it is too large to be known."""
        return None if self.everything is None else sum(len(m) for m in self.everything)

    def describe(self, sketch: int, matrix: Matrix) -> tuple[NDArray[np.float64], Scores]:
        return self._describe(self.sketches[sketch], matrix)

    def legal(self, sketch: int, matrix: Matrix) -> Matrix:
        """The legal ones of some rows: canonical, without duplicates, in order of appearance."""
        if not len(matrix):
            return matrix
        rows = self._canonical(self.sketches[sketch], matrix)
        rows = rows[_first_of_each(rows)]
        return rows[self._check(self.sketches[sketch], rows)]

    def random(self, rng: np.random.Generator, sketch: int, count: int) -> Matrix:
        """About `count` legal candidates, uniform over the grids; fewer where few are legal."""
        grids = self._grids[sketch]
        found = _empty(len(grids))
        for _ in range(ATTEMPTS):
            columns = [grid[rng.integers(len(grid), size=count)] for grid in grids]
            fresh = self.legal(sketch, np.stack(columns, axis=1))
            found = np.concatenate([found, fresh])
            found = found[_first_of_each(found)]
            if len(found) >= count:
                break
        return found[:count]

    def mutate(self, rng: np.random.Generator, sketch: int, parents: Matrix) -> Matrix:
        """Each parent with one or a few decisions moved a step or two, or drawn anew; unchecked."""
        count, width = parents.shape
        if not width:
            return parents
        changed = rng.random((count, width)) < 0.5 / width
        changed[np.arange(count), rng.integers(width, size=count)] = True
        result = parents.copy()
        for column, grid in enumerate(self._grids[sketch]):
            place = np.searchsorted(grid, parents[:, column]).clip(0, len(grid) - 1)
            step = rng.choice(np.array([-2, -1, 1, 2]), size=count)
            near = (place + step).clip(0, len(grid) - 1)
            anywhere = rng.integers(len(grid), size=count)
            moved = grid[np.where(rng.random(count) < 0.7, near, anywhere)]
            result[:, column] = np.where(changed[:, column], moved, result[:, column])
        return result

    def cross(self, rng: np.random.Generator, parents: Matrix) -> Matrix:
        """Each parent with about half of its decisions taken from another one; unchecked."""
        others = parents[rng.permutation(len(parents))]
        return np.where(rng.random(parents.shape) < 0.5, parents, others)

    def refine(self, rng: np.random.Generator, sketch: int, parents: Matrix, count: int) -> Matrix:
        """`count` children of the parents with one to three decisions moved to any integer within a
        step of the grid, on it or off; unchecked.

        Half of the time the decisions whose value a moved one had move with it: a tile that is
        unrolled whole is to stay so."""
        width = parents.shape[1]
        if not width or not len(parents):
            return _empty(width)
        result = parents[rng.integers(len(parents), size=count)]
        changed = rng.random((count, width)) < 1.0 / width
        changed[np.arange(count), rng.integers(width, size=count)] = True
        for column, grid in enumerate(self._grids[sketch]):
            values = result[:, column]
            last = len(grid) - 1
            low = grid[(np.searchsorted(grid, values, "left") - 1).clip(0, last)]
            high = grid[np.searchsorted(grid, values, "right").clip(0, last)]
            drawn = rng.integers(np.minimum(low, values), np.maximum(high, values) + 1)
            moved = np.where(changed[:, column], drawn, values)
            low_ends, high_ends = self._limits[sketch]
            equal = (result == values[:, None]) & (rng.random(count) < TIED)[:, None]
            equal &= high_ends > CHOICE_LIMIT
            result = np.where(equal, moved[:, None].clip(low_ends, high_ends), result)
            result[:, column] = moved
        return result

    def distances(self, sketch: int, matrix: Matrix, row: Matrix) -> Scores:
        """Steps on the grids from each row of `matrix` to `row`, summed over the decisions; values
        between two of the grid are part of a step away from both."""
        total = np.zeros(len(matrix))
        for column, grid in enumerate(self._grids[sketch]):
            steps = np.arange(len(grid))
            here = np.interp(matrix[:, column], grid, steps)
            total += np.abs(here - np.interp(row[column], grid, steps))
        return total


def without(batch: Batch, known: Collection[tuple[int, bytes]]) -> Batch:
    """The batch without the candidates whose (sketch, `key`) is known."""
    return [
        matrix[np.array([(sketch, key) not in known for key in keys(matrix)], bool)]
        for sketch, matrix in enumerate(batch)
    ]


def key(candidate: Candidate) -> tuple[int, bytes]:
    """The (sketch, key) of a candidate, as `without` takes it."""
    return candidate.sketch, np.array(candidate.values, np.int64).tobytes()


def keys(matrix: Matrix) -> list[bytes]:
    """A hashable value for each row."""
    return [row.tobytes() for row in np.ascontiguousarray(matrix)]


def _first_of_each(matrix: Matrix) -> NDArray[np.int64]:
    """Indices of the first appearance of each different row, ascending."""
    if not matrix.shape[1]:
        return np.arange(min(1, len(matrix)))
    first: dict[bytes, int] = {}
    for index, key in enumerate(keys(matrix)):
        first.setdefault(key, index)
    return np.array(list(first.values()), np.int64)


def _empty(width: int) -> Matrix:
    return np.empty((0, width), np.int64)
