"""Scheduled programs for the tests of code generation, written by hand on purpose: they don't
change with the design space. Every function returns a scheduled PrimFunc."""

from __future__ import annotations

from tvm import te, tirx
from tvm.s_tir import Schedule

from atim.target import ANNOTATE_MULTIPLY, MULTIPLY_STEPS

WRAM = "local.wram"


def va_func(n: int, dtype: str = "int32") -> tirx.PrimFunc:
    a, b = te.placeholder((n,), dtype, "A"), te.placeholder((n,), dtype, "B")
    return te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], "C")])


def va(
    n: int, dpus: int = 4, tasklets: int = 3, tile: int = 8, unroll: int = 1, dtype: str = "int32"
) -> tirx.PrimFunc:
    """Blocks of `tile` elements, one after another for each tasklet."""
    s = Schedule(va_func(n, dtype))
    block = s.get_sblock("C")
    (i,) = s.get_loops(block)
    d, t, o, _, u = s.split(i, factors=[dpus, tasklets, None, tile // unroll, unroll])
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    for k in range(2):
        s.compute_at(s.cache_read(block, k, WRAM), o)
    s.reverse_compute_at(s.cache_write(block, 0, WRAM), o)
    if unroll > 1:
        s.unroll(u)
    return s.mod["main"]


def mtv_func(m: int, k: int, dtype: str = "int32") -> tirx.PrimFunc:
    a, x = te.placeholder((m, k), dtype, "A"), te.placeholder((k,), dtype, "x")
    r = te.reduce_axis((0, k), "k")
    return te.create_prim_func(
        [a, x, te.compute((m,), lambda i: te.sum(a[i, r] * x[r], axis=r), "y")]
    )


def mtv_rows(
    m: int,
    k: int,
    dpus: int = 4,
    tasklets: int = 3,
    rows: int = 2,
    tile: int = 8,
    dtype: str = "int32",
    multiply_steps: bool = False,
) -> tirx.PrimFunc:
    """Rows over DPUs and tasklets, `rows` at a time with their sums in registers."""
    s = Schedule(mtv_func(m, k, dtype))
    block = s.get_sblock("y")
    i, r = s.get_loops(block)
    d, t, g, lane = s.split(i, factors=[dpus, tasklets, None, rows])
    ko, ki = s.split(r, factors=[None, tile])
    s.reorder(d, t, g, ko, ki, lane)
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    a, x = s.cache_read(block, 0, WRAM), s.cache_read(block, 1, WRAM)
    w = s.cache_write(block, 0, WRAM)
    s.reverse_compute_at(s.cache_write(block, 0, "local"), g)
    s.reverse_compute_at(w, t)
    s.compute_at(a, ko)
    s.compute_at(x, ko)
    if multiply_steps:
        s.annotate(block, ANNOTATE_MULTIPLY, MULTIPLY_STEPS)
    s.decompose_reduction(block, ko)
    s.unroll(lane)
    return s.mod["main"]


def mtv_split(
    m: int,
    k: int,
    dpus: int = 2,
    pieces: int = 3,
    tasklets: int = 2,
    tile: int = 8,
    threads: int = 2,
    dtype: str = "int32",
) -> tirx.PrimFunc:
    """Rows x pieces of the reduction over DPUs; the host adds the pieces."""
    s = Schedule(mtv_func(m, k, dtype))
    final = s.get_sblock("y")
    _, r = s.get_loops(final)
    p, ko, ki = s.split(r, factors=[pieces, None, tile])
    block = s.rfactor(p, factor_axis=0)
    i, p, ko, ki = s.get_loops(block)
    d, t, pair, row = s.split(i, factors=[dpus, tasklets, None, 2])
    s.reorder(d, p, t, pair, row, ko, ki)
    s.bind(d, "blockIdx.x")
    s.bind(p, "blockIdx.y")
    s.bind(t, "threadIdx.x")
    a, x = s.cache_read(block, 0, WRAM), s.cache_read(block, 1, WRAM)
    s.compute_at(a, ko)
    s.compute_at(x, ko)
    s.reverse_compute_at(s.cache_write(block, 0, WRAM), t)
    s.decompose_reduction(block, ko)
    over, _ = s.split(s.get_loops(final)[0], factors=[threads, None])
    s.parallel(over)
    return s.mod["main"]


def red_func(n: int, dtype: str = "int64") -> tirx.PrimFunc:
    a, k = te.placeholder((n,), dtype, "A"), te.reduce_axis((0, n), "k")
    return te.create_prim_func([a, te.compute((1,), lambda i: te.sum(a[k], axis=k), "y")])


def red(
    n: int, dpus: int = 3, tasklets: int = 4, tile: int = 8, dtype: str = "int64"
) -> tirx.PrimFunc:
    """Partial sums of tasklets meet in WRAM, those of DPUs on the host."""
    s = Schedule(red_func(n, dtype))
    final = s.get_sblock("y")
    _, k = s.get_loops(final)
    d, t, _, _ = s.split(k, factors=[dpus, tasklets, None, tile])
    partial = s.rfactor(s.fuse(d, t), factor_axis=0)
    d, t = s.split(s.get_loops(final)[1], factors=[dpus, tasklets])
    of_dpu = s.rfactor(d, factor_axis=0)
    _, fused, ko, _ = s.get_loops(partial)
    bx, tx = s.split(fused, factors=[dpus, tasklets])
    s.bind(bx, "blockIdx.x")
    s.set_scope(partial, 0, "shared.wram")
    s.reverse_compute_at(of_dpu, bx)
    s.bind(tx, "threadIdx.x")
    s.compute_at(s.cache_read(partial, 0, WRAM), ko)
    s.reverse_compute_at(s.cache_write(partial, 0, WRAM), tx)
    s.reverse_compute_at(s.cache_write(of_dpu, 0, WRAM), bx)
    s.decompose_reduction(partial, ko)
    return s.mod["main"]


def transposed_copy(m: int = 8, n: int = 8, dtype: str = "int32") -> tirx.PrimFunc:
    """B[i, j] = A[j, i], four rows of B on each DPU: the cache of A is filled from a column."""
    a = te.placeholder((n, m), dtype, "A")
    s = Schedule(te.create_prim_func([a, te.compute((m, n), lambda i, j: a[j, i], "B")]))
    block = s.get_sblock("B")
    i, _ = s.get_loops(block)
    d, row = s.split(i, factors=[None, 4])
    s.bind(d, "blockIdx.x")
    s.compute_at(s.cache_read(block, 0, WRAM), row)
    s.reverse_compute_at(s.cache_write(block, 0, WRAM), row)
    return s.mod["main"]


def mtv_rfactor_miscompiled(m: int, k: int) -> tirx.PrimFunc:
    """The order that makes TVM drop the row predicate of the host nest: rows split before
    rfactor."""
    s = Schedule(mtv_func(m, k))
    final = s.get_sblock("y")
    i, r = s.get_loops(final)
    d, t, row = s.split(i, factors=[2, 2, None])
    p, ko, ki = s.split(r, factors=[3, None, 8])
    block = s.rfactor(p, factor_axis=0)
    d, t, row, p, ko, ki = s.get_loops(block)
    s.reorder(d, p, t, row, ko, ki)
    s.bind(d, "blockIdx.x")
    s.bind(p, "blockIdx.y")
    s.bind(t, "threadIdx.x")
    s.compute_at(s.cache_read(block, 0, WRAM), ko)
    s.compute_at(s.cache_read(block, 1, WRAM), ko)
    s.reverse_compute_at(s.cache_write(block, 0, WRAM), t)
    s.decompose_reduction(block, ko)
    return s.mod["main"]


def red_compute_at_miscompiled(n: int) -> tirx.PrimFunc:
    """sum(A + 1) in the order that makes TVM drop the reduction's predicate: compute_at of a
    predicated rfactor block."""
    a, axis = te.placeholder((n,), "int64", "A"), te.reduce_axis((0, n), "k")
    y = te.compute((1,), lambda i: te.sum(a[axis] + tirx.IntImm("int64", 1), axis=axis), "y")
    s = Schedule(te.create_prim_func([a, y]))
    final = s.get_sblock("y")
    _, k = s.get_loops(final)
    d, t, _, _ = s.split(k, factors=[3, 4, None, 8])
    of_dpu = s.rfactor(d, factor_axis=0)
    _, d, t, _, _ = s.get_loops(of_dpu)
    partial = s.rfactor(t, factor_axis=0)
    s.bind(s.get_loops(of_dpu)[1], "blockIdx.x")
    s.set_scope(partial, 0, "shared.wram")
    s.compute_at(partial, s.get_loops(of_dpu)[1])
    loops = s.get_loops(partial)
    s.bind(loops[-3], "threadIdx.x")
    s.compute_at(s.cache_read(partial, 0, WRAM), loops[-2])
    s.reverse_compute_at(s.cache_write(partial, 0, WRAM), loops[-3])
    s.reverse_compute_at(s.cache_write(of_dpu, 0, WRAM), s.get_loops(of_dpu)[1])
    s.decompose_reduction(partial, loops[-2])
    return s.mod["main"]
