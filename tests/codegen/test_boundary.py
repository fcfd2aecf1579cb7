"""Each boundary pass on small kernels: before, after, and a case that must stay as it is."""

from __future__ import annotations

import pytest
import tvm
from tvm.script import tirx as T

from atim.codegen.boundary import (
    BOUNDARY_PASSES,
    hoist_branches,
    inject_dma,
    remove_copy_checks,
    sink_reads,
    tighten_loops,
)
from atim.codegen.padding import round_guards
from atim.codegen.transfer import Tile
from atim.errors import ScheduleError

# ruff: noqa: C901 -- TVMScript is parsed, not run


def vector_tile(name: str, mode: str, n: int, extent: int, step: int) -> Tile:
    """A one-axis tile of `extent` elements at step * grid index."""
    return Tile(name, name, "int32", mode, (n,), (extent,), (extent,), (0,), ((step,),))


def assert_same(after: T.prim_func, expected: T.prim_func) -> None:
    plain = [f.without_attr("global_symbol") for f in (after, expected)]
    tvm.ir.assert_structural_equal(*plain, map_free_vars=True)


TILES = {
    "A": vector_tile("A", "in", 50, 24, 24),
    "C": vector_tile("C", "out", 50, 24, 24),
}


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


# level 1: checks of copies -----------------------------------------------------------------------


@T.prim_func(s_tir=True)
def guarded_copies(
    i: T.int32,
    A: T.Buffer((24,), "int32", scope="shared.mram"),
    C: T.Buffer((24,), "int32", scope="shared.mram"),
):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    for t in T.thread_binding(3, thread="threadIdx.x"):
        for a in range(8):
            if i * 24 + t * 8 + a < 50:
                W[a] = A[t * 8 + a]
        for a in range(8):
            if i * 24 + t * 8 + a < 50:
                C[t * 8 + a] = W[a]


@T.prim_func(s_tir=True)
def unguarded_copies(
    i: T.int32,
    A: T.Buffer((24,), "int32", scope="shared.mram"),
    C: T.Buffer((24,), "int32", scope="shared.mram"),
):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    for t in T.thread_binding(3, thread="threadIdx.x"):
        for a in range(8):
            W[a] = A[t * 8 + a]
        if i * 24 + t * 8 < 50:
            for a in range(8):
                C[t * 8 + a] = W[a]


def test_copies_lose_guards_that_only_keep_them_inside_the_tensor():
    assert_same(remove_copy_checks(guarded_copies, TILES), unguarded_copies)


@T.prim_func(s_tir=True)
def neighbours(
    i: T.int32,
    A: T.Buffer((24,), "int32", scope="shared.mram"),
    C: T.Buffer((24,), "int32", scope="shared.mram"),
):
    """Tasklets own 6 elements and step in fours: the second step must not reach into the next
    tasklet's part, and W is preset, so over-reading would be seen."""
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    for t in T.thread_binding(3, thread="threadIdx.x"):
        for o in range(2):
            for a in range(4):
                W[a] = 7
            for a in range(4):
                if o * 4 + a < 6:
                    W[a] = A[t * 6 + o * 4 + a]
            for a in range(4):
                if o * 4 + a < 6:
                    C[t * 6 + o * 4 + a] = W[a]


@T.prim_func(s_tir=True)
def neighbours_clipped(
    i: T.int32,
    A: T.Buffer((24,), "int32", scope="shared.mram"),
    C: T.Buffer((24,), "int32", scope="shared.mram"),
):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    for t in T.thread_binding(3, thread="threadIdx.x"):
        for o in range(2):
            for a in range(4):
                W[a] = 7
            for a in range(T.min(4, 6 - o * 4)):
                W[a] = A[t * 6 + o * 4 + a]
            for a in range(T.min(4, 6 - o * 4)):
                C[t * 6 + o * 4 + a] = W[a]


def test_copies_that_could_touch_valid_elements_keep_their_exact_length():
    assert_same(remove_copy_checks(neighbours, TILES), neighbours_clipped)


# level 1: DMA ------------------------------------------------------------------------------------


