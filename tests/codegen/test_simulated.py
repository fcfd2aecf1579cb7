"""Emitted kernels on the simulated DPU, compiled by its own toolchain, through the runtime."""

from __future__ import annotations

import numpy as np
import pytest
import te_programs as programs
from tvm import te

from atim.codegen import Sources
from atim.pipeline import compile, compile_func
from atim.runtime import run
from atim.schedules import design_space
from atim.target import Target
from atim.toolchain import build

TARGET = Target(dpus=16)


def simulate(sources: Sources, rng: np.random.Generator):
    arrays = {
        t.name: rng.integers(-50, 50, t.shape).astype(t.dtype)
        for t in sources.plan.tensors
        if t.role == "input"
    }
    (out,) = run(build(sources, TARGET), arrays).outputs.values()
    return out, list(arrays.values())


@pytest.mark.parametrize("level", [0, 2, 5])
def test_vector_add(level, rng):
    func = programs.va(101, dpus=3, tasklets=11, tile=8, unroll=4)
    out, (a, b) = simulate(compile_func(func, TARGET, level), rng)
    np.testing.assert_array_equal(out, a + b)


@pytest.mark.parametrize(("dtype", "columns"), [("int8", 4096), ("int32", 1023)])
def test_a_row_that_all_tasklets_load_in_chunks(dtype, columns, rng):
    """Of a product of matrices, whose tasklets are spread over two axes."""
    a = te.placeholder((4, columns), dtype, "a")
    w = te.placeholder((64, columns), dtype, "w")
    k = te.reduce_axis((0, columns), "k")
    product = lambda i, j: a[i, k].astype("int32") * w[j, k].astype("int32")  # noqa: E731
    c = te.compute((4, 64), lambda i, j: te.sum(product(i, j), axis=k), "c")
    sketch = next(
        s for s in design_space(te.create_prim_func([a, w, c]), TARGET, ("w",)) if s.name == "rows"
    )
    decisions = dict.fromkeys(sketch.names, 1) | {"dpus_i": 2, "dpus_j": 4, "tasklets": 8}
    decisions |= {"tasklets_outer": 2, "tile": 512, "vector": 2, "unroll": 8, "multiply": 0}
    out, (left, right) = simulate(compile(sketch, decisions, TARGET), rng)
    np.testing.assert_array_equal(out, left.astype("int32") @ right.astype("int32").T)


@pytest.mark.parametrize("dtype", ["int32", "float32", "int8", "int64"])
def test_matrix_vector(dtype, rng):
    rows = max(2, 8 // np.dtype(dtype).itemsize)
    func = programs.mtv_rows(37, 53, dpus=2, tasklets=3, rows=rows, dtype=dtype)
    out, (a, x) = simulate(compile_func(func, TARGET), rng)
    np.testing.assert_array_equal(out, a @ x)


def test_matrix_vector_in_pieces(rng):
    out, (a, x) = simulate(compile_func(programs.mtv_split(37, 53), TARGET), rng)
    np.testing.assert_array_equal(out, a @ x)


def test_two_level_reduction(rng):
    out, (a,) = simulate(compile_func(programs.red(1013), TARGET), rng)
    np.testing.assert_array_equal(out, a.sum(keepdims=True))


def test_multiply_by_steps_is_exact_for_every_value(rng):
    func = programs.mtv_rows(8, 16, dpus=1, tasklets=2, multiply_steps=True)
    sources = compile_func(func, TARGET)
    assert "mul_step" in sources.kernel_c
    edges = np.array([-(2**31), 2**31 - 1, -1, 0, 1, 65535, 65536, -65537], np.int32)
    arrays = {"A": rng.choice(edges, (8, 16)), "x": rng.choice(edges, 16)}
    out = run(build(sources, TARGET), arrays).outputs["y"]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, arrays["A"] @ arrays["x"])
