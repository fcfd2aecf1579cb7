"""Tensor programs for the correctness benchmark: expression, NumPy reference, sizes, types.

A row builds `te` tensors from a few sizes and a type; the reference is written in NumPy and shares
nothing with the compiler. Integers wrap; floats are filled with small whole numbers, so that every
order of summation gives the same value and results can be compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx, topi

__all__ = ["PLAIN", "TYPES", "Arrays", "Made", "Row", "axis", "const", "fill", "tensor", "total"]

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Made = tuple[list[te.Tensor], Callable[[Arrays], Array]]
Build = Callable[[str, tuple[int, ...]], Made]

TYPES = ("int8", "uint8", "int16", "int32", "int64", "float32", "float64")
SIGNED = tuple(t for t in TYPES if t != "uint8")
FLOATS = ("float32", "float64")
INTEGERS = tuple(t for t in TYPES if t not in FLOATS)
WIDE = ("int32", "int64", *FLOATS)


@dataclass(frozen=True, slots=True)
class Row:
    """A program: number of its sizes, the types it makes sense in, and how it is built. tolerance:
    of each element, relative; 0 for equal."""

    sizes: int
    types: tuple[str, ...]
    build: Build
    tolerance: float = 0.0


def fill(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Full-range integers, or whole floats from -8 to 8."""
    if np.dtype(dtype).kind == "f":
        return rng.integers(-8, 9, shape).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


def tensor(name: str, dtype: str, *shape: int) -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def axis(extent: int, name: str = "k") -> tirx.IterVar:
    return te.reduce_axis((0, extent), name)


def const(value: float, dtype: str) -> tirx.PrimExpr:
    return tirx.const(value, dtype)


def total(
    shape: tuple[int, ...], value: Callable[..., tirx.PrimExpr], *axes: tirx.IterVar
) -> te.Tensor:
    return te.compute(shape, lambda *i: te.sum(value(*i), axis=list(axes)), "y")


# element-wise ------------------------------------------------------------------------------------


def add(dtype: str, sizes: tuple[int, ...]) -> Made:
    a, b = tensor("A", dtype, *sizes), tensor("B", dtype, *sizes)
    return [a, b, te.compute(sizes, lambda *i: a[i] + b[i], "C")], lambda v: v["A"] + v["B"]


def scaled_add(dtype: str, sizes: tuple[int, ...]) -> Made:
    a, b = tensor("A", dtype, *sizes), tensor("B", dtype, *sizes)
    three, five = const(3, dtype), const(5, dtype)
    c = te.compute(sizes, lambda *i: three * a[i] + five * b[i], "C")
    t = np.dtype(dtype).type
    return [a, b, c], lambda v: t(3) * v["A"] + t(5) * v["B"]


def bias_relu(dtype: str, sizes: tuple[int, ...]) -> Made:
    a, b = tensor("A", dtype, *sizes), tensor("b", dtype, sizes[1])
    y = te.compute(sizes, lambda i, j: tirx.max(a[i, j] + b[j], const(0, dtype)), "y")
    return [a, b, y], lambda v: np.maximum(v["A"] + v["b"], v["A"].dtype.type(0))


def residual_of_rows(dtype: str, sizes: tuple[int, ...]) -> Made:
    a, r, b = tensor("A", dtype, *sizes), tensor("R", dtype, *sizes), tensor("b", dtype, sizes[0])
    t = te.compute(sizes, lambda i, j: a[i, j] * b[i], "t")
    y = te.compute(sizes, lambda i, j: t[i, j] + r[i, j], "y")
    return [a, r, b, y], lambda v: v["A"] * v["b"][:, None] + v["R"]


def floor_division(dtype: str, sizes: tuple[int, ...]) -> Made:
    """The quotient by a constant and the rest of another division, both rounded down."""
    a, seven, five = tensor("A", dtype, *sizes), const(7, dtype), const(5, dtype)

    def value(*i: tirx.Var) -> tirx.PrimExpr:
        return tirx.floordiv(a[i], seven) + tirx.floormod(a[i], five)

    t = np.dtype(dtype).type
    return [a, te.compute(sizes, value, "y")], lambda v: v["A"] // t(7) + v["A"] % t(5)


