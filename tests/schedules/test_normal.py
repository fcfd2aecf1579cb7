"""Programs with 64-bit loops and tensors without axes, brought to what kernels hold."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm_ffi
from tvm import ir, te, tirx, topi
from tvm.script import tirx as T

from atim.errors import UnsupportedError
from atim.evaluate import evaluate
from atim.schedules.normal import normal, shaped

ROWS, COLUMNS = tirx.IntImm("int64", 5), tirx.IntImm("int64", 7)


def wide(dtype: str = "int64") -> te.Tensor:
    return te.placeholder((ROWS, COLUMNS), dtype, "A")


def widths(func: tirx.PrimFunc) -> set[str]:
    """Types of loop variables, extents and indices."""
    found: list[object] = []
    tvm_ffi.structural_walk(func.body, [(tirx.For, lambda f: found.append(f.loop_var))])
    tvm_ffi.structural_walk(func.body, [(ir.TensorLoad, lambda x: found.extend(x.indices))])
    found += [n for p in func.params for n in p.shape]
    return {str(node.ty) for node in found}  # type: ignore[attr-defined]


def test_other_programs_stay_as_they_are() -> None:
    a = te.placeholder((5, 7), "int64", "A")
    func = te.create_prim_func([a, topi.add(a, a)])
    assert normal(func).same_as(func)


def test_wide_loops_over_wide_values_become_narrow(rng: np.random.Generator) -> None:
    a = wide()
    large = tirx.const(2**40, "int64")
    y = te.compute((ROWS, COLUMNS), lambda i, j: tirx.Select(j <= i, a[i, j], i * large + j), "y")
    func = normal(te.create_prim_func([a, y]))
    assert widths(func) == {"int32"}
    values = rng.integers(-(2**60), 2**60, (5, 7))
    i, j = np.indices((5, 7))
    expected = np.where(j <= i, values, i * 2**40 + j)
    np.testing.assert_array_equal(evaluate(func, {"A": values}), expected)


def test_indices_read_from_wide_tensors(rng: np.random.Generator) -> None:
    a, t = wide("float32"), te.placeholder((ROWS,), "int64", "t")
    y = te.compute((ROWS, COLUMNS), lambda i, j: a[t[i], j], "y")
    func = normal(te.create_prim_func([a, t, y]))
    assert widths(func) == {"int32"}
    values, places = rng.random((5, 7), "float32"), np.array([4, 0, 2, 2, 1])
    found = evaluate(func, {"A": values, "t": places})
    np.testing.assert_array_equal(found, values[places])


def test_a_sum_of_everything_gets_an_axis(rng: np.random.Generator) -> None:
    a = te.placeholder((5, 7), "int32", "A")
    func = normal(te.create_prim_func([a, topi.sum(a)]))
    values = rng.integers(-9, 9, (5, 7)).astype("int32")
    name = str(func.params[-1].name)
    found = evaluate(func, {"A": values})
    assert found.shape == (1,)
    assert shaped(func, name, found, back=True) == values.sum()
    assert shaped(func, name, np.float32(3) * np.ones(())).shape == (1,)
    assert shaped(func, "A", values, back=True) is values


@pytest.mark.parametrize(("extent", "why"), [(0, "at least 1"), (2**31, "at most 2,147,483,647")])
def test_extents_out_of_range_are_refused(extent: int, why: str) -> None:
    n = tirx.IntImm("int64", extent)
    a = te.placeholder((n,), "int8", "A")
    func = te.create_prim_func([a, te.compute((n,), lambda i: a[i], "y")])
    with pytest.raises(UnsupportedError, match=f"tensor A: extent {extent}, {why} needed"):
        normal(func)


def test_unknown_extents_are_refused() -> None:
    n = te.var("n")
    a = te.placeholder((n,), "int8", "A")
    func = te.create_prim_func([a, te.compute((n,), lambda i: a[i], "y")])
    with pytest.raises(UnsupportedError, match="tensor A: extent n is not known"):
        normal(func)


@T.prim_func(s_tir=True)
def in_place(A: T.Buffer((16,), "int32")) -> None:
    for i in range(16):
        with T.sblock("step"):
            v_i = T.axis.spatial(16, i)
            A[v_i] = A[v_i] + 1


@T.prim_func(s_tir=True)
def without_start(A: T.Buffer((16, 8), "int32"), y: T.Buffer((16,), "int32")) -> None:
    for i, k in T.grid(16, 8):
        with T.sblock("total"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            y[v_i] = y[v_i] + A[v_i, v_k]


@T.prim_func(s_tir=True)
def without_result(A: T.Buffer((16,), "int32"), y: T.Buffer((16,), "int32")) -> None:
    for i in range(16):
        with T.sblock("call"):
            v_i = T.axis.spatial(16, i)
            T.evaluate(T.call_extern("int32", "told", A[v_i]))


@T.prim_func(s_tir=True)
def written_twice(A: T.Buffer((16,), "int32"), y: T.Buffer((16,), "int32")) -> None:
    for i in range(16):
        with T.sblock("one"):
            v_i = T.axis.spatial(16, i)
            y[v_i] = A[v_i] + 1
    for i in range(16):
        with T.sblock("two"):
            v_i = T.axis.spatial(16, i)
            y[v_i] = A[v_i] + 2


@T.prim_func(s_tir=True)
def outside(A: T.Buffer((16,), "int32"), y: T.Buffer((16,), "int32")) -> None:
    for i in range(16):
        with T.sblock("far"):
            v_i = T.axis.spatial(16, i)
            y[v_i] = A[v_i * 2 - 3]


@T.prim_func(s_tir=True)
def bound(A: T.Buffer((16,), "int32"), y: T.Buffer((16,), "int32")) -> None:
    for i in T.thread_binding(16, thread="threadIdx.x"):
        with T.sblock("copy"):
            v_i = T.axis.spatial(16, i)
            y[v_i] = A[v_i]


@T.prim_func(s_tir=True)
def horner(A: T.Buffer((8, 5), "int32"), y: T.Buffer((8,), "int32")) -> None:
    for i, k in T.grid(8, 5):
        with T.sblock("digits"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                y[v] = 0
            y[v] = y[v] * 3 + A[v, r]


@T.prim_func(s_tir=True)
def strided(a: T.handle, y: T.Buffer((16,), "int32")) -> None:
    A = T.match_buffer(a, (16,), "int32", strides=(2,))
    for i in range(16):
        with T.sblock("copy"):
            v_i = T.axis.spatial(16, i)
            y[v_i] = A[v_i]


@pytest.mark.parametrize(
    ("func", "why"),
    [
        (in_place, "block step: A is updated in place"),
        (
            without_start,
            "block total: y is updated in place, only reductions from an initial value",
        ),
        (without_result, "block call: writes no tensor"),
        (horner, "block digits: y is reduced by y[v] * 3 + A[v, r], known are Add, Mul, Max, Min"),
        (written_twice, "block two: y is written by block one already"),
        (outside, "block far: A is read outside, axis 0 from -3 to 27, 16 elements there"),
        (bound, "block copy: loop i is bound or annotated, only plain loops are taken"),
        (strided, r"tensor A: strides [2], only row-major ones are taken"),
    ],
)
def test_what_no_rule_can_place_is_named(func: tirx.PrimFunc, why: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(why)) as error:
        normal(func)
    assert "\n" not in str(error.value)


def test_reads_behind_a_condition_may_lie_outside() -> None:
    a = te.placeholder((16,), "int32", "A")
    y = te.compute((16,), lambda i: tirx.if_then_else(i > 2, a[i - 3], 0), "y")
    assert normal(te.create_prim_func([a, y])) is not None
