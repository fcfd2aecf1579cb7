"""Named tensor programs: expression, NumPy reference, types, usual shapes, operands that stay in
MRAM.

The table is that of ATiM's evaluation (ISCA 2025, Figures 9 and 10; public artefact, bench.py):
random integers 0 to 49, the large operand placed before the timed run. A new row needs no change
elsewhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from atim.errors import UsageError

if TYPE_CHECKING:  # names, sizes and types are checked without the seconds that TVM takes
    from tvm import te, tirx

__all__ = ["WORKLOADS", "Array", "Row", "Workload", "check", "get"]

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

# GEVA and GEMV scale by constants of the program
C0, C1 = 3, 5
MAX_ELEMENTS = 2**31 - 1
_INTEGERS = ("int32", "int8", "int16", "int64", "uint8")
_TYPES = (*_INTEGERS, "float32", "float64")
# products of matrices: bytes are summed in int32, everything else in its own type
_PRODUCTS = ("int32", "int8", "int64", "float32", "float64")
_SUMS = {"int8": "int32"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    build      (shape, dtype) -> te tensors, inputs first and the output last
    reference  input arrays -> output array, in C arithmetic (integers wrap)
    """

    summary: str
    sizes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    resident: tuple[str, ...]
    build: Callable[[tuple[int, ...], str], list[te.Tensor]]
    reference: Callable[[Arrays], Array]


@dataclass(frozen=True)
class Workload:
    """A named program with a shape and a type, ready to tune."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    args: tuple[te.Tensor, ...]
    row: Row

    @cached_property
    def func(self) -> tirx.PrimFunc:
        """The program as TIR, parameters in the order of `args`."""
        from tvm import te

        return te.create_prim_func(list(self.args))

    @property
    def resident(self) -> tuple[str, ...]:
        """Inputs that usually lie in MRAM before the run."""
        return self.row.resident

    def inputs(self, rng: np.random.Generator) -> dict[str, Array]:
        """Random inputs by name: integers 0 to 49, floats uniform in [0, 1)."""
        return {
            tensor.op.name: random_array(
                rng, tuple(int(n) for n in tensor.shape), str(tensor.dtype)
            )
            for tensor in self.args[:-1]
        }

    def reference(self, arrays: Arrays) -> Array:
        """The output for the inputs, computed by NumPy."""
        return self.row.reference(arrays)


def get(name: str, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Workload:
    """The named workload; shape and dtype default to the first of its row. Raises as `check`."""
    shape, dtype = check(name, shape, dtype)
    row = WORKLOADS[name]
    return Workload(name, shape, dtype, tuple(row.build(shape, dtype)), row)


def check(
    name: str, shape: tuple[int, ...] | None = None, dtype: str | None = None
) -> tuple[tuple[int, ...], str]:
    """Shape and dtype of the named workload, each the first of its row when not given.

    Raises `UsageError` on an unknown name, a wrong number of sizes, a size below 1 or a type not
    supported.
    """
    if name not in WORKLOADS:
        near = difflib.get_close_matches(name, WORKLOADS, n=1)
        hint = f", did you mean {near[0]}?" if near else ""
        raise UsageError(f"workload {name!r} is unknown{hint} (known: {', '.join(WORKLOADS)})")
    row = WORKLOADS[name]
    shape = row.shapes[0] if shape is None else tuple(shape)
    dtype = row.dtypes[0] if dtype is None else dtype
    if dtype not in row.dtypes:
        raise UsageError(
            f"{name}: dtype {dtype!r} not supported, supported: {', '.join(row.dtypes)}"
        )
    if len(shape) != len(row.sizes):
        wanted = f"{len(row.sizes)} ({','.join(row.sizes)})"
        raise UsageError(f"{name}: shape of {wanted} sizes needed, {len(shape)} given")
    for label, size in zip(row.sizes, shape, strict=True):
        if not isinstance(size, int) or isinstance(size, bool):
            raise UsageError(f"{name}: size {label} is {size!r}, integer needed")
        if size < 1:
            raise UsageError(f"{name}: size {label} is {size}, at least 1 needed")
    if prod(shape) > MAX_ELEMENTS:
        raise UsageError(f"{name}: {prod(shape):,} elements requested, limit {MAX_ELEMENTS:,}")
    return shape, dtype


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Integers 0 to 49, floats uniform in [0, 1), or truth values."""
    if np.dtype(dtype).kind == "f":
        return rng.random(shape, dtype=np.float64).astype(dtype)
    if np.dtype(dtype).kind == "b":
        return rng.integers(0, 2, shape, dtype=np.uint8).astype(dtype)
    return rng.integers(0, 50, shape, dtype=dtype)


def _inputs(dtype: str, **shapes: tuple[int, ...]) -> list[te.Tensor]:
    from tvm import te

    return [te.placeholder(shape, dtype, name) for name, shape in shapes.items()]


def _wide(value: te.TensorSlice) -> tirx.PrimExpr:
    """In the type of its sums."""
    dtype = str(value.dtype)
    return value.astype(_SUMS[dtype]) if dtype in _SUMS else value


def _summed(arrays: Arrays) -> tuple[Array, Array]:
    """A and x in the type of their sums."""
    a, x = arrays["A"], arrays["x"]
    dtype = _SUMS.get(a.dtype.name, a.dtype.name)
    return a.astype(dtype, copy=False), x.astype(dtype, copy=False)