def widening(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Narrow sums wrap before they are widened."""
    a, b = tensor("A", dtype, *sizes), tensor("B", dtype, *sizes)
    y = te.compute(sizes, lambda *i: (a[i] + b[i]).astype("int32"), "y")
    return [a, b, y], lambda v: (v["A"] + v["B"]).astype("int32")


def clipping(dtype: str, sizes: tuple[int, ...]) -> Made:
    a = tensor("A", dtype, *sizes)
    low, high = const(-2 if dtype != "uint8" else 3, dtype), const(6, dtype)
    y = te.compute(sizes, lambda *i: tirx.max(tirx.min(a[i], high), low), "y")
    t = np.dtype(dtype).type
    low_value = t(3) if dtype == "uint8" else t(-2)
    return [a, y], lambda v: np.clip(v["A"], low_value, t(6))


# moving elements ---------------------------------------------------------------------------------


def transposition(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a = tensor("A", dtype, m, n)
    return [a, te.compute((n, m), lambda i, j: a[j, i], "y")], lambda v: v["A"].T


def permutation(dtype: str, sizes: tuple[int, ...]) -> Made:
    p, m, n = sizes
    a = tensor("A", dtype, p, m, n)
    y = te.compute((m, n, p), lambda i, j, k: a[k, i, j], "y")
    return [a, y], lambda v: v["A"].transpose(1, 2, 0)


def every_third(dtype: str, sizes: tuple[int, ...]) -> Made:
    """A gather by a constant map: steps."""
    m, n = sizes
    a = tensor("A", dtype, m, 3 * n)
    return [a, te.compute((m, n), lambda i, j: a[i, 3 * j + 1], "y")], lambda v: v["A"][:, 1::3]


def reversal(dtype: str, sizes: tuple[int, ...]) -> Made:
    """A gather by a constant map: backwards."""
    (n,) = sizes
    a = tensor("A", dtype, n)
    return [a, te.compute((n,), lambda i: a[n - 1 - i], "y")], lambda v: v["A"][::-1]


def outer_product(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a, b = tensor("A", dtype, m), tensor("B", dtype, n)
    y = te.compute((m, n), lambda i, j: a[i] * b[j], "y")
    return [a, b, y], lambda v: np.multiply.outer(v["A"], v["B"])


def padded(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a, zero = tensor("A", dtype, m, n), const(0, dtype)

    def value(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        inside = tirx.all(i >= 1, i < m + 1, j >= 2, j < n + 2)
        return tirx.if_then_else(inside, a[i - 1, j - 2], zero)

    y = te.compute((m + 2, n + 4), value, "y")
    return [a, y], lambda v: np.pad(v["A"], ((1, 1), (2, 2)))


# reductions --------------------------------------------------------------------------------------


def sum_of_all(dtype: str, sizes: tuple[int, ...]) -> Made:
    (n,) = sizes
    a, k = tensor("A", dtype, n), axis(n)
    y = total((1,), lambda _: a[k], k)
    return [a, y], lambda v: v["A"].sum(dtype=dtype).reshape(1)


def row_sums(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a, k = tensor("A", dtype, m, n), axis(n)
    return [a, total((m,), lambda i: a[i, k], k)], lambda v: v["A"].sum(1, dtype=dtype)


def column_sums(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a, k = tensor("A", dtype, m, n), axis(m)
    return [a, total((n,), lambda j: a[k, j], k)], lambda v: v["A"].sum(0, dtype=dtype)


def sums_of_the_middle(dtype: str, sizes: tuple[int, ...]) -> Made:
    p, m, n = sizes
    a, k = tensor("A", dtype, p, m, n), axis(m)
    return [a, total((p, n), lambda i, j: a[i, k, j], k)], lambda v: v["A"].sum(1, dtype=dtype)


def row_maxima(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a, k = tensor("A", dtype, m, n), axis(n)
    y = te.compute((m,), lambda i: te.max(a[i, k], axis=k), "y")
    return [a, y], lambda v: v["A"].max(1)


def column_minima(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a, k = tensor("A", dtype, m, n), axis(m)
    y = te.compute((n,), lambda j: te.min(a[k, j], axis=k), "y")
    return [a, y], lambda v: v["A"].min(0)


def row_means(dtype: str, sizes: tuple[int, ...]) -> Made:
    """By a power of two, so that the quotient is exact."""
    m, n = sizes
    a, k = tensor("A", dtype, m, n), axis(n)
    t = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), "t")
    y = te.compute((m,), lambda i: t[i] / const(16, dtype), "y")
    return [a, y], lambda v: v["A"].sum(1, dtype=dtype) / v["A"].dtype.type(16)


# products of matrices ----------------------------------------------------------------------------


def matrix_vector(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a, x, k = tensor("A", dtype, m, n), tensor("x", dtype, n), axis(n)
    return [a, x, total((m,), lambda i: a[i, k] * x[k], k)], lambda v: v["A"] @ v["x"]


def bytes_matrix_vector(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Bytes summed in int32, scaled, with a bias, clipped at 0."""
    m, n = sizes
    a, x, k = tensor("A", dtype, m, n), tensor("x", dtype, n), axis(n)
    b = tensor("b", "int32", m)
    t = te.compute(
        (m,), lambda i: te.sum(a[i, k].astype("int32") * x[k].astype("int32"), axis=k), "t"
    )
    y = te.compute((m,), lambda i: tirx.max(t[i] + b[i], const(0, "int32")), "y")

    def reference(v: Arrays) -> Array:
        sums = v["A"].astype("int32") @ v["x"].astype("int32") + v["b"]
        return np.asarray(np.maximum(sums, np.int32(0)))

    return [a, x, b, y], reference


def batched_matrix_vector(dtype: str, sizes: tuple[int, ...]) -> Made:
    p, m, n = sizes
    a, x, k = tensor("A", dtype, p, m, n), tensor("x", dtype, p, n), axis(n)
    y = total((p, m), lambda q, i: a[q, i, k] * x[q, k], k)
    return [a, x, y], lambda v: (v["A"] @ v["x"][:, :, None])[:, :, 0]


def matmul(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n, d = sizes
    a, b, k = tensor("A", dtype, m, d), tensor("B", dtype, d, n), axis(d)
    return [a, b, total((m, n), lambda i, j: a[i, k] * b[k, j], k)], lambda v: v["A"] @ v["B"]


def matmul_both_transposed(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n, d = sizes
    a, b, k = tensor("A", dtype, d, m), tensor("B", dtype, n, d), axis(d)
    return [a, b, total((m, n), lambda i, j: a[k, i] * b[j, k], k)], lambda v: v["A"].T @ v["B"].T


def linear_relu(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n, d = sizes
    a, w, b, k = tensor("A", dtype, m, d), tensor("W", dtype, n, d), tensor("b", dtype, n), axis(d)
    t = te.compute((m, n), lambda i, j: te.sum(a[i, k] * w[j, k], axis=k), "t")
    y = te.compute((m, n), lambda i, j: tirx.max(t[i, j] + b[j], const(0, dtype)), "y")
    return [a, w, b, y], lambda v: np.maximum(v["A"] @ v["W"].T + v["b"], v["A"].dtype.type(0))


def batched_matmul(dtype: str, sizes: tuple[int, ...]) -> Made:
    p, m, d = sizes
    a, b, k = tensor("A", dtype, p, m, d), tensor("B", dtype, p, d, 6), axis(d)
    y = total((p, m, 6), lambda q, i, j: a[q, i, k] * b[q, k, j], k)
    return [a, b, y], lambda v: v["A"] @ v["B"]


# windows -----------------------------------------------------------------------------------------


def convolution_1d(dtype: str, sizes: tuple[int, ...]) -> Made:
    (n,) = sizes
    a, w, r = tensor("A", dtype, n + 4), tensor("w", dtype, 5), axis(5, "r")
    windows = np.lib.stride_tricks.sliding_window_view
    return [a, w, total((n,), lambda i: a[i + r] * w[r], r)], lambda v: windows(v["A"], 5) @ v["w"]


def convolution_2d(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Channels last in the weights, as topi lays them out: [out, in, 3, 3]."""
    c, h, w = min(sizes[0], 6), *sizes[1:]
    a, f = tensor("A", dtype, 1, c, h + 2, w + 2), tensor("F", dtype, 3, c, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view

    def reference(v: Arrays) -> Array:
        boxes = windows(v["A"], (3, 3), axis=(2, 3))
        with np.errstate(over="ignore"):
            sums = np.tensordot(boxes, v["F"], axes=((1, 4, 5), (1, 2, 3)))
        return np.asarray(sums.transpose(0, 3, 1, 2))

    return [a, f, topi.nn.conv2d_nchw(a, f, 1, 0, 1, out_dtype=dtype)], reference


def five_points(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a = tensor("A", dtype, m + 2, n + 2)

    def value(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        return a[i + 1, j + 1] + a[i, j + 1] + a[i + 2, j + 1] + a[i + 1, j] + a[i + 1, j + 2]

    def reference(v: Arrays) -> Array:
        x = v["A"]
        return x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]

    return [a, te.compute((m, n), value, "y")], reference


PLAIN: dict[str, Row] = {
    "add": Row(1, TYPES, add),
    "add 3-d": Row(3, TYPES, add),
    "scaled add": Row(1, TYPES, scaled_add),
    "bias relu": Row(2, TYPES, bias_relu),
    "residual of rows": Row(2, TYPES, residual_of_rows),
    "floor division": Row(2, INTEGERS, floor_division),
    "widening": Row(1, ("int8", "uint8", "int16"), widening),
    "clipping": Row(2, TYPES, clipping),
    "transposition": Row(2, TYPES, transposition),
    "permutation": Row(3, TYPES, permutation),
    "every third": Row(2, TYPES, every_third),
    "reversal": Row(1, TYPES, reversal),
    "outer product": Row(2, TYPES, outer_product),
    "padded": Row(2, TYPES, padded),
    "sum of all": Row(1, TYPES, sum_of_all),
    "row sums": Row(2, TYPES, row_sums),
    "column sums": Row(2, TYPES, column_sums),
    "sums of the middle": Row(3, TYPES, sums_of_the_middle),
    "row maxima": Row(2, TYPES, row_maxima),
    "column minima": Row(2, TYPES, column_minima),
    "row means": Row(2, FLOATS, row_means),
    "matrix vector": Row(2, TYPES, matrix_vector),
    "bytes matrix vector": Row(2, ("int8", "uint8", "int16"), bytes_matrix_vector),
    "batched matrix vector": Row(3, TYPES, batched_matrix_vector),
    "matmul": Row(3, TYPES, matmul),
    "matmul both transposed": Row(3, TYPES, matmul_both_transposed),
    "linear relu": Row(3, TYPES, linear_relu),
    "batched matmul": Row(3, WIDE, batched_matmul),
    "convolution 1-d": Row(1, TYPES, convolution_1d),
    "convolution 2-d": Row(3, ("int32", "int8", "float32"), convolution_2d),
    "five points": Row(2, TYPES, five_points),
}
