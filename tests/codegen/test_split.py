"""Scheduled programs fall into host nests and one kernel of plain loops."""

from __future__ import annotations

import pytest
import te_programs as programs
import tvm_ffi
from tvm import te, tirx
from tvm.s_tir import SBlock, Schedule

from atim.codegen.split import split, thread_extents
from atim.errors import ScheduleError


def count(stmt, kind):
    found = []
    tvm_ffi.structural_walk(stmt, [(kind, lambda node: found.append(node))])
    return len(found)


def test_rows_split_has_a_kernel_and_a_finish_on_the_host():
    parts = split(programs.mtv_split(37, 53, dpus=2, pieces=3))
    assert parts.grid == (2, 3)
    assert [str(b.name) for b in parts.inputs] == ["A", "x", "y"]
    assert [str(b.name) for b in parts.temporaries] == ["y.rf"]
    assert (len(parts.before), len(parts.after)) == (0, 1)


def test_kernel_has_neither_blocks_nor_grid_loops_nor_loops_of_one_iteration():
    parts = split(programs.mtv_rows(37, 53, dpus=4, tasklets=3))
    assert count(parts.kernel.body, SBlock) == 0
    assert thread_extents(parts.kernel.body, "blockIdx") == {}
    assert thread_extents(parts.kernel.body, "threadIdx") == {"threadIdx.x": 3}
    loops = []
    tvm_ffi.structural_walk(
        parts.kernel.body, [(tirx.For, lambda loop: loops.append(int(loop.extent)))]
    )
    assert min(loops) > 1


def test_guards_take_their_coarsest_linear_form():
    """1000 = 8 * 125: whether a row exists is decided by the tasklet, not by the row."""
    parts = split(programs.mtv_rows(1000, 64, dpus=16, tasklets=8, rows=8))
    conditions = set()
    tvm_ffi.structural_walk(
        parts.kernel.body,
        [(tirx.IfThenElse, lambda node: conditions.add(str(node.condition).split("\n")[-1]))],
    )
    assert conditions == {"i_0 * 8 + i_1 < 125"}


def test_a_grid_variable_of_one_value_is_gone():
    parts = split(programs.va(50, dpus=1))
    assert parts.grid == (1,)
    used = []
    tvm_ffi.structural_walk(parts.kernel.body, [(tirx.Var, used.append)])
    assert not any(v.same_as(parts.grid_vars[0]) for v in used)


def test_a_program_without_grid_is_refused():
    with pytest.raises(ScheduleError, match="one nest must be bound to blockIdx, 0 are"):
        split(programs.va_func(50))


def test_two_kernels_are_refused():
    a = te.placeholder((64,), "int32", "A")
    b = te.compute((64,), lambda i: a[i] + 1, "B")
    s = Schedule(te.create_prim_func([a, te.compute((64,), lambda i: b[i] * 2, "C")]))
    for name in "BC":
        s.bind(s.get_loops(s.get_sblock(name))[0], "blockIdx.x")
    with pytest.raises(ScheduleError, match="2 are"):
        split(s.mod["main"])


def test_a_host_loop_around_the_grid_is_refused():
    s = Schedule(programs.va_func(64))
    _, d = s.split(s.get_loops(s.get_sblock("C"))[0], [4, None])
    s.bind(d, "blockIdx.x")
    with pytest.raises(ScheduleError, match="loop i_0 lies outside the blockIdx loops"):
        split(s.mod["main"])
