"""Windows, groups, choices, and reductions along several axes, for the programs benchmark."""

from __future__ import annotations

import numpy as np
from tvm import te, tirx, topi

from benchmarks.program_table import (
    FLOATS,
    INTEGERS,
    TYPES,
    WIDE,
    Array,
    Arrays,
    Made,
    Row,
    axis,
    const,
    tensor,
    total,
)

__all__ = ["MORE"]

LARGEST_IMAGE = 30
_windows = np.lib.stride_tricks.sliding_window_view


def _image(sizes: tuple[int, ...]) -> tuple[int, int]:
    return min(sizes[0], LARGEST_IMAGE), min(sizes[1], LARGEST_IMAGE)


def tensor_vector(dtype: str, sizes: tuple[int, ...]) -> Made:
    p, m, n = sizes
    a, x, k = tensor("A", dtype, p, m, n), tensor("x", dtype, n), axis(n)
    return [a, x, total((p, m), lambda q, i: a[q, i, k] * x[k], k)], lambda v: v["A"] @ v["x"]


def scaled_matrix_vector(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Scalars that are tensors of one element."""
    m, n = sizes
    a, x, k = tensor("A", dtype, m, n), tensor("x", dtype, n), axis(n)
    alpha, beta, z = tensor("alpha", dtype, 1), tensor("beta", dtype, 1), tensor("z", dtype, m)
    t = te.compute((m,), lambda i: te.sum(a[i, k] * x[k], axis=k), "t")
    y = te.compute((m,), lambda i: alpha[0] * t[i] + beta[0] * z[i], "y")
    return [a, x, alpha, beta, z, y], lambda v: v["alpha"] * (v["A"] @ v["x"]) + v["beta"] * v["z"]


def bytes_matmul(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Narrow operands, int32 sums."""
    m, n, d = sizes
    a, b, k = tensor("A", dtype, m, d), tensor("B", dtype, n, d), axis(d)
    y = total((m, n), lambda i, j: a[i, k].astype("int32") * b[j, k].astype("int32"), k)
    return [a, b, y], lambda v: v["A"].astype("int32") @ v["B"].T.astype("int32")


def sums_of_outer_axes(dtype: str, sizes: tuple[int, ...]) -> Made:
    p, m, n = sizes
    a, q, k = tensor("A", dtype, p, m, n), axis(p, "q"), axis(n)
    y = total((m,), lambda i: a[q, i, k], q, k)
    return [a, y], lambda v: v["A"].sum((0, 2), dtype=dtype)


def mean_of_columns(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Divided by a power of two, so that the quotient is exact."""
    m, n = sizes
    a, k = tensor("A", dtype, m, n), axis(m)
    t = te.compute((n,), lambda j: te.sum(a[k, j], axis=k), "t")
    y = te.compute((n,), lambda j: t[j] * const(0.125, dtype), "y")
    return [a, y], lambda v: v["A"].sum(0, dtype=dtype) * v["A"].dtype.type(0.125)


def clipped_maxima(dtype: str, sizes: tuple[int, ...]) -> Made:
    """The same function in the reduction's finish and after it."""
    m, n = sizes
    a, k = tensor("A", dtype, m, n), axis(n)
    t = te.compute((m,), lambda i: te.max(a[i, k], axis=k), "t")
    y = te.compute((m,), lambda i: tirx.max(t[i], const(2, dtype)), "y")
    return [a, y], lambda v: np.maximum(v["A"].max(1), v["A"].dtype.type(2))


def sums_of_two_halves(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Conditions on axes, in a reduction and after it; the tensor after it is read shifted."""
    m, n = sizes
    a, b, c, k = tensor("A", dtype, n), tensor("B", dtype, m, n), tensor("c", dtype, m), axis(n)
    half, zero = n // 2, const(0, dtype)
    t = te.compute((m,), lambda i: te.sum(tirx.if_then_else(k < half, a[k], b[i, k]), axis=k), "t")
    y = te.compute((m,), lambda i: t[i] - tirx.if_then_else(i >= 1, c[i - 1], zero), "y")

    def reference(v: Arrays) -> Array:
        sums = v["A"][:half].sum(dtype=dtype) + v["B"][:, half:].sum(1, dtype=dtype)
        return np.asarray(sums - np.pad(v["c"], (1, 0))[:-1])

    return [a, b, c, y], reference


def places_in_columns(dtype: str, sizes: tuple[int, ...]) -> Made:
    a = tensor("A", dtype, *sizes)
    return [a, topi.argmax(a, axis=0)], lambda v: v["A"].argmax(0).astype("int32")


def maximum_pooling(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Windows of 3 x 3, 2 apart, the border never chosen."""
    h, w = _image(sizes)
    a = tensor("A", dtype, 1, 2, h, w)
    y = topi.nn.pool2d(a, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")
    least = -np.inf if dtype in FLOATS else np.iinfo(dtype).min

    def reference(v: Arrays) -> Array:
        grown = np.pad(v["A"], ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=least)
        return np.asarray(_windows(grown, (3, 3), axis=(2, 3))[:, :, ::2, ::2].max((4, 5)))

    return [a, y], reference


def average_pooling(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Windows of 2 x 2 with the border's zeros, so that the quotient is exact."""
    h, w = _image(sizes)
    a = tensor("A", dtype, 1, 2, h, w)
    y = topi.nn.pool2d(a, (2, 2), (1, 1), (1, 1), (1, 0, 0, 1), "avg", count_include_pad=True)

    def reference(v: Arrays) -> Array:
        grown = np.pad(v["A"], ((0, 0), (0, 0), (1, 0), (0, 1)))
        return np.asarray(_windows(grown, (2, 2), axis=(2, 3)).sum((4, 5)) / grown.dtype.type(4))

    return [a, y], reference


def depthwise_convolution(dtype: str, sizes: tuple[int, ...]) -> Made:
    (h, w), c = _image(sizes), 3
    a, f = tensor("A", dtype, 1, c, h, w), tensor("F", dtype, c, 1, 3, 3)

    def reference(v: Arrays) -> Array:
        grown = np.pad(v["A"], ((0, 0), (0, 0), (1, 1), (1, 1)))
        boxes = _windows(grown, (3, 3), axis=(2, 3))
        return np.asarray((boxes * v["F"][:, 0, None, None]).sum((4, 5), dtype=dtype))

    y = topi.nn.depthwise_conv2d_nchw(a, f, (1, 1), (1, 1), (1, 1), out_dtype=dtype)
    return [a, f, y], reference


def grouped_convolution(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Two groups of two channels, three results of each."""
    h, w = _image(sizes)
    a, f = tensor("A", dtype, 1, 4, h + 2, w + 2), tensor("F", dtype, 6, 2, 3, 3)

    def reference(v: Arrays) -> Array:
        boxes = _windows(v["A"], (3, 3), axis=(2, 3))
        parts = [
            np.tensordot(
                boxes[:, 2 * g : 2 * g + 2], v["F"][3 * g : 3 * g + 3], ((1, 4, 5), (1, 2, 3))
            )
            for g in (0, 1)
        ]
        return np.asarray(np.concatenate(parts, axis=3).transpose(0, 3, 1, 2))

    y = topi.nn.group_conv2d_nchw(a, f, 1, 0, 1, 2, out_dtype=dtype)
    return [a, f, y], reference


def pointwise_convolution(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Every third place; the weights' last axis is one long."""
    c, n = min(sizes[0], 6), sizes[1]
    a, w = tensor("A", dtype, 1, c, 3 * n), tensor("W", dtype, 3, c, 1)
    y = topi.nn.conv1d(a, w, strides=3, padding=0, data_layout="NCW", out_dtype=dtype)
    return [a, w, y], lambda v: (v["W"][:, :, 0] @ v["A"][0, :, ::3])[None]


def concatenation(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a, b = tensor("A", dtype, m, n), tensor("B", dtype, m, 3)
    y = te.compute((m, n + 3), lambda i, j: tirx.if_then_else(j < n, a[i, j], b[i, j - n]), "y")
    return [a, b, y], lambda v: np.concatenate([v["A"], v["B"]], axis=1)


def lower_triangle(dtype: str, sizes: tuple[int, ...]) -> Made:
    """A choice by place, as masked attention makes."""
    a, least = tensor("A", dtype, *sizes), const(0, dtype)
    y = te.compute(sizes, lambda i, j: tirx.Select(j <= i, a[i, j], least), "y")
    return [a, y], lambda v: np.tril(v["A"])


def narrowed(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Floats outside of 8 bits wrap, in a sum and after it."""
    m, n = sizes
    a, k, scale = tensor("A", dtype, m, n), axis(n), const(45, dtype)
    t = te.compute(
        (m,), lambda i: te.sum((a[i, k] * scale).astype("int8").astype("int32"), axis=k), "t"
    )
    y = te.compute((m,), lambda i: (t[i].astype(dtype) * scale).astype("uint8"), "y")

    def reference(v: Arrays) -> Array:
        factor = v["A"].dtype.type(45)
        sums = (v["A"] * factor).astype("int32").astype("int8").sum(1, dtype="int32")
        return np.asarray((sums.astype(dtype) * factor).astype("int32").astype("uint8"))

    return [a, y], reference


def greater_of_two(dtype: str, sizes: tuple[int, ...]) -> Made:
    """A choice by value, of sums and differences."""
    a, b = tensor("A", dtype, *sizes), tensor("B", dtype, *sizes)
    y = te.compute(
        sizes, lambda *i: tirx.Select(a[i] < b[i], b[i] - a[i], a[i] + const(1, dtype)), "y"
    )
    one = np.dtype(dtype).type(1)
    return [a, b, y], lambda v: np.where(v["A"] < v["B"], v["B"] - v["A"], v["A"] + one)


def shifts_and_masks(dtype: str, sizes: tuple[int, ...]) -> Made:
    a, b = tensor("A", dtype, *sizes), tensor("B", dtype, *sizes)
    two, three = const(2, dtype), const(3, dtype)
    y = te.compute(sizes, lambda *i: ((a[i] >> two) ^ (b[i] & a[i])) | (b[i] << three), "y")
    t = np.dtype(dtype).type
    return [a, b, y], lambda v: ((v["A"] >> t(2)) ^ (v["B"] & v["A"])) | (v["B"] << t(3))


def truncated_division(dtype: str, sizes: tuple[int, ...]) -> Made:
    """The quotient and the rest as C has them, of negative numbers too."""
    a, five = tensor("A", dtype, *sizes), const(5, dtype)
    y = te.compute(sizes, lambda *i: tirx.truncdiv(a[i], five) - tirx.truncmod(a[i], five), "y")

    def reference(v: Arrays) -> Array:
        five_of = v["A"].dtype.type(5)
        rest = np.fmod(v["A"], five_of)
        return np.asarray((v["A"] - rest) // five_of - rest)

    return [a, y], reference


def inner_part(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a = tensor("A", dtype, m + 3, 2 * n + 5)
    y = te.compute((m, n), lambda i, j: a[i + 2, 2 * j + 3], "y")
    return [a, y], lambda v: v["A"][2:-1, 3:-2:2]


MORE: dict[str, Row] = {
    "tensor vector": Row(3, TYPES, tensor_vector),
    "scaled matrix vector": Row(2, TYPES, scaled_matrix_vector),
    "bytes matmul": Row(3, ("int8", "uint8", "int16"), bytes_matmul),
    "sums of outer axes": Row(3, TYPES, sums_of_outer_axes),
    "mean of columns": Row(2, FLOATS, mean_of_columns),
    "clipped maxima": Row(2, TYPES, clipped_maxima),
    "sums of two halves": Row(2, TYPES, sums_of_two_halves),
    "places in columns": Row(2, TYPES, places_in_columns),
    "maximum pooling": Row(2, ("int8", "uint8", "int32", "float32"), maximum_pooling),
    "average pooling": Row(2, FLOATS, average_pooling),
    "depthwise convolution": Row(2, ("int8", "int16", *WIDE), depthwise_convolution),
    "grouped convolution": Row(2, ("int8", "int32", "float32"), grouped_convolution),
    "pointwise convolution": Row(2, TYPES, pointwise_convolution),
    "concatenation": Row(2, TYPES, concatenation),
    "lower triangle": Row(2, TYPES, lower_triangle),
    "narrowed": Row(2, FLOATS, narrowed),
    "greater of two": Row(2, TYPES, greater_of_two),
    "shifts and masks": Row(1, INTEGERS, shifts_and_masks),
    "truncated division": Row(1, INTEGERS, truncated_division),
    "inner part": Row(2, TYPES, inner_part),
}
