"""Which form a multiply-accumulate has in a kernel, and what it costs, as closed forms.

Slots and words are those of kernels built with the emitted text; for int32 with values 0 to 49,
the inputs of the workloads, where `mul_step` ends after 4.8 steps and narrow products never fail.
On other data the measured candidates decide: 32 steps a product of full-range values, and ten byte
products once a value above 255 has been seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atim.schedules.program import Operand
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

__all__ = ["ProductCosts", "emitted_forms", "product_costs"]

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


def emitted_forms(sketch: Sketch, shape: Shape, columns: Columns) -> Column:
    """The decision `multiply` of every candidate as its kernel has it: a form that doesn't fit is
    the compiler's, or ten byte products in place of proved bytes."""
    chosen = columns["multiply"]
    chosen = np.where(np.isin(chosen, _forms_of(sketch)), chosen, MULTIPLY_LIBRARY)
    registers = _in_registers(sketch, shape, columns)
    whole = registers & _in_words(sketch, shape)
    chosen = np.where((chosen == MULTIPLY_NARROW) & ~registers, MULTIPLY_BYTES, chosen)
    chosen = np.where((chosen == MULTIPLY_FLOAT) & ~registers, MULTIPLY_LIBRARY, chosen)
    return np.where((chosen == MULTIPLY_WORDS) & ~whole, MULTIPLY_LIBRARY, chosen)


def product_costs(sketch: Sketch, shape: Shape, columns: Columns) -> ProductCosts | None:
    """Costs of every candidate, None where the decision `multiply` doesn't exist."""
    if "multiply" not in columns:
        return None
    chosen = emitted_forms(sketch, shape, columns)
    row = sketch.roles.row
    rows = [o.item_bytes for o in sketch.program.inputs if o.uses(row)]
    shared = [o.item_bytes for o in sketch.program.inputs if not o.uses(row)]
    size = max(o.item_bytes for o in sketch.program.inputs)
    total = np.zeros((4, len(chosen)))
    measured = size == 2 or MULTIPLY_LIBRARY not in _forms_of(sketch)
    known = (chosen != MULTIPLY_LIBRARY) | measured
    for value in np.unique(chosen[known]).tolist():
        at = chosen == value
        for fits, form in _cases(sketch, shape, int(value), size):
            held = at & fits
            each = sum(form.row + _load(form, item) for item in rows)
            once = sum(form.shared + _load(form, item) for item in shared)
            total[0] = np.where(held, form.slots + each + once / shape.block, total[0])
            for i, cost in enumerate((form.tile, form.code, form.redo), start=1):
                total[i] = np.where(held, cost, total[i])
    return ProductCosts(known, *total)


def _cases(sketch: Sketch, shape: Shape, value: int, size: int) -> list[tuple[Mask, Form]]:
    """Disjoint conditions with what the form costs there."""
    everywhere = np.ones_like(shape.block, dtype=bool)
    if value == MULTIPLY_NARROW:
        words = _in_words(sketch, shape)
        return [(words, _FORMS[value]), (~words, _SINGLE)]
    if value == MULTIPLY_WORDS and size == 2:
        return [(everywhere, _HALVES)]
    return [(everywhere, _FORMS.get(value) or _PLAIN[size])]


def _forms_of(sketch: Sketch) -> tuple[int, ...]:
    return next(d.values for d in sketch.decisions if d.name == "multiply")


def _in_registers(sketch: Sketch, shape: Shape, columns: Columns) -> Mask:
    """Sums are in registers while products are added: those of a few rows, and where they wait in
    WRAM between tiles (several groups of rows), those of a tile with more than one product."""
    place = columns.get("vector", np.zeros_like(shape.block))
    passing: Mask = (place != VECTOR_BLOCK) | (shape.tile[sketch.roles.tile] > 1)
    fitting: Mask = shape.block <= REGISTER_ROWS
    return fitting & (passing | one_group(sketch, shape))


def _in_words(sketch: Sketch, shape: Shape) -> Mask:
    """The unrolled body is whole words of operands that lie side by side along the tile, and no
    piece of the reduction ends inside of one."""
    tile, inputs = sketch.roles.tile, sketch.program.inputs
    count = DMA_ALIGN_BYTES // max(o.item_bytes for o in inputs)
    beside = all(_side_by_side(sketch, operand, count) for operand in inputs)
    ends = (shape.dpu[tile] % shape.unroll == 0) | (shape.grid[tile] == 1)
    return np.logical_and(shape.unroll % count == 0, ends) if beside else np.zeros_like(ends)


def _side_by_side(sketch: Sketch, operand: Operand, count: int) -> bool:
    """Elements follow each other along the tile, and everything else moves by whole words."""
    tile, axes = sketch.roles.tile, sketch.program.axes
    others = [
        step
        for axis, step in enumerate(operand.contiguous)
        if axis != tile and axes[axis].extent > 1
    ]
    dimensions = sum(bool(row[tile]) for row in operand.index)
    return (
        operand.innermost(tile) == 1
        and dimensions == 1
        and all(step % count == 0 for step in others)
    )


def _load(form: Form, item_bytes: int) -> float:
    return item_bytes / DMA_ALIGN_BYTES if form.words else 1.0