def _matrix_vector(arrays: Arrays) -> Array:
    a, x = _summed(arrays)
    product: Array = a @ x
    return product


def _scaled_matrix_vector(arrays: Arrays) -> Array:
    product = _matrix_vector(arrays)
    scaled: Array = product.dtype.type(C0) * product
    return scaled


def _batched_matrix_vector(arrays: Arrays) -> Array:
    product: Array = np.einsum("ijk,ik->ij", *_summed(arrays))
    return product


def _va(shape: tuple[int, ...], dtype: str) -> list[te.Tensor]:
    from tvm import te

    a, b = _inputs(dtype, A=shape, B=shape)
    return [a, b, te.compute(shape, lambda i: a[i] + b[i], "C")]


def _geva(shape: tuple[int, ...], dtype: str) -> list[te.Tensor]:
    from tvm import te, tirx

    a, b = _inputs(dtype, A=shape, B=shape)
    c0, c1 = tirx.const(C0, dtype), tirx.const(C1, dtype)
    return [a, b, te.compute(shape, lambda i: c0 * a[i] + c1 * b[i], "C")]


def _red(shape: tuple[int, ...], dtype: str) -> list[te.Tensor]:
    from tvm import te

    (a,) = _inputs(dtype, A=shape)
    k = te.reduce_axis((0, shape[0]), "k")
    return [a, te.compute((1,), lambda i: te.sum(a[k], axis=k), "b")]


def _mtv(shape: tuple[int, ...], dtype: str) -> list[te.Tensor]:
    from tvm import te

    rows, columns = shape
    a, x = _inputs(dtype, A=shape, x=(columns,))
    k = te.reduce_axis((0, columns), "k")
    return [a, x, te.compute((rows,), lambda i: te.sum(_wide(a[i, k]) * _wide(x[k]), axis=k), "y")]


def _gemv(shape: tuple[int, ...], dtype: str) -> list[te.Tensor]:
    from tvm import te, tirx

    rows, columns = shape
    a, x = _inputs(dtype, A=shape, x=(columns,))
    k = te.reduce_axis((0, columns), "k")
    t = te.compute((rows,), lambda i: te.sum(_wide(a[i, k]) * _wide(x[k]), axis=k), "t")
    return [a, x, te.compute((rows,), lambda i: tirx.const(C0, t.dtype) * t[i], "y")]


def _ttv(shape: tuple[int, ...], dtype: str) -> list[te.Tensor]:
    from tvm import te

    m, n, columns = shape
    a, x = _inputs(dtype, A=shape, x=(columns,))
    k = te.reduce_axis((0, columns), "k")
    return [
        a,
        x,
        te.compute((m, n), lambda i, j: te.sum(_wide(a[i, j, k]) * _wide(x[k]), axis=k), "y"),
    ]


def _mmtv(shape: tuple[int, ...], dtype: str) -> list[te.Tensor]:
    from tvm import te

    m, n, columns = shape
    a, x = _inputs(dtype, A=shape, x=(m, columns))
    k = te.reduce_axis((0, columns), "k")
    return [
        a,
        x,
        te.compute((m, n), lambda i, j: te.sum(_wide(a[i, j, k]) * _wide(x[i, k]), axis=k), "y"),
    ]


_VECTORS = ((16777216,), (1048576,), (67108864,))
_MATRICES = ((4096, 4096), (1024, 1024), (8192, 8192), (8192, 16384))
_TENSORS = ((128, 256, 512), (32, 64, 512), (256, 512, 512), (512, 512, 512))

WORKLOADS: dict[str, Row] = {
    "va": Row(
        "C[i] = A[i] + B[i]",
        ("N",),
        _VECTORS,
        _TYPES,
        ("A", "B"),
        _va,
        lambda v: v["A"] + v["B"],
    ),
    "geva": Row(
        f"C[i] = {C0} A[i] + {C1} B[i]",
        ("N",),
        _VECTORS,
        _TYPES,
        ("A", "B"),
        _geva,
        lambda v: v["A"].dtype.type(C0) * v["A"] + v["A"].dtype.type(C1) * v["B"],
    ),
    "red": Row(
        "b = sum_i A[i]",
        ("N",),
        ((8388608,), (524288,), (33554432,), (67108864,)),
        ("int64", "int32", "uint8", "float32", "float64"),
        ("A",),
        _red,
        lambda v: v["A"].sum(keepdims=True, dtype=v["A"].dtype),
    ),
    "mtv": Row(
        "y[i] = sum_k A[i,k] x[k]",
        ("M", "K"),
        _MATRICES,
        _PRODUCTS,
        ("A",),
        _mtv,
        _matrix_vector,
    ),
    "gemv": Row(
        f"y[i] = {C0} sum_k A[i,k] x[k]",
        ("M", "K"),
        _MATRICES,
        _PRODUCTS,
        ("A",),
        _gemv,
        _scaled_matrix_vector,
    ),
    "ttv": Row(
        "y[i,j] = sum_k A[i,j,k] x[k]",
        ("M", "N", "K"),
        _TENSORS,
        _PRODUCTS,
        ("A",),
        _ttv,
        _matrix_vector,
    ),
    "mmtv": Row(
        "y[i,j] = sum_k A[i,j,k] x[i,k]",
        ("M", "N", "K"),
        _TENSORS,
        _PRODUCTS,
        ("A",),
        _mmtv,
        _batched_matrix_vector,
    ),
}
