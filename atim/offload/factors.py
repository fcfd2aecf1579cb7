"""What the values of integers add to the closed form of a product.

The tuner's closed forms are those of values 0 to 49 (schedules/products.py). `mul_step` goes on to
the highest bit of a factor, which in negative numbers is the last; the byte form falls back to ten
byte products once a factor needs more than a byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atim.schedules import Sketch
from atim.schedules.shapes import shape_of
from atim.target import (
    MULTIPLY_LIBRARY,
    MULTIPLY_NARROW,
    MULTIPLY_STEPS,
    MULTIPLY_STEPS_SECOND,
)

__all__ = ["Factor", "extra_s", "factor_of"]

ASSUMED_STEPS = 4.8  # of values 0 to 49
WIDE = 19.4  # instructions a product: 23.4 of the byte form with wide values, 4.0 with narrow ones
PIPELINE = 11  # tasklets that it takes to issue an instruction every cycle
SAMPLED = 65536


@dataclass(frozen=True, slots=True)
class Factor:
    """Values of an int32 operand. steps: of `mul_step`, on average; narrow: all are bytes."""

    steps: float
    narrow: bool


def factor_of(array: NDArray[Any]) -> Factor | None:
    """Of an array of int32, None for other types."""
    if array.dtype != np.int32 or not array.size:
        return None
    sample = array.reshape(-1)[:: max(array.size // SAMPLED, 1)].astype(np.int64)
    bits = np.ceil(np.log2(np.maximum(sample, 0) + 1.0))
    steps = float(np.where(sample < 0, 32, bits).mean())
    return Factor(steps, bool((sample >= 0).all() and (sample < 256).all()))


def extra_s(
    sketch: Sketch, decisions: Mapping[str, int], factors: Mapping[str, Factor | None]
) -> float:
    """Seconds that the kernel of a candidate takes longer than its closed form says.

    factors: by input tensor; 0 where the program is no product of two of them.
    """
    known = [factors.get(o.name) for o in sketch.program.inputs]
    first, second = known if len(known) == 2 else (None, None)
    if first is None or second is None or "multiply" not in decisions:
        return 0.0
    more = {
        MULTIPLY_STEPS: first.steps - ASSUMED_STEPS,
        MULTIPLY_STEPS_SECOND: second.steps - ASSUMED_STEPS,
        MULTIPLY_LIBRARY: min(first.steps, second.steps) - ASSUMED_STEPS,
        MULTIPLY_NARROW: 0.0 if first.narrow and second.narrow else WIDE,
    }.get(decisions["multiply"], 0.0)
    shape = shape_of(sketch, sketch.columns(sketch.vector(decisions)))
    products = prod(
        min(int(size[0]), axis.extent)
        for size, axis in zip(shape.dpu, sketch.program.axes, strict=True)
    )
    tasklets = decisions.get("tasklets", 1) * decisions.get("tasklets_outer", 1)
    cycles = max(more, 0.0) * products * max(1.0, PIPELINE / tasklets)
    return cycles / (sketch.target.chip.clock_mhz * 1e6)
