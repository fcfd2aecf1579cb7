"""Programs of several stages, and index maps that no tile follows, for the programs benchmark."""

from __future__ import annotations

import numpy as np
from scipy import special
from tvm import te, tirx, topi

from benchmarks.program_more import MORE
from benchmarks.program_specials import SPECIALS
from benchmarks.program_table import (
    FLOATS,
    INTEGERS,
    PLAIN,
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

__all__ = ["PROGRAMS"]

# of results that the host or a DPU rounds on the way
ROUNDED = 1e-5


def softmax(dtype: str, sizes: tuple[int, ...]) -> Made:
    a = tensor("A", dtype, *sizes)

    def reference(v: Arrays) -> Array:
        return np.asarray(special.softmax(v["A"].astype("float64"), axis=1).astype(dtype))

    return [a, topi.nn.softmax(a, axis=1)], reference


def log_softmax(dtype: str, sizes: tuple[int, ...]) -> Made:
    a = tensor("A", dtype, *sizes)

    def reference(v: Arrays) -> Array:
        return np.asarray(special.log_softmax(v["A"].astype("float64"), axis=1).astype(dtype))

    return [a, topi.nn.log_softmax(a, axis=1)], reference


def layer_norm(dtype: str, sizes: tuple[int, ...]) -> Made:
    a, g, b = tensor("A", dtype, *sizes), tensor("g", dtype, sizes[1]), tensor("b", dtype, sizes[1])

    def reference(v: Arrays) -> Array:
        x = v["A"].astype("float64")
        spread = np.sqrt(x.var(1, keepdims=True) + 1e-5)
        return np.asarray(((x - x.mean(1, keepdims=True)) / spread * v["g"] + v["b"]).astype(dtype))

    return [a, g, b, topi.nn.layer_norm(a, g, b, [1])], reference


def rms_norm(dtype: str, sizes: tuple[int, ...]) -> Made:
    a, g = tensor("A", dtype, *sizes), tensor("g", dtype, sizes[1])

    def reference(v: Arrays) -> Array:
        x = v["A"].astype("float64")
        size = np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)
        return np.asarray((x / size * v["g"]).astype(dtype))

    return [a, g, topi.nn.rms_norm(a, g, [1])], reference


def gelu(dtype: str, sizes: tuple[int, ...]) -> Made:
    """With a residual: alone, next to nothing is left of negative numbers but rounding."""
    a = tensor("A", dtype, *sizes)
    inner = topi.add(topi.erf(topi.multiply(a, const(0.5**0.5, dtype))), const(1, dtype))
    y = topi.add(a, topi.multiply(topi.multiply(a, const(0.5, dtype)), inner))

    def reference(v: Arrays) -> Array:
        x = v["A"].astype("float64")
        return np.asarray((x + 0.5 * x * (1 + special.erf(x / np.sqrt(2)))).astype(dtype))

    return [a, y], reference


