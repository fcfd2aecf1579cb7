"""What a run gives back, wherever it ran: outputs, the time of each phase, counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = ["Outcome", "Piece", "Timing"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each phase of one call."""

    h2d: float
    kernel: float
    d2h: float
    host: float

    @property
    def total(self) -> float:
        """The objective of the search."""
        return self.h2d + self.kernel + self.d2h + self.host


@dataclass(frozen=True, slots=True)
class Piece:
    """What one simulated DPU owns of one output or intermediate: values[...] from `start` on."""

    tensor: str
    dpu: int
    start: tuple[int, ...]
    values: Array


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run. `outputs` is None when only representatives ran; `pieces` when all did.

    `counters` are those of the DPU with the most cycles, how many DPUs and classes there were, and
    how far two DPUs of one class were apart.
    """

    outputs: dict[str, Array] | None
    pieces: tuple[Piece, ...]
    timing: Timing
    counters: dict[str, int]
