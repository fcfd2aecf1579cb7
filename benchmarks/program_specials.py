"""Programs that meet NaN, infinities and zeros with a sign, for the programs benchmark."""

from __future__ import annotations

import numpy as np
from tvm import te, tirx, topi

from benchmarks.program_table import FLOATS, Array, Arrays, Made, Row, axis, const, tensor

__all__ = ["SPECIALS"]


def infinities(dtype: str, sizes: tuple[int, ...]) -> Made:
    """inf and nan literals, and comparisons with them."""
    a = tensor("A", dtype, *sizes)
    inf, nan = const(float("inf"), dtype), const(float("nan"), dtype)

    def value(*i: tirx.Var) -> tirx.PrimExpr:
        return tirx.Select(a[i] > const(0, dtype), -inf, tirx.Select(a[i] < inf, a[i], nan))

    t = np.dtype(dtype).type
    return [a, te.compute(sizes, value, "y")], lambda v: np.where(v["A"] > 0, t(-np.inf), v["A"])


def special(a: te.Tensor, *i: tirx.Var) -> tirx.PrimExpr:
    """NaN, infinities and a zero with a sign out of whole floats."""
    dtype = str(a.dtype)
    inf, nan, zero = (const(v, dtype) for v in (float("inf"), float("nan"), -0.0))
    some = tirx.Select(
        a[i] == const(7, dtype), nan, tirx.Select(a[i] == const(0, dtype), zero, a[i])
    )
    return tirx.Select(
        a[i] > const(7, dtype), inf, tirx.Select(a[i] < const(-7, dtype), -inf, some)
    )


def special_of(x: Array) -> Array:
    """The same in NumPy."""
    some = np.where(x == 7, np.nan, np.where(x == 0, -0.0, x))
    return np.where(x > 7, np.inf, np.where(x < -7, -np.inf, some)).astype(x.dtype)


def clipping_of_specials(dtype: str, sizes: tuple[int, ...]) -> Made:
    """A NaN stays one on either side of a minimum or maximum."""
    a, five, zero = tensor("A", dtype, *sizes), const(5, dtype), const(0, dtype)
    y = te.compute(
        sizes, lambda *i: tirx.max(zero, tirx.min(special(a, *i), five)) + tirx.min(five, a[i]), "y"
    )

    def reference(v: Arrays) -> Array:
        t = v["A"].dtype.type
        inner = np.minimum(special_of(v["A"]), t(5))
        return np.asarray(np.maximum(t(0), inner) + np.minimum(v["A"], t(5)))

    return [a, y], reference


def maxima_of_specials(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Of a row without anything but minus infinity it is te's own least number."""
    m, n = sizes
    a, k = tensor("A", dtype, m, n), axis(n)
    y = te.compute((m,), lambda i: te.max(special(a, i, k), axis=k), "y")
    least = np.finfo(dtype).min
    return [a, y], lambda v: special_of(v["A"]).max(1, initial=least)


def places_of_specials(dtype: str, sizes: tuple[int, ...]) -> Made:
    """The first NaN is the place, where there is one."""
    a = tensor("A", dtype, *sizes)
    b = te.compute(sizes, lambda *i: special(a, *i), "b")
    return [a, topi.argmax(b, axis=1)], lambda v: special_of(v["A"]).argmax(1).astype("int32")


SPECIALS: dict[str, Row] = {
    "infinities": Row(1, FLOATS, infinities),
    "clipping of specials": Row(2, FLOATS, clipping_of_specials),
    "maxima of specials": Row(2, FLOATS, maxima_of_specials),
    "places of specials": Row(2, FLOATS, places_of_specials),
}
