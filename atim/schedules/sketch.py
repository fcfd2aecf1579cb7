"""A sketch: one structure of schedule, with the decisions that complete it.

Decision    name and coarse grid of values
Roles       which axis of the program does what in this structure
Sketch      both, for one program: what `rules`, `shapes` and `terms` work on
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from atim.errors import UsageError
from atim.schedules.program import Epilogue, Operand, Program
from atim.target import Target

if TYPE_CHECKING:
    from tvm import tirx

__all__ = ["Column", "Columns", "Decision", "Roles", "Sketch"]

Column = npt.NDArray[np.int64]
Columns = Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class Decision:
    """A named choice. `values` is the ascending coarse grid that a search draws from; `rules.apply`
    takes any positive integer (or 0 for switches), and `verify` judges it."""

    name: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Roles:
    """Positions in `Program.axes`.

    row    last spatial axis: spread over tasklets; register-blocked in reductions
    tile   axis cut into WRAM tiles: the reduction axis that is contiguous in the largest operand,
           or the row axis itself where there is no reduction
    piece  reduction axis cut into pieces over DPUs, None without
    grid   spatial axes that are cut over DPUs: at most three, the piece axis included
    across other axis along which an element-wise input is contiguous (a transposition): it is
           tiled too, so that both ways are copied in runs; None without
    spread other spatial axis that is spread over tasklets too, None without
    """

    row: int
    tile: int
    piece: int | None
    grid: tuple[int, ...]
    across: int | None = None
    spread: int | None = None


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
    target: Target
    resident: tuple[str, ...] = ()

    @property
    def func(self) -> tirx.PrimFunc:
        """The program as scheduled: producers inlined."""
        return self.program.func

    @property
    def epilogue(self) -> Epilogue | None:
        """The epilogue, where the kernel does it (partial results can't have one)."""
        epilogue = self.program.epilogue
        return None if epilogue is None or self.split_reduction or not epilogue.fused else epilogue

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """What the kernel reads."""
        return (*self.program.inputs, *(self.epilogue.inputs if self.epilogue else ()))

    @property
    def output(self) -> Operand:
        """What the kernel writes: the result, or one DPU's part of it before the host's sum."""
        return self.epilogue.output if self.epilogue else self.program.output

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Decision names, the columns of a matrix of candidates."""
        return tuple(decision.name for decision in self.decisions)

    def vector(self, decisions: Mapping[str, int]) -> Column:
        """Decisions as a matrix of one row. Raises `UsageError` on a missing or unknown name."""
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
