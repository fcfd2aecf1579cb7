"""A model as Relax, whatever it came from: what `importer` gives and the later stages take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Imported", "Place", "as_array"]

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
    """

    module: Any
    parameters: tuple[Any, ...]
    examples: tuple[Array, ...]
    reference: Callable[..., list[Array]] | None
    fallbacks: tuple[Place, ...] = ()
    values: tuple[tuple[Place, Any, str], ...] = field(default=(), repr=False)
    trace: Callable[[], dict[str, Array]] | None = None


def as_array(value: Any) -> Array:
    """A NumPy array of an array, a torch tensor or a TVM tensor (shared where possible)."""
    if hasattr(value, "detach"):
        value = value.detach()
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)
