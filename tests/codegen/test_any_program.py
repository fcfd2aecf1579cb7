"""Programs beyond the named workloads: padding, maxima, epilogues, gathers, many axes and none."""

from __future__ import annotations

import numpy as np
import pytest
from native import run_native
from tvm import te, tirx
from tvm.s_tir import Schedule

from atim.pipeline import compile_func
from atim.target import Target

WRAM = "local.wram"


def cached(s: Schedule, block, reads, at, write_at):
    """Copies of the operands into WRAM at one loop, of the result at another."""
    for index in reads:
        s.compute_at(s.cache_read(block, index, WRAM), at)
    s.reverse_compute_at(s.cache_write(block, 0, WRAM), write_at)


def convolution(n=37):
    """1-D, zero padding as a conditional; A is read element by element."""
    a, w = te.placeholder((n,), "int32", "A"), te.placeholder((3,), "int32", "taps")
    r, zero = te.reduce_axis((0, 3), "r"), tirx.IntImm("int32", 0)
    padded = te.compute(
        (n + 2,),
        lambda i: tirx.if_then_else(tirx.all(i >= 1, i < n + 1), a[i - 1], zero),
        "padded",
    )
    y = te.compute((n,), lambda i: te.sum(padded[i + r] * w[r], axis=r), "y")
    s = Schedule(te.create_prim_func([a, w, y]))
    s.compute_inline(s.get_sblock("padded"))
    block = s.get_sblock("y")
    i, r = s.get_loops(block)
    d, t, o, _ = s.split(i, [3, 2, None, 4])
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    s.reverse_compute_at(s.cache_write(block, 0, WRAM), o)
    s.compute_at(s.cache_read(block, 1, WRAM), t)
    s.decompose_reduction(block, r)
    return s, lambda a, w: np.convolve(a, w[::-1], "same")


def batched_product(b=3, m=9, n=10, k=13):
    """A batch and rows over DPUs, a tile of the result in WRAM."""
    x, y = te.placeholder((b, m, k), "int32", "X"), te.placeholder((b, k, n), "int32", "Y")
    r = te.reduce_axis((0, k), "k")
    z = te.compute((b, m, n), lambda q, i, j: te.sum(x[q, i, r] * y[q, r, j], axis=r), "Z")
    s = Schedule(te.create_prim_func([x, y, z]))
    block = s.get_sblock("Z")
    q, i, j, r = s.get_loops(block)
    d, i = s.split(i, [2, None])
    t, i = s.split(i, [3, None])
    jo, ji = s.split(j, [None, 4])
    ro, ri = s.split(r, [None, 4])
    s.reorder(q, d, t, i, jo, ro, ri, ji)
    for loop, tag in ((q, "blockIdx.x"), (d, "blockIdx.y"), (t, "threadIdx.x")):
        s.bind(loop, tag)
    cached(s, block, (0, 1), ro, jo)
    s.decompose_reduction(block, ro)
    s.unroll(ji)
    return s, np.matmul


def maximum(m=24, k=21, dtype="int32"):
    """A reduction that zeros would spoil."""
    a, r = te.placeholder((m, k), dtype, "A"), te.reduce_axis((0, k), "k")
    y = te.compute((m,), lambda i: te.max(a[i, r], axis=r), "y")
    s = Schedule(te.create_prim_func([a, y]))
    block = s.get_sblock("y")
    i, r = s.get_loops(block)
    d, t, i = s.split(i, [2, None, 8])
    ro, ri = s.split(r, [None, 8])
    s.reorder(d, t, i, ro, ri)
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    cached(s, block, (0,), ro, t)
    s.decompose_reduction(block, ro)
    s.unroll(ri)
    return s, lambda a: a.max(1)


def bias_relu(m=11, n=30):
    """Element-wise with a broadcast operand and narrow arithmetic."""
    a, c = te.placeholder((m, n), "int16", "A"), te.placeholder((n,), "int16", "c")
    three, zero = tirx.IntImm("int16", 3), tirx.IntImm("int16", 0)
    y = te.compute((m, n), lambda i, j: tirx.max(a[i, j] * c[j] + three, zero), "y")
    s = Schedule(te.create_prim_func([a, c, y]))
    block = s.get_sblock("y")
    i, j = s.get_loops(block)
    d, t, i = s.split(i, [2, 3, None])
    jo, _ = s.split(j, [None, 16])
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    cached(s, block, (0, 1), jo, jo)
    return s, lambda a, c: np.maximum(a * c + 3, 0)


