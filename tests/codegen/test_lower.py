"""Registers, initialisations, tasklets and barriers."""

from __future__ import annotations

import pytest
import tvm
import tvm_ffi
from kernel_forms import assert_same
from tvm.script import tirx as T

from atim.codegen.kernel_func import body_of, external_name
from atim.codegen.lower import BARRIER, lift_inits, spread_tasklets
from atim.codegen.registers import promote_sums, unroll_registers
from atim.errors import ScheduleError


def barriers(func) -> int:
    found = []

    def visit(call):
        if external_name(call) == BARRIER:
            found.append(call)

    tvm_ffi.structural_walk(body_of(func), [(tvm.ir.Call, visit)])
    return len(found)


@T.prim_func(s_tir=True)
def first_iteration(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    for k, r in T.grid(4, 4):
        if i * 2 < 7:
            if k == 0 and r == 0:
                S[0] = 0
            S[0] = S[0] + k


@T.prim_func(s_tir=True)
def lifted_init(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    if i * 2 < 7:
        S[0] = 0
    for k, _ in T.grid(4, 4):
        if i * 2 < 7:
            S[0] = S[0] + k


def test_what_runs_in_the_first_iteration_only_leaves_the_loops():
    assert_same(lift_inits(first_iteration, {}), lifted_init)


@T.prim_func(s_tir=True)
def later_iteration(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    for k in range(4):
        if k == 3:
            S[0] = 0
        S[0] = S[0] + k


def test_other_iterations_stay_where_they_are():
    assert_same(lift_inits(later_iteration, {}), later_iteration)


@T.prim_func(s_tir=True)
def sums_in_wram(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    X = T.sblock_alloc_buffer((16,), "int32", scope="local.wram")
    for g in range(2):
        for k in range(16):
            for r in T.unroll(2):
                S[g * 2 + r] = S[g * 2 + r] + X[k]


@T.prim_func(s_tir=True)
def sums_in_registers(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    X = T.sblock_alloc_buffer((16,), "int32", scope="local.wram")
    R = T.sblock_alloc_buffer((2,), "int32", scope="local")
    for g in range(2):
        for r in T.unroll(2):
            R[r] = S[g * 2 + r]
        for k in range(16):
            for r in T.unroll(2):
                R[r] = R[r] + X[k]
        for r in T.unroll(2):
            S[g * 2 + r] = R[r]


def test_sums_live_in_registers_around_the_outermost_loop_that_leaves_them_alone():
    assert_same(promote_sums(sums_in_wram, {}), sums_in_registers)


@T.prim_func(s_tir=True)
def not_promotable(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    """The element moves with the loop; it is read elsewhere; there are too many; others see it."""
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((16,), "int32", scope="local.wram")
    H = T.sblock_alloc_buffer((4,), "int32", scope="shared.wram")
    for k in range(16):
        S[k] = S[k] + 1
    for k in range(15):
        S[0] = S[0] + S[k + 1]
    for k in range(4):
        for r in T.unroll(9):
            S[r] = S[r] + k
    for k in range(4):
        H[0] = H[0] + k


def test_sums_that_something_else_touches_stay_in_wram():
    assert_same(promote_sums(not_promotable, {}), not_promotable)


@T.prim_func(s_tir=True)
def register_loop(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    R = T.sblock_alloc_buffer((4,), "int32", scope="local")
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    for r in range(4):
        R[r] = 0
    for r in range(4):
        S[r] = 0


@T.prim_func(s_tir=True)
def unrolled_register_loop(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    R = T.sblock_alloc_buffer((4,), "int32", scope="local")
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    for r in T.unroll(4):
        R[r] = 0
    for r in range(4):
        S[r] = 0


def test_loops_over_registers_are_unrolled():
    assert_same(unroll_registers(register_loop, {}), unrolled_register_loop)


# tasklets ----------------------------------------------------------------------------------------


@T.prim_func(s_tir=True)
def independent(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((4,), "int32", scope="local.wram")
    H = T.sblock_alloc_buffer((8,), "int32", scope="shared.wram")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        S[0] = t
    for t in T.thread_binding(4, thread="threadIdx.x"):
        H[t] = S[0]


def test_no_barrier_without_a_dependence_and_fewer_tasklets_are_guarded():
    spread = spread_tasklets(independent, 24)
    assert (spread.nr_tasklets, spread.barriers, barriers(spread.func)) == (8, False, 0)
    assert "if tasklet < 4:" in spread.func.script()


@T.prim_func(s_tir=True)
def partial_sums(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((1,), "int32", scope="local.wram")
    H = T.sblock_alloc_buffer((8,), "int32", scope="shared.wram")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        H[t] = t
    S[0] = 0
    for r in range(8):
        S[0] = S[0] + H[r]


def test_one_barrier_before_tasklet_0_adds_the_partial_sums():
    spread = spread_tasklets(partial_sums, 24)
    assert (spread.barriers, barriers(spread.func)) == (True, 1)
    _, wait, alone = body_of(spread.func).seq
    assert external_name(wait.value) == BARRIER
    # initialisation and sum are one part, behind the barrier
    assert str(alone.condition).endswith("tasklet == 0")
    assert len(alone.then_case.seq) == 2


@T.prim_func(s_tir=True)
def shared_tile_in_a_loop(i: T.int32, x: T.Buffer((32,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    S = T.sblock_alloc_buffer((1,), "int32", scope="local.wram")
    H = T.sblock_alloc_buffer((8,), "int32", scope="shared.wram")
    for k in range(4):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            H[t] = k
        for t in T.thread_binding(4, thread="threadIdx.x"):
            S[0] = S[0] + H[3 - t]


def test_a_shared_tile_in_a_loop_needs_a_barrier_on_both_sides():
    assert barriers(spread_tasklets(shared_tile_in_a_loop, 24).func) == 2


@T.prim_func(s_tir=True)
def two_axes(i: T.int32, y: T.Buffer((8,), "int32", scope="shared.mram")):
    T.func_attr({"atim.grid": [4]})
    H = T.sblock_alloc_buffer((3, 5), "int32", scope="shared.wram")
    for a in T.thread_binding(3, thread="threadIdx.y"):
        for b in T.thread_binding(5, thread="threadIdx.x"):
            H[a, b] = 1


def test_two_thread_axes_share_the_tasklet_number():
    spread = spread_tasklets(two_axes, 24)
    assert spread.nr_tasklets == 15
    assert "H[tasklet // 5, tasklet % 5] = 1" in spread.func.script()


def test_more_tasklets_than_the_chip_has_are_refused():
    with pytest.raises(ScheduleError, match="tasklets: 15 bound, limit 12"):
        spread_tasklets(two_axes, 12)