@T.prim_func(s_tir=True)
def rows_to_dma(i: T.int32, A: T.Buffer((6, 64), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((2, 16), "int32", scope="local.wram")
    for r, a in T.grid(2, 16):
        W[r, a] = A[r + 2, a + 32]


@T.prim_func(s_tir=True)
def rows_as_dma(i: T.int32, A: T.Buffer((6, 64), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((2, 16), "int32", scope="local.wram")
    for r in range(2):
        T.call_extern(
            "void", "mram_read", T.address_of(A[r + 2, 32]), 0, T.address_of(W[r, 0]), 0, 64
        )


def test_rows_at_a_distance_become_one_transfer_each():
    assert_same(inject_dma(rows_to_dma, {}), rows_as_dma)


@T.prim_func(s_tir=True)
def long_copy(i: T.int32, A: T.Buffer((1100,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((1100,), "int32", scope="local.wram")
    for a in range(1100):
        W[a] = A[a]


@T.prim_func(s_tir=True)
def long_copy_in_pieces(i: T.int32, A: T.Buffer((1100,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((1100,), "int32", scope="local.wram")
    for p in range(2):
        T.call_extern(
            "void",
            "mram_read",
            T.address_of(A[0]),
            p * 512,
            T.address_of(W[0]),
            p * 512,
            2048,
        )
    T.call_extern("void", "mram_read", T.address_of(A[0]), 1024, T.address_of(W[0]), 1024, 304)


def test_transfers_above_2048_bytes_are_cut():
    assert_same(inject_dma(long_copy, {}), long_copy_in_pieces)


@T.prim_func(s_tir=True)
def column(i: T.int32, A: T.Buffer((8, 8), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    for a in range(8):
        W[a] = A[a, 2]


@T.prim_func(s_tir=True)
def odd_start(i: T.int32, A: T.Buffer((32,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    for o, a in T.grid(2, 8):
        W[a] = A[o * 9 + a]


@T.prim_func(s_tir=True)
def odd_write(i: T.int32, C: T.Buffer((32,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    for a in range(3):
        C[a + 8] = W[a]


@T.prim_func(s_tir=True)
def unknown_write(i: T.int32, C: T.Buffer((32,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    for o in range(4):
        for a in range(T.min(8, 9 - o)):
            C[o * 8 + a] = W[a]


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (column, r"not contiguous, element steps \(from, to\) are a: \(8, 1\)"),
        (odd_start, r"A\[o \* 9\] is not 8-byte aligned"),
        (odd_write, "12 bytes, multiple of 8 needed"),
        (unknown_write, "is not always a multiple of 8"),
    ],
)
def test_copies_that_are_no_legal_dma_are_refused(kernel, reason):
    with pytest.raises(ScheduleError, match=reason):
        inject_dma(kernel, {})


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


# level 5 -----------------------------------------------------------------------------------------


@T.prim_func(s_tir=True)
def unrolled_guard(
    i: T.int32,
    A: T.Buffer((24,), "int32", scope="shared.mram"),
    C: T.Buffer((24,), "int32", scope="shared.mram"),
):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((24,), "int32", scope="local.wram")
    S = T.sblock_alloc_buffer((1,), "int32", scope="local.wram")
    V = T.sblock_alloc_buffer((24,), "int32", scope="local.wram")
    for a in range(24):
        W[a] = A[a]
    S[0] = 0
    for v in range(6):
        for u in T.unroll(4):
            if i * 24 + v * 4 + u < 50:
                S[0] = S[0] + W[v * 4 + u]
    for v in range(6):
        for u in T.unroll(4):
            if i * 24 + v * 4 + u < 50:
                V[v * 4 + u] = W[v * 4 + u] + 1


@T.prim_func(s_tir=True)
def rounded_guard(
    i: T.int32,
    A: T.Buffer((24,), "int32", scope="shared.mram"),
    C: T.Buffer((24,), "int32", scope="shared.mram"),
):
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((24,), "int32", scope="local.wram")
    S = T.sblock_alloc_buffer((1,), "int32", scope="local.wram")
    V = T.sblock_alloc_buffer((24,), "int32", scope="local.wram")
    for a in range(24):
        W[a] = A[a]
    S[0] = 0
    for v in range(6):
        if i * 24 + v * 4 < 50:
            for u in T.unroll(4):
                S[0] = S[0] + W[v * 4 + u]
    for v in range(6):
        if i * 24 + v * 4 < 50:
            for u in T.unroll(4):
                V[v * 4 + u] = W[v * 4 + u] + 1


def test_guards_in_unrolled_loops_are_rounded_up_over_zeros_and_own_elements():
    assert_same(round_guards(unrolled_guard, TILES), rounded_guard)


@T.prim_func(s_tir=True)
def not_roundable(
    i: T.int32,
    A: T.Buffer((24,), "int32", scope="shared.mram"),
    C: T.Buffer((24,), "int32", scope="shared.mram"),
):
    """A maximum isn't indifferent to zeros, 1 + 0 isn't 0, a preset element counts, 0 divides."""
    T.func_attr({"atim.grid": [4]})
    W = T.sblock_alloc_buffer((24,), "int32", scope="local.wram")
    S = T.sblock_alloc_buffer((1,), "int32", scope="local.wram")
    V = T.sblock_alloc_buffer((24,), "int32", scope="local.wram")
    Q = T.sblock_alloc_buffer((24,), "int32", scope="local.wram")
    for a in range(24):
        W[a] = A[a]
    S[0] = 0
    for v in range(6):
        for u in T.unroll(4):
            if i * 24 + v * 4 + u < 50:
                S[0] = T.max(S[0], W[v * 4 + u])
    for v in range(6):
        for u in T.unroll(4):
            if i * 24 + v * 4 + u < 50:
                S[0] = S[0] + (W[v * 4 + u] + 1)
    for a in range(24):
        V[a] = 7
    for v in range(6):
        for u in T.unroll(4):
            if i * 24 + v * 4 + u < 50:
                V[v * 4 + u] = W[v * 4 + u]
    for v in range(6):
        for u in T.unroll(4):
            if i * 24 + v * 4 + u < 50:
                Q[v * 4 + u] = T.truncdiv(100, W[v * 4 + u])


def test_guards_whose_surplus_would_count_stay():
    assert_same(round_guards(not_roundable, TILES), not_roundable)
