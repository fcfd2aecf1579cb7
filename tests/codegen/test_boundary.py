"""Tightening, hoisting and sinking on small kernels: before, after, and what must stay as it is."""

from __future__ import annotations

from kernel_forms import assert_same
from tvm.script import tirx as T

from atim.codegen.boundary import BOUNDARY_PASSES, hoist_branches, sink_reads, tighten_loops


def test_levels_are_cumulative_and_in_a_fixed_order():
    order = [(p.level, p.run.__name__) for p in BOUNDARY_PASSES]
    assert order == [
        (1, "remove_copy_checks"),
        (5, "round_guards"),
        (1, "inject_dma"),
        (2, "tighten_loops"),
        (3, "hoist_branches"),
        (4, "sink_reads"),
    ]


# level 2 -----------------------------------------------------------------------------------------


@T.prim_func(s_tir=True)
def guarded_sum(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    X = T.sblock_alloc_buffer((16,), "int32", scope="local.wram")
    for k in range(16):
        if i * 16 + k < 50 and i * 2 < 7:
            S[0] = S[0] + X[k]
    for k in range(8):
        if i * 16 + k * 2 < 50:
            S[1] = S[1] + X[k]


@T.prim_func(s_tir=True)
def tightened_sum(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    X = T.sblock_alloc_buffer((16,), "int32", scope="local.wram")
    for k in range(T.min(16, 50 - i * 16)):
        if i * 2 < 7:
            S[0] = S[0] + X[k]
    for k in range(T.min(8, 25 - i * 8)):
        S[1] = S[1] + X[k]


def test_guards_on_the_loop_variable_become_the_extent():
    assert_same(tighten_loops(guarded_sum, {}), tightened_sum)


@T.prim_func(s_tir=True)
def not_tightenable(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    X = T.sblock_alloc_buffer((16,), "int32", scope="local.wram")
    for k in range(16):
        if X[k] < 50:
            S[0] = S[0] + X[k]
    for k in range(16):
        if 0 - k < -3:
            S[0] = S[0] + X[k]
        else:
            S[1] = S[1] + X[k]


def test_guards_on_data_or_with_else_stay():
    assert_same(tighten_loops(not_tightenable, {}), not_tightenable)


# level 3 -----------------------------------------------------------------------------------------


@T.prim_func(s_tir=True)
def invariant_guard(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    X = T.sblock_alloc_buffer((16,), "int32", scope="local.wram")
    for r in range(4):
        if i * 4 + r < 13:
            S[r] = 0
        for k in range(16):
            if i * 4 + r < 13:
                S[r] = S[r] + X[k]


@T.prim_func(s_tir=True)
def hoisted_guard(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    X = T.sblock_alloc_buffer((16,), "int32", scope="local.wram")
    for r in range(4):
        if i * 4 + r < 13:
            S[r] = 0
            for k in range(16):
                S[r] = S[r] + X[k]


def test_invariant_guards_leave_the_loop_and_join():
    assert_same(hoist_branches(invariant_guard, {}), hoisted_guard)


@T.prim_func(s_tir=True)
def data_guard(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    for k in range(16):
        if S[0] < 10:
            S[0] = S[0] + k


def test_a_guard_that_the_loop_itself_changes_stays():
    assert_same(hoist_branches(data_guard, {}), data_guard)


# level 4 -----------------------------------------------------------------------------------------


@T.prim_func(s_tir=True)
def read_before_guard(
    i: T.int32,
    A: T.Buffer((4, 8), "int32", scope="shared.mram"),
    x: T.Buffer((8,), "int32", scope="shared.mram"),
):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    V = T.sblock_alloc_buffer((8,), "int32", scope="shared.wram")
    for r in range(4):
        T.call_extern("void", "mram_read", T.address_of(x[0]), 0, T.address_of(V[0]), 0, 32)
        T.call_extern("void", "mram_read", T.address_of(A[r, 0]), 0, T.address_of(W[0]), 0, 32)
        if i * 2 < 7:
            for k in range(8):
                S[r] = S[r] + W[k] * V[k]


@T.prim_func(s_tir=True)
def read_under_guard(
    i: T.int32,
    A: T.Buffer((4, 8), "int32", scope="shared.mram"),
    x: T.Buffer((8,), "int32", scope="shared.mram"),
):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    V = T.sblock_alloc_buffer((8,), "int32", scope="shared.wram")
    for r in range(4):
        T.call_extern("void", "mram_read", T.address_of(x[0]), 0, T.address_of(V[0]), 0, 32)
        if i * 2 < 7:
            T.call_extern("void", "mram_read", T.address_of(A[r, 0]), 0, T.address_of(W[0]), 0, 32)
            for k in range(8):
                S[r] = S[r] + W[k] * V[k]


def test_reads_move_under_the_guard_of_their_only_user_but_shared_ones_stay():
    assert_same(sink_reads(read_before_guard, {}), read_under_guard)


@T.prim_func(s_tir=True)
def read_used_twice(i: T.int32, A: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    T.call_extern("void", "mram_read", T.address_of(A[0]), 0, T.address_of(W[0]), 0, 32)
    if i * 2 < 7:
        S[0] = W[0]
    S[1] = W[1]


def test_a_read_with_another_user_stays():
    assert_same(sink_reads(read_used_twice, {}), read_used_twice)
