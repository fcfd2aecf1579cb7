"""A model as Relax, whatever it came from: what `importer` gives and the later stages take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atim.offload.structure import Structure

__all__ = ["Imported", "Place", "State", "as_array"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operator stands in the model: its name, the module's path, the line of Python."""

    operator: str
    module: str
    line: str

    def __str__(self) -> str:
        where = f" in {self.module}" if self.module else ""
        return f"{self.operator}{where}" + (f" ({self.line})" if self.line else "")


@dataclass(frozen=True, slots=True)
class State:
    """A kept tensor: its value before a call is parameter number `parameter` (behind the inputs),
    after it output number `output` of the flat outputs."""

    name: str
    parameter: int
    output: int


@dataclass(frozen=True)
class Imported:
    """A model as Relax.

    module       function main(inputs..., parameters...)
    parameters   arrays of the parameters, in order; shared with the model, not copied
    examples     the example inputs as arrays
    reference    calls the original on arrays and gives its outputs; None for Relax modules
    fallbacks    operators that run through PyTorch on the host
    values       (place, Relax variable, node) of each translated operator, to find a first mistake
    trace        calls the original and gives the value of each node by name, None without PyTorch
    updated      (input, output) of tensors updated in place; those outputs come first
    hidden       buffers among these: as many of the first inputs, which the caller does not know
    states       what the placed module keeps from call to call
    structure    how the model arranges its outputs (structure.py), None: one, or a tuple
    """

    module: Any
    parameters: tuple[Any, ...]
    examples: tuple[Array, ...]
    reference: Callable[..., list[Array]] | None
    fallbacks: tuple[Place, ...] = ()
    values: tuple[tuple[Place, Any, str], ...] = field(default=(), repr=False)
    trace: Callable[[], dict[str, Array]] | None = None
    updated: tuple[tuple[int, int], ...] = ()
    hidden: int = 0
    states: tuple[State, ...] = ()
    structure: Structure = None


def as_array(value: Any) -> Array:
    """A NumPy array of an array, a torch tensor or a TVM tensor (shared where possible)."""
    if hasattr(value, "detach"):
        value = value.detach()
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)
