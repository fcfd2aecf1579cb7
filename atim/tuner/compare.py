"""A measured candidate's numbers beside NumPy's: equal for integers, near enough for floats.

Infinities and NaN have to be where NumPy has them, of the same sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import tirx

from atim import runtime
from atim.errors import MismatchError
from atim.evaluate import axes, evaluate, written
from atim.schedules import Sketch
from atim.schedules.shapes import shape_of

__all__ = ["check_outputs", "check_piece", "terms_summed", "tolerance_of"]

Array = NDArray[Any]


def check_piece(
    sketch: Sketch, decisions: Mapping[str, int], arrays: Mapping[str, Array], piece: runtime.Piece
) -> None:
    """Compare what one DPU computed with NumPy. Raises MismatchError."""
    what = f"DPU {piece.dpu}: {piece.tensor}"
    if piece.tensor in written(sketch.func):
        _check(sketch.func, what, piece.tensor, arrays, piece.start, piece.values, {})
        return
    # Partial results: the first dimension counts the pieces of the reduction. Where they are cut
    # follows from the decisions alone, not from the generated code, which is what is checked.
    axis = sketch.roles.piece
    assert axis is not None, piece.tensor
    shape = shape_of(sketch, sketch.columns(sketch.vector(decisions)))
    span, extent = int(shape.dpu[axis][0]), sketch.program.axes[axis].extent
    for number, values in enumerate(piece.values, piece.start[0]):
        cut = (min(number * span, extent), min((number + 1) * span, extent))
        name = sketch.program.output.name
        _check(sketch.func, what, name, arrays, piece.start[1:], values, {axis: cut})


def check_outputs(
    func: tirx.PrimFunc, arrays: Mapping[str, Array], outputs: Mapping[str, Array]
) -> None:
    """Compare complete outputs with NumPy. Raises MismatchError."""
    for name, values in outputs.items():
        _check(func, name, name, arrays, (0,) * values.ndim, values, {})


def _check(
    func: tirx.PrimFunc,
    what: str,
    tensor: str,
    arrays: Mapping[str, Array],
    start: Sequence[int],
    values: Array,
    cuts: Mapping[int, tuple[int, int]],
) -> None:
    """Compare values of a tensor from `start` on; `cuts` are ranges of its reduction axes.

    What lies past the end of an axis is padding, and may be anything.
    """
    of_tensor = axes(func, tensor)
    box = [cuts.get(n, (0, axis.extent)) for n, axis in enumerate(of_tensor)]
    spatial = [n for n, axis in enumerate(of_tensor) if not axis.reduction]
    if len(spatial) != values.ndim:
        raise MismatchError(f"{what}: {values.ndim} dimensions, should be {len(spatial)}")
    for n, low, size in zip(spatial, start, values.shape, strict=True):
        box[n] = (min(low, box[n][1]), min(low + size, box[n][1]))
    inside = tuple(slice(0, box[n][1] - box[n][0]) for n in spatial)
    wanted = evaluate(func, arrays, box, output=tensor)
    _compare(what, values[inside], wanted, terms_summed(func))


def terms_summed(func: tirx.PrimFunc) -> int:
    """How many terms are summed into one value of the output, at most."""
    blocks = [axes(func, tensor) for tensor in written(func)]
    return math.prod(axis.extent for block in blocks for axis in block if axis.reduction)


def tolerance_of(wanted: Array, terms: int) -> float:
    """How far a result may be from NumPy's; 0 for integers."""
    if not np.issubdtype(wanted.dtype, np.floating):
        return 0.0
    # Rounding errors of a sum walk at random: many standard deviations of that.
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = float(np.max(finite, initial=0.0))
    return float(np.finfo(wanted.dtype).eps) * (4 + 4 * math.sqrt(terms)) * scale


def _compare(what: str, values: Array, wanted: Array, terms: int) -> None:
    if values.shape != wanted.shape or values.dtype != wanted.dtype:
        raise MismatchError(
            f"{what} is {values.dtype}{list(values.shape)},"
            f" should be {wanted.dtype}{list(wanted.shape)}"
        )
    allowed = tolerance_of(wanted, terms)
    if np.issubdtype(wanted.dtype, np.floating):
        with np.errstate(all="ignore"):
            far = ~(np.abs(values.astype(np.float64) - wanted.astype(np.float64)) <= allowed)
        same = (values == wanted) | (np.isnan(values) & np.isnan(wanted))  # infinities, NaN
        wrong = far & ~same
    else:
        wrong = values != wanted
    if wrong.any():
        at = tuple(int(n) for n in np.argwhere(wrong)[0])
        raise MismatchError(
            f"{what}{list(at)} is {values[at]}, should be {wanted[at]}"
            f" ({int(wrong.sum())} of {wrong.size} wrong)"
        )
