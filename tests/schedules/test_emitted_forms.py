"""The form of products that a canonical candidate names is the one in its kernel."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from tvm import te

from atim import pipeline
from atim.schedules import Sketch, design_space
from atim.schedules.canonical import canonical
from atim.schedules.verify import check
from atim.target import (
    MULTIPLY_BYTES,
    MULTIPLY_FLOAT,
    MULTIPLY_LIBRARY,
    MULTIPLY_NARROW,
    MULTIPLY_STEPS,
    MULTIPLY_STEPS_SECOND,
    MULTIPLY_WORDS,
    Target,
)

TARGET = Target(dpus=4)
# calls in `main`, by form; a kernel has the last of those that it calls
CALLS = {
    MULTIPLY_STEPS: r"mul_step_add\(",
    MULTIPLY_BYTES: r"mul_bytes_add\(",
    MULTIPLY_NARROW: r"dot_narrow\(|mul_ul_ul\(",
    MULTIPLY_WORDS: r"dot_u?int\d+_u?int\d+\(",
    MULTIPLY_FLOAT: r"float_mac\(",
}
Tensor = te.TensorSlice


def product(a: Tensor, b: Tensor) -> Tensor:
    wide = [v if "32" in str(v.dtype) else v.astype("int32") for v in (a, b)]
    return wide[0] * wide[1]


def program(
    dtype: str, shapes: list[tuple[int, ...]], of: Callable[..., te.Tensor]
) -> list[Sketch]:
    inputs = [te.placeholder(s, dtype, n) for s, n in zip(shapes, "AB", strict=True)]
    return design_space(te.create_prim_func([*inputs, of(*inputs)]), TARGET)


def mtv(dtype: str, rows: int = 24, columns: int = 40) -> list[Sketch]:
    k = te.reduce_axis((0, columns), "k")
    return program(
        dtype,
        [(rows, columns), (columns,)],
        lambda a, b: te.compute((rows,), lambda i: te.sum(product(a[i, k], b[k]), k), "y"),
    )


def matmul(dtype: str) -> list[Sketch]:
    k = te.reduce_axis((0, 24), "k")
    return program(
        dtype,
        [(6, 24), (24, 32)],
        lambda a, b: te.compute((6, 32), lambda i, j: te.sum(product(a[i, k], b[k, j]), k), "y"),
    )


def matmul_transposed(dtype: str) -> list[Sketch]:
    k = te.reduce_axis((0, 40), "k")
    return program(
        dtype,
        [(6, 40), (10, 40)],
        lambda a, b: te.compute((6, 10), lambda i, j: te.sum(product(a[i, k], b[j, k]), k), "y"),
    )


def batched(dtype: str) -> list[Sketch]:
    k = te.reduce_axis((0, 48), "k")
    return program(
        dtype,
        [(3, 16, 48), (3, 48)],
        lambda a, b: te.compute((3, 16), lambda n, i: te.sum(product(a[n, i, k], b[n, k]), k), "y"),
    )


def windows(dtype: str) -> list[Sketch]:
    """A 1-D convolution: the row axis runs through the contiguous dimension as well."""
    k = te.reduce_axis((0, 16), "k")
    return program(
        dtype,
        [(40,), (16,)],
        lambda a, b: te.compute((25,), lambda i: te.sum(product(a[i + k], b[k]), k), "y"),
    )


def apart(dtype: str) -> list[Sketch]:
    """Windows a whole word from each other."""
    k = te.reduce_axis((0, 16), "k")
    return program(
        dtype,
        [(80,), (16,)],
        lambda a, b: te.compute((9,), lambda i: te.sum(product(a[8 * i + k], b[k]), k), "y"),
    )


def two_axes(dtype: str) -> list[Sketch]:
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 16), "m")
    return program(
        dtype,
        [(12, 3, 16), (3, 16)],
        lambda a, b: te.compute((12,), lambda i: te.sum(product(a[i, k, m], b[k, m]), [k, m]), "y"),
    )


def rows_alone(dtype: str) -> list[Sketch]:
    """One factor that is the same along the reduction."""
    k = te.reduce_axis((0, 40), "k")
    return program(
        dtype,
        [(16, 40), (16,)],
        lambda a, b: te.compute((16,), lambda i: te.sum(product(a[i, k], b[i]), k), "y"),
    )


def shifted(dtype: str) -> list[Sketch]:
    """A factor that is computed on the way."""
    k = te.reduce_axis((0, 40), "k")
    return program(
        dtype,
        [(16, 40), (40,)],
        lambda a, b: te.compute((16,), lambda i: te.sum((a[i, k] + b[k]) * b[k], k), "y"),
    )


def form_of(kernel_c: str) -> int:
    """The form in which a kernel multiplies, the second `mul_step` as the first."""
    text = kernel_c[kernel_c.index("int main(") :]
    found = [form for form, call in CALLS.items() if re.search(call, text)]
    return found[-1] if found else MULTIPLY_LIBRARY


def assert_emitted(sketch: Sketch, row: np.ndarray) -> int:
    decisions = dict(zip(sketch.names, row.tolist(), strict=True))
    named = decisions["multiply"]
    found = form_of(pipeline.compile(sketch, decisions, TARGET).kernel_c)
    wanted = MULTIPLY_STEPS if named == MULTIPLY_STEPS_SECOND else named
    assert found == wanted, f"{sketch.name} {decisions}"
    return found


@pytest.mark.parametrize("dtype", ["int32", "int8", "int16", "float32"])
@pytest.mark.parametrize("vector", [0, 1, 2])
@pytest.mark.parametrize("rows", [4, 16])
def test_places_of_the_vector(dtype, vector, rows):
    """One or four groups of four rows, tiles unrolled not at all, half and whole."""
    sketch = mtv(dtype, rows, 32)[0]
    offered = sketch.decisions[sketch.names.index("multiply")].values
    for form, unroll in itertools.product(offered, (1, 8, 16)):
        chosen = {d.name: d.values[0] for d in sketch.decisions}
        chosen |= {"row_block": 4, "tile": 16, "vector": vector, "unroll": unroll}
        (row,) = canonical(sketch, sketch.vector(chosen | {"multiply": form}))
        wanted = MULTIPLY_STEPS if form == MULTIPLY_STEPS_SECOND else form
        if form == MULTIPLY_WORDS and unroll == 1:
            wanted = MULTIPLY_LIBRARY
        assert assert_emitted(sketch, row) == wanted


def test_a_form_that_does_not_fit_is_named_as_what_is_emitted():
    sketch = matmul("int32")[0]  # rows of B are contiguous: more of them than there are registers
    chosen = {d.name: d.values[0] for d in sketch.decisions} | {"row_block": 16, "unroll": 4}
    column = sketch.names.index("multiply")
    wanted = {MULTIPLY_NARROW: MULTIPLY_BYTES, MULTIPLY_WORDS: MULTIPLY_LIBRARY}
    for form in range(MULTIPLY_WORDS + 1):
        (row,) = canonical(sketch, sketch.vector(chosen | {"multiply": form}))
        assert row[column] == wanted.get(form, form)
        assert_emitted(sketch, row)


PROGRAMS = (
    *(mtv, matmul, matmul_transposed, batched, windows, apart, two_axes, rows_alone, shifted),
)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("dtype", ["int32", "int8", "int16", "float32"])
def test_random_candidates(make, dtype, rng):
    for sketch in make(dtype):
        if "multiply" not in sketch.names:
            continue
        grid = [np.array([1, 2, 4, 8, 16, *d.values]) for d in sketch.decisions]
        rows = np.stack([rng.choice(values, 400) for values in grid], axis=1)
        for column, name in enumerate(sketch.names):
            if name == "multiply":
                rows[:, column] = rng.choice(sketch.decisions[column].values, len(rows))
            elif name in ("vector", "even", "cyclic"):
                rows[:, column] = rng.integers(0, 3 if name == "vector" else 2, len(rows))
        rows = canonical(sketch, rows)
        legal = rows[check(sketch, rows, TARGET)[0]]
        for row in legal[:3]:
            assert_emitted(sketch, row)
