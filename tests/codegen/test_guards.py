"""Guards that say nothing new go, and neighbours under the same ones share them; nothing else."""

from __future__ import annotations

import tvm_ffi
from kernel_forms import assert_same
from tvm.script import tirx as T
from tvm.tirx import For

from atim.codegen.boundary import tighten_loops
from atim.codegen.lower import drop_repeated_guards


@T.prim_func(s_tir=True)
def repeated(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((64,), "int32", scope="local.wram")
    for j in range(16):
        if i * 16 + j < 50 and i * 16 + j < 64:
            S[j] = 0
            for k in range(4):
                if i * 16 + j < 50 and k < 3:
                    S[j] = S[j] + k
                if i * 16 + j < 51:
                    S[j] = S[j] + 1


@T.prim_func(s_tir=True)
def said_once(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((64,), "int32", scope="local.wram")
    for j in range(16):
        if i * 16 + j < 50:
            S[j] = 0
            for k in range(4):
                if k < 3:
                    S[j] = S[j] + k
                S[j] = S[j] + 1


def test_conditions_that_hold_anyway_or_by_an_outer_one_go():
    assert_same(drop_repeated_guards(repeated, {}), said_once)


@T.prim_func(s_tir=True)
def neighbours(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((64,), "int32", scope="local.wram")
    for j in range(16):
        if i * 16 + j < 50:
            S[j] = 0
        if j < 9 and i * 16 + j < 50:
            S[j] = S[j] + 1


@T.prim_func(s_tir=True)
def gathered(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((64,), "int32", scope="local.wram")
    for j in range(16):
        if i * 16 + j < 50:
            S[j] = 0
            if j < 9:
                S[j] = S[j] + 1


def test_neighbours_share_the_conditions_of_one_of_them():
    assert_same(drop_repeated_guards(neighbours, {}), gathered)


@T.prim_func(s_tir=True)
def all_needed(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((64,), "int32", scope="local.wram")
    for j in range(16):
        if i * 16 + j < 50:
            S[j] = 9
            # stronger than what is known
            if i * 16 + j < 49:
                S[j] = 0
        # each has a condition of its own
        if j < 9 and i < 3:
            S[j] = 1
        if j < 8 and i < 3:
            S[j] = 2
        # data may have changed in between
        if S[0] < 5:
            S[0] = 7
            if S[0] < 5:
                S[1] = 3


def test_conditions_that_decide_something_stay():
    kept = drop_repeated_guards(all_needed, {})
    text = kept.script()
    for condition in ("< 49", "j < 9", "j < 8"):
        assert condition in text
    assert text.count("S[0] < 5") == 2
    assert text.count("i < 3") == 2


@T.prim_func(s_tir=True)
def short_tile(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((8,), "int32", scope="local.wram")
    for k in range(4):
        if k < 3:
            S[k] = 1


def test_an_extent_that_is_known_is_a_number():
    extents = []
    tvm_ffi.structural_walk(
        tighten_loops(short_tile, {}), [(For, lambda loop: extents.append(int(loop.extent)))]
    )
    assert extents == [3]
