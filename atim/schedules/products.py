"""What a multiply-accumulate costs in each of a DPU's forms, as closed forms.

Slots and words are those of kernels built with the emitted text; for int32 with values 0 to 49,
the inputs of the workloads, where `mul_step` ends after 4.8 steps and narrow products never fail.
On other data the measured candidates decide: 32 steps a product of full-range values, and ten byte
products once a value above 255 has been seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atim.schedules.shapes import REGISTER_ROWS, VECTOR_BLOCK, Shape, one_group
from atim.schedules.sketch import Column, Columns, Sketch
from atim.target import (
    DMA_ALIGN_BYTES,
    MULTIPLY_BYTES,
    MULTIPLY_FLOAT,
    MULTIPLY_LIBRARY,
    MULTIPLY_NARROW,
    MULTIPLY_STEPS,
    MULTIPLY_STEPS_SECOND,
    MULTIPLY_WORDS,
)

__all__ = ["ProductCosts", "product_costs"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Form:
    """Costs of one form.

    slots    multiply and add, once an element of a row
    row      further slots for each loaded element that follows the rows, `shared` for each that
             all rows share; `words`: 8 bytes are loaded at a time
    code     instructions of each unrolled copy
    redo     instructions for each row of the rolled-up second way, `tile` slots around a tile
    """

    slots: float
    row: float
    shared: float
    words: bool
    code: float
    redo: float = 0
    tile: float = 0


_FORMS = {
    MULTIPLY_STEPS: Form(4.9, 0, 0, False, 34),
    MULTIPLY_STEPS_SECOND: Form(5.9, 0, 0, False, 35),
    MULTIPLY_BYTES: Form(21.4, 0, 0, False, 23),
    MULTIPLY_NARROW: Form(2, 1, 1, True, 4, redo=30, tile=2),
    MULTIPLY_WORDS: Form(2, 0.25, 0.25, True, 3),
    MULTIPLY_FLOAT: Form(68.5, 0, 0, False, 120, redo=60, tile=60),
}
_HALVES = Form(9, 0.25, 0.25, True, 10)
# the compiler's own code for operands of 8 bits, 16 bits (with small values) and float32
_PLAIN = {1: Form(2, 0, 0, False, 5), 2: Form(2.2, 0, 0, False, 14), 4: Form(240, 0, 0, False, 14)}
# narrow products of factors that don't lie side by side
_SINGLE = Form(2, 1, 1, False, 4, redo=30, tile=2)


@dataclass(frozen=True, slots=True)
class ProductCosts:
    """Of the multiply-accumulate with its loads: slots of a body execution, slots around a tile of
    a row, instructions of a copy and of the second way. `known` is false where the form is a call
    of the compiler's routine."""

    known: Mask
    body: Floats
    tile: Floats
    code: Floats
    redo: Floats


def product_costs(sketch: Sketch, shape: Shape, columns: Columns) -> ProductCosts | None:
    """Costs of every candidate, None where the decision `multiply` doesn't exist."""
    if "multiply" not in columns:
        return None
    chosen = columns["multiply"]
    place = columns.get("vector", np.zeros_like(chosen))
    row = sketch.roles.row
    rows = [o.item_bytes for o in sketch.program.inputs if o.uses(row)]
    shared = [o.item_bytes for o in sketch.program.inputs if not o.uses(row)]
    size = max(o.item_bytes for o in sketch.program.inputs)
    total = np.zeros((4, len(chosen)))
    known = (chosen != MULTIPLY_LIBRARY) | (size == 2)
    for value in np.unique(chosen[known]).tolist():
        at = chosen == value
        for fits, form in _cases(sketch, shape, place, int(value), size):
            held = at & fits
            each = sum(form.row + _load(form, item) for item in rows)
            once = sum(form.shared + _load(form, item) for item in shared)
            total[0] = np.where(held, form.slots + each + once / shape.block, total[0])
            for i, cost in enumerate((form.tile, form.code, form.redo), start=1):
                total[i] = np.where(held, cost, total[i])
    return ProductCosts(known, *total)


def _cases(
    sketch: Sketch, shape: Shape, place: Column, value: int, size: int
) -> list[tuple[Mask, Form]]:
    """Disjoint conditions with the form that is emitted: words need operands that lie side by side
    and an unrolled body of whole words, all but single products need sums in registers."""
    count = DMA_ALIGN_BYTES // size
    registers = shape.block <= REGISTER_ROWS
    tile = sketch.roles.tile
    # sums that wait in WRAM, those of several groups of rows, come into registers around the loop
    # over a tile, if there is one
    once = one_group(sketch, shape)
    loop = (place != VECTOR_BLOCK) | once | (shape.unroll < shape.tile[tile])
    beside = all(o.innermost(tile) == 1 for o in sketch.program.inputs if o.uses(tile))
    whole = registers & (shape.unroll % count == 0) & beside
    if value == MULTIPLY_WORDS:
        form = _FORMS[value] if size == 1 else _HALVES
        return [(whole, form), (~whole, _PLAIN[size])]
    if value == MULTIPLY_NARROW:
        return [
            (whole & loop, _FORMS[value]),
            (registers & ~whole & loop, _SINGLE),
            (~(registers & loop), _FORMS[MULTIPLY_BYTES]),
        ]
    if value == MULTIPLY_FLOAT:
        return [(registers, _FORMS[value]), (~registers, _PLAIN[size])]
    return [(registers | ~registers, _FORMS.get(value, _PLAIN[size]))]


def _load(form: Form, item_bytes: int) -> float:
    return item_bytes / DMA_ALIGN_BYTES if form.words else 1.0