def dense_tanh(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n, d = sizes
    a, w = tensor("A", dtype, m, d), tensor("W", dtype, n, d)
    y = topi.tanh(topi.multiply(topi.nn.dense(a, w), const(0.03125, dtype)))

    def reference(v: Arrays) -> Array:
        return np.asarray(np.tanh(v["A"].astype("float64") @ v["W"].T / 32).astype(dtype))

    return [a, w, y], reference


def places_of_maxima(dtype: str, sizes: tuple[int, ...]) -> Made:
    a = tensor("A", dtype, *sizes)
    return [a, topi.argmax(a, axis=1)], lambda v: v["A"].argmax(1).astype("int32")


def places_of_minima(dtype: str, sizes: tuple[int, ...]) -> Made:
    a = tensor("A", dtype, *sizes)
    y = topi.argmin(a, axis=0, keepdims=True)
    return [a, y], lambda v: v["A"].argmin(0, keepdims=True).astype("int32")


def centred(dtype: str, sizes: tuple[int, ...]) -> Made:
    """A sum, kept as an axis of 1, taken off all of its elements."""
    a = tensor("A", dtype, *sizes)
    y = topi.subtract(a, topi.sum(a, axis=(0, 2), keepdims=True))
    return [a, y], lambda v: v["A"] - v["A"].sum((0, 2), keepdims=True, dtype=dtype)


def two_layers(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n, d = sizes
    w, u, x = tensor("W", dtype, n, d), tensor("U", dtype, m, n), tensor("x", dtype, d)
    k, q = axis(d), axis(n, "q")
    h = te.compute((n,), lambda i: te.sum(w[i, k] * x[k], axis=k), "h")
    r = te.compute((n,), lambda i: tirx.max(h[i], const(0, dtype)), "r")
    y = total((m,), lambda i: u[i, q] * r[q], q)

    def reference(v: Arrays) -> Array:
        return np.asarray(v["U"] @ np.maximum(v["W"] @ v["x"], v["x"].dtype.type(0)))

    return [w, u, x, y], reference


def with_its_transposed(dtype: str, sizes: tuple[int, ...]) -> Made:
    (n,) = (min(sizes[0], 70),)
    a = tensor("A", dtype, n, n)
    y = te.compute((n, n), lambda i, j: a[i, j] + a[j, i], "y")
    return [a, y], lambda v: v["A"] + v["A"].T


def gram_matrix(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, d = sizes[0], sizes[1]
    a, k = tensor("A", dtype, m, d), axis(d)
    y = total((m, m), lambda i, j: a[i, k] * a[j, k], k)
    return [a, y], lambda v: v["A"] @ v["A"].T


def repeated_rows(dtype: str, sizes: tuple[int, ...]) -> Made:
    m, n = sizes
    a = tensor("A", dtype, m, n)
    y = te.compute((3 * m, n), lambda i, j: a[i // 3, (j + i) % n], "y")

    def reference(v: Arrays) -> Array:
        return np.stack([np.roll(v["A"][i // 3], -i) for i in range(3 * m)])

    return [a, y], reference


def dilated_convolution(dtype: str, sizes: tuple[int, ...]) -> Made:
    """Padding of 2, every second result, taps 2 apart."""
    h, w = min(sizes[0], 30), min(sizes[1], 30)
    a, f = tensor("A", dtype, 1, 2, h, w), tensor("F", dtype, 3, 2, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view

    def reference(v: Arrays) -> Array:
        grown = np.pad(v["A"], ((0, 0), (0, 0), (2, 2), (2, 2)))
        boxes = windows(grown, (5, 5), axis=(2, 3))[:, :, ::2, ::2, ::2, ::2]
        sums = np.tensordot(boxes, v["F"], axes=((1, 4, 5), (1, 2, 3)))
        return np.asarray(sums.transpose(0, 3, 1, 2))

    return [a, f, topi.nn.conv2d_nchw(a, f, 2, 2, 2, out_dtype=dtype)], reference


def batched_matmul_transposed(dtype: str, sizes: tuple[int, ...]) -> Made:
    p, m, d = sizes
    a, b, k = tensor("A", dtype, p, d, m), tensor("B", dtype, p, 5, d), axis(d)
    y = total((p, m, 5), lambda q, i, j: a[q, k, i] * b[q, j, k], k)
    return [a, b, y], lambda v: v["A"].transpose(0, 2, 1) @ v["B"].transpose(0, 2, 1)


STAGED: dict[str, Row] = {
    "softmax": Row(2, FLOATS, softmax, ROUNDED),
    "log softmax": Row(2, FLOATS, log_softmax, ROUNDED),
    "layer norm": Row(2, ("float32",), layer_norm, 1e-3),
    "RMS norm": Row(2, FLOATS, rms_norm, ROUNDED),
    "GELU": Row(2, ("float32",), gelu, ROUNDED),
    "dense tanh": Row(3, FLOATS, dense_tanh, ROUNDED),
    "places of maxima": Row(2, TYPES, places_of_maxima),
    "places of minima": Row(2, INTEGERS, places_of_minima),
    "centred": Row(3, TYPES, centred),
    "two layers": Row(3, WIDE, two_layers),
    "with its transposed": Row(1, TYPES, with_its_transposed),
    "gram matrix": Row(2, WIDE, gram_matrix),
    "repeated rows": Row(2, TYPES, repeated_rows),
    "dilated convolution": Row(2, ("int32", "int8", "float32"), dilated_convolution),
    "batched matmul transposed": Row(3, WIDE, batched_matmul_transposed),
}
PROGRAMS: dict[str, Row] = {**PLAIN, **MORE, **SPECIALS, **STAGED}
