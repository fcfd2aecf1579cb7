"""A sketch: one structure of schedule, with the decisions that complete it.

    Decision    name and coarse grid of values
    Roles       which axis of the program does what in this structure
    Sketch      .terms(matrix) closed forms for many candidates, .apply(decisions) one scheduled module
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from atim.errors import UsageError
from atim.schedules.program import Program

if TYPE_CHECKING:
    from tvm import tirx
    from tvm.s_tir import Schedule

__all__ = ["Column", "Decision", "Roles", "Sketch"]

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Decision:
    """A named choice. `values` is the ascending coarse grid that a search draws from; any positive
    integer (or 0 for switches) is accepted by `Sketch.apply` and judged by `verify`."""

    name: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Roles:
    """Positions in `Program.axes`; None where the structure has no such axis.

    row    last spatial axis, spread over tasklets and register-blocked (element-wise: tiled)
    tile   reduction axis cut into WRAM tiles, the contiguous one of the largest operand
    piece  reduction axis cut into pieces over DPUs
    grid   spatial axes that are cut over DPUs, at most three with the piece axis
    """

    row: int | None
    tile: int | None
    piece: int | None
    grid: tuple[int, ...]


@dataclass(frozen=True)
class Sketch:
    """A structure of schedule for one program.

    `split_reduction` tells designs with partial results (finished on the host) from those without.
    `resident` names operands that lie in MRAM before the run: they cost no transfer.
    """

    name: str
    program: Program
    roles: Roles
    decisions: tuple[Decision, ...]
    split_reduction: bool
    resident: tuple[str, ...] = ()

    @property
    def func(self) -> tirx.PrimFunc:
        """The program as scheduled: producers inlined."""
        return self.program.func

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Decision names, the columns of a matrix of candidates."""
        return tuple(decision.name for decision in self.decisions)

    def vector(self, decisions: Mapping[str, int]) -> Column:
        """Decisions as one row of a matrix. Raises `UsageError` on a missing or unknown name."""
        unknown = sorted(set(decisions) - set(self.names))
        missing = sorted(set(self.names) - set(decisions))
        if unknown or missing:
            parts = [f"unknown {', '.join(unknown)}"] if unknown else []
            parts += [f"missing {', '.join(missing)}"] if missing else []
            raise UsageError(f"sketch {self.name}: decisions {'; '.join(parts)}")
        return np.array([[int(decisions[name]) for name in self.names]], dtype=np.int64)

    def columns(self, matrix: Column) -> dict[str, Column]:
        """A matrix [n, decisions] as one array a decision."""
        matrix = np.asarray(matrix, dtype=np.int64)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.decisions):
            wanted = f"[n, {len(self.decisions)}]"
            raise UsageError(f"sketch {self.name}: matrix {wanted} expected, {matrix.shape} given")
        return {name: matrix[:, i] for i, name in enumerate(self.names)}

    def terms(self, matrix: Column) -> dict[str, Column]:
        """Closed forms of every candidate, as int64 (or float64) arrays [n]; see `terms.TERMS`."""
        from atim.schedules.terms import terms

        return terms(self, matrix)

    def canonical(self, matrix: Column) -> Column:
        """The same schedules with requested counts replaced by the counts really used."""
        from atim.schedules.shapes import canonical

        return canonical(self, matrix)

    def apply(self, decisions: Mapping[str, int]) -> Schedule:
        """Schedule the program. Raises `ScheduleError` when TVM refuses; checks no hardware limit."""
        from atim.schedules.rules import apply

        return apply(self, decisions)
