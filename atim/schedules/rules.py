"""Sketch x decisions -> scheduled module: three structures, each in the one order that TVM gets right.

The order matters twice (both are silent wrong results inside TVM 0.27, shown by the tests):
`rfactor` forgets the spatial predicate of the final block, so only the reduction is split before it and
the spatial loops of each nest after it; and a predicated block is never moved by `compute_at`, consumers are
moved by `reverse_compute_at` instead. Binding comes after `rfactor`, else the host nest is bound too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm.s_tir import Schedule

from atim.errors import ScheduleError
from atim.schedules.shapes import VECTOR_BLOCK, VECTOR_RESIDENT, Shape, shape_of
from atim.schedules.sketch import Sketch
from atim.target import SCOPE_REGISTERS, SCOPE_SHARED, SCOPE_TASKLET

__all__ = ["apply"]

_GRID = ("blockIdx.x", "blockIdx.y", "blockIdx.z")

# handles of s_tir.Schedule carry no Python types
Loop = Any
Block = Any


def apply(sketch: Sketch, decisions: Mapping[str, int]) -> Schedule:
    """The scheduled module of one candidate.

    Raises `UsageError` on unknown or missing decisions, `ScheduleError` when TVM refuses a step.
    """
    columns = sketch.columns(sketch.vector(decisions))
    shape = shape_of(sketch, columns).scalar()
    switches = {name: int(column[0]) for name, column in columns.items()}
    schedule = Schedule(sketch.func, debug_mask="none", error_render_level="none")
    try:
        _RULES[sketch.name](schedule, sketch, shape, switches)
    except (tvm.s_tir.ScheduleError, tvm.error.InternalError, ValueError) as error:
        raise ScheduleError(f"{sketch.name} {dict(decisions)}: TVM refuses: {error}") from error
    return schedule


def _elementwise(s: Schedule, sketch: Sketch, shape: Shape, decisions: Mapping[str, int]) -> None:
    """grid > tasklet > outer axes > blocks of the contiguous axis > one WRAM tile."""
    block = s.get_sblock(sketch.program.block)
    row = sketch.roles.row
    loops = dict(enumerate(s.get_loops(block)))
    grid, inner = _split_grid(s, sketch, shape, loops)
    sizes = [shape.tasklets, shape.steps, shape.tile[row]]
    if decisions["cyclic"]:
        step, task, element = s.split(inner[row], [sizes[1], sizes[0], sizes[2]])
    else:
        task, step, element = s.split(inner[row], sizes)
    outer = [loop for axis, loop in inner.items() if axis != row]
    vector, lanes = _split_unroll(s, element, shape)
    s.reorder(*grid, task, *outer, step, vector, lanes)
    _bind(s, grid, task)
    for index in range(len(sketch.program.inputs)):
        s.compute_at(s.cache_read(block, index, SCOPE_TASKLET), step)
    s.reverse_compute_at(s.cache_write(block, 0, SCOPE_TASKLET), step)
    s.unroll(lanes)


def _rows(s: Schedule, sketch: Sketch, shape: Shape, decisions: Mapping[str, int]) -> None:
    """Rows over DPUs and tasklets; every DPU sees the whole reduction."""
    block = s.get_sblock(sketch.program.block)
    reduction = _split_reduction(s, sketch, shape, dict(enumerate(s.get_loops(block))))
    _kernel(s, sketch, shape, decisions, block, None, reduction)


def _rows_split(s: Schedule, sketch: Sketch, shape: Shape, decisions: Mapping[str, int]) -> None:
    """Rows x reduction pieces over DPUs: each DPU leaves a partial result, the host adds them."""
    final = s.get_sblock(sketch.program.block)
    reduction = _split_reduction(s, sketch, shape, dict(enumerate(s.get_loops(final))))
    position = [s.get(loop).loop_var.name for loop in s.get_loops(final)]
    piece_name = s.get(reduction[0]).loop_var.name
    names = [s.get(loop).loop_var.name for loop in reduction[1:]]
    block = s.rfactor(reduction[0], factor_axis=0)
    by_name = {s.get(loop).loop_var.name: loop for loop in s.get_loops(block)}
    assert piece_name in by_name, position
    _kernel(
        s, sketch, shape, decisions, block, by_name[piece_name], [by_name[name] for name in names]
    )
    _host_finish(s, final, shape)


def _kernel(
    s: Schedule,
    sketch: Sketch,
    shape: Shape,
    decisions: Mapping[str, int],
    block: Block,
    piece: Loop | None,
    reduction: list[Loop],
) -> None:
    """grid > tasklet > outer spatial axes > row groups > tiles of the reduction > unrolled body.

    `reduction` ends with (tile step, element of the tile). With the vector kept for all rows of a
    tasklet, tiles lie outside of the row groups and sums stay in WRAM meanwhile.
    """
    program, row = sketch.program, sketch.roles.row
    names = {s.get(loop).loop_var.name for loop in reduction}
    spatial = [
        loop
        for loop in s.get_loops(block)
        if s.get(loop).loop_var.name not in names
        and (piece is None or s.get(loop).loop_var.name != s.get(piece).loop_var.name)
    ]
    loops = dict(zip(program.spatial, spatial, strict=True))
    grid, inner = _split_grid(s, sketch, shape, loops)
    grid = [piece, *grid] if piece is not None else grid
    task, group, lane = s.split(
        inner[row], [shape.tasklets, shape.task[row] // shape.block, shape.block]
    )
    outer = [loop for axis, loop in inner.items() if axis != row]
    *serial, step, element = reduction
    vector, lanes = _split_unroll(s, element, shape)
    place = decisions["vector"]
    if place == VECTOR_BLOCK:
        order, rows_at = [*outer, *serial, step, group], outer[-1] if outer else task
    else:
        order, rows_at = [*outer, group, *serial, step], group
    s.reorder(*grid, task, *order, vector, lanes, lane)
    _bind(s, grid, task)
    reads = []
    for index, operand in enumerate(program.inputs):
        shared = not operand.uses(row) and place == VECTOR_RESIDENT
        reads.append((operand, shared, s.cache_read(block, index, SCOPE_SHARED if shared else SCOPE_TASKLET)))
    write = s.cache_write(block, 0, SCOPE_TASKLET)
    if place != VECTOR_BLOCK:
        s.reverse_compute_at(s.cache_write(block, 0, SCOPE_REGISTERS), rows_at)
    s.reverse_compute_at(write, outer[-1] if outer else task)
    for operand, shared, read in reads:
        if shared:
            s.compute_at(read, grid[-1])
            _share_copy(s, read, shape, shape.tile[sketch.roles.tile])
        else:
            s.compute_at(read, group if place == VECTOR_BLOCK and operand.uses(row) else step)
    s.decompose_reduction(block, (serial[0] if serial else step))
    s.unroll(lanes)
    s.unroll(lane)


def _split_grid(
    s: Schedule, sketch: Sketch, shape: Shape, loops: Mapping[int, Loop]
) -> tuple[list[Loop], dict[int, Loop]]:
    """Cut each grid axis into DPUs x span; returns DPU loops and, for every axis, the loop inside."""
    grid, inner = [], dict(loops)
    for axis in sketch.roles.grid:
        over, inner[axis] = s.split(loops[axis], [shape.grid[axis], shape.dpu[axis]])
        grid.append(over)
    return grid, inner


def _split_reduction(
    s: Schedule, sketch: Sketch, shape: Shape, loops: Mapping[int, Loop]
) -> list[Loop]:
    """[piece] + other reduction loops + [tile step, element of the tile], in nesting order."""
    piece, tile = sketch.roles.piece, sketch.roles.tile
    inner = {axis: loops[axis] for axis in sketch.program.reduction}
    pieces = []
    if piece is not None:
        over, inner[piece] = s.split(inner[piece], [shape.grid[piece], shape.dpu[piece]])
        pieces.append(over)
    step, element = s.split(inner[tile], [shape.steps, shape.tile[tile]])
    others = [loop for axis, loop in inner.items() if axis != tile]
    return [*pieces, *others, step, element]


def _split_unroll(s: Schedule, element: Loop, shape: Shape) -> tuple[Loop, Loop]:
    vector, lanes = s.split(element, [None, shape.unroll])
    return vector, lanes


def _bind(s: Schedule, grid: list[Loop], task: Loop) -> None:
    for loop, name in zip(grid, _GRID, strict=False):
        s.bind(loop, name)
    s.bind(task, "threadIdx.x")


def _share_copy(s: Schedule, read: Block, shape: Shape, tile: int) -> None:
    """All tasklets load the shared operand together, one tile each in turn."""
    last = s.get_loops(read)[-1]
    tile = min(int(s.get(last).extent), tile)
    turn, task, element = s.split(last, [None, shape.tasklets, tile])
    outer = [loop for loop in s.get_loops(read)[:-3] if s.get(loop).thread_binding is None]
    s.reorder(task, *outer, turn, element)
    s.bind(task, "threadIdx.x")


def _host_finish(s: Schedule, final: Block, shape: Shape) -> None:
    """y[..., i] = sum over pieces, pieces outside of the contiguous axis so that the inner loop runs
    along rows; the outermost axis is cut over host threads."""
    *spatial, piece = s.get_loops(final)
    first = spatial[0]
    over, inside = s.split(first, [shape.host, None])
    rest = [inside, *spatial[1:]]
    s.reorder(over, *rest[:-1], piece, rest[-1])
    s.parallel(over)
    s.decompose_reduction(final, piece)


_RULES = {"elementwise": _elementwise, "rows": _rows, "rows_split": _rows_split}
