"""Level 5: guards of unrolled loops, rounded up where the surplus can't count."""

# ruff: noqa: C901 -- TVMScript is parsed, not run

from __future__ import annotations

from kernel_forms import TILES, assert_same
from tvm.script import tirx as T

from atim.codegen.padding import round_guards


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