def fused_epilogue(m=24, k=30):
    """relu(A x + c) in one kernel: the sum never leaves WRAM."""
    a, x = te.placeholder((m, k), "int32", "A"), te.placeholder((k,), "int32", "x")
    c, r = te.placeholder((m,), "int32", "c"), te.reduce_axis((0, k), "k")
    t = te.compute((m,), lambda i: te.sum(a[i, r] * x[r], axis=r), "t")
    y = te.compute((m,), lambda i: tirx.max(t[i] + c[i], tirx.IntImm("int32", 0)), "y")
    s = Schedule(te.create_prim_func([a, x, c, y]))
    block, epilogue = s.get_sblock("t"), s.get_sblock("y")
    i, r = s.get_loops(block)
    d, t, i = s.split(i, [2, 3, None])
    ro, ri = s.split(r, [None, 8])
    s.reorder(d, t, i, ro, ri)
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    for index in (0, 1):
        s.compute_at(s.cache_read(block, index, WRAM), ro)
    s.set_scope(block, 0, WRAM)
    s.reverse_compute_at(epilogue, t)
    cached(s, epilogue, (1,), t, t)
    s.decompose_reduction(block, ro)
    return s, lambda a, x, c: np.maximum(a @ x + c, 0)


def two_thread_axes(m=12, n=40):
    a = te.placeholder((m, n), "int32", "A")
    y = te.compute((m, n), lambda i, j: a[i, j] * tirx.IntImm("int32", 3), "y")
    s = Schedule(te.create_prim_func([a, y]))
    block = s.get_sblock("y")
    i, j = s.get_loops(block)
    d, ti, i = s.split(i, [2, 3, None])
    tj, jo, ji = s.split(j, [2, None, 8])
    s.reorder(d, ti, tj, i, jo, ji)
    for loop, tag in ((d, "blockIdx.x"), (ti, "threadIdx.y"), (tj, "threadIdx.x")):
        s.bind(loop, tag)
    cached(s, block, (0,), jo, jo)
    return s, lambda a: a * 3


def gather(n=29, m=17):
    """Indices are data: every DPU holds the whole of A and loads single elements."""
    a, index = te.placeholder((n,), "int32", "A"), te.placeholder((m,), "int32", "index")
    y = te.compute((m,), lambda i: a[tirx.floormod(index[i], n)], "y")
    s = Schedule(te.create_prim_func([a, index, y]))
    d, t, _ = s.split(s.get_loops(s.get_sblock("y"))[0], [2, 2, None])
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    return s, lambda a, index: a[index % n]


def scalar_total(n=40):
    """A tensor without axes."""
    a, k = te.placeholder((n,), "int32", "A"), te.reduce_axis((0, n), "k")
    s = Schedule(te.create_prim_func([a, te.compute((), lambda: te.sum(a[k], axis=k), "y")]))
    final = s.get_sblock("y")
    d, _, _ = s.split(s.get_loops(final)[0], [3, None, 8])
    partial = s.rfactor(d, 0)
    d, ko, _ = s.get_loops(partial)
    s.bind(d, "blockIdx.x")
    cached(s, partial, (0,), ko, d)
    s.decompose_reduction(partial, ko)
    return s, np.sum


PROGRAMS = [
    convolution,
    batched_product,
    maximum,
    bias_relu,
    fused_epilogue,
    two_thread_axes,
    gather,
    scalar_total,
]


@pytest.mark.parametrize("level", [0, 2, 5])
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program, level, rng):
    schedule, reference = program()
    sources = compile_func(schedule.mod["main"], Target(), level)
    arrays = {
        t.name: rng.integers(-50, 50, t.shape).astype(t.dtype)
        for t in sources.plan.tensors
        if t.role == "input"
    }
    (out,) = run_native(sources, arrays).values()
    np.testing.assert_array_equal(out, reference(*arrays.values()))


def test_a_maximum_of_negative_values_ignores_the_padding(rng):
    schedule, _ = maximum(dtype="int8")
    sources = compile_func(schedule.mod["main"], Target())
    a = rng.integers(-100, -50, (24, 21)).astype("int8")
    np.testing.assert_array_equal(run_native(sources, {"A": a})["y"], a.max(1))
