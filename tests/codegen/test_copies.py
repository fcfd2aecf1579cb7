"""Copies between MRAM and WRAM: when their guards may go, and when they are legal DMA."""

from __future__ import annotations

import pytest
from kernel_forms import TILES, assert_same
from tvm.script import tirx as T

from atim.codegen.boundary import inject_dma, remove_copy_checks
from atim.errors import ScheduleError

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
