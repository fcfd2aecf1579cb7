"""Sketch x decisions -> scheduled module: three structures, each in the order that TVM gets right.

Order matters twice, both times TVM 0.27 gives silently wrong modules otherwise (the tests show it).
`rfactor` forgets the spatial predicate of the final block: only the reduction is split before it,
the spatial loops of each nest after it. `compute_at` forgets the reduction predicate of a block
that `rfactor` made: such a block stays where it is, consumers move by `reverse_compute_at`.
Binding comes after `rfactor`, else the host nest is bound too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm.s_tir import Schedule

from atim.errors import ScheduleError
from atim.schedules.program import Operand
from atim.schedules.shapes import VECTOR_BLOCK, VECTOR_RESIDENT, Sizes, sizes_of
from atim.schedules.sketch import Sketch
from atim.target import SCOPE_REGISTERS, SCOPE_SHARED, SCOPE_TASKLET

__all__ = ["apply"]

_GRID = ("blockIdx.x", "blockIdx.y", "blockIdx.z")

# handles of s_tir.Schedule, which have no Python types worth naming
Loop = Any
Block = Any


def apply(sketch: Sketch, decisions: Mapping[str, int]) -> Schedule:
    """The scheduled module of one candidate.

    Raises `UsageError` on unknown or missing decisions, `ScheduleError` when TVM refuses a step.
    """
    sizes = sizes_of(sketch, sketch.columns(sketch.vector(decisions)))
    schedule = Schedule(sketch.func, debug_mask="none", error_render_level="none")
    try:
        _RULES[sketch.name](schedule, sketch, sizes, decisions)
    except (tvm.s_tir.ScheduleError, tvm.error.InternalError) as error:
        raise ScheduleError(f"{sketch.name} {dict(decisions)}: TVM refuses: {error}") from error
    return schedule


def _elementwise(s: Schedule, sketch: Sketch, sizes: Sizes, decisions: Mapping[str, int]) -> None:
    """grid > tasklet > other axes > blocks of the contiguous axis > one WRAM tile."""
    block, row = s.get_sblock(sketch.program.block), sketch.roles.row
    grid, inner = _split_grid(s, sketch, sizes, dict(enumerate(s.get_loops(block))))
    tile = sizes.tile[row]
    if decisions["cyclic"]:
        step, task, element = s.split(inner[row], [sizes.steps, sizes.tasklets, tile])
    else:
        task, step, element = s.split(inner[row], [sizes.tasklets, sizes.steps, tile])
    others = [loop for axis, loop in inner.items() if axis != row]
    turn, lane = s.split(element, [None, sizes.unroll])
    s.reorder(*grid, task, *others, step, turn, lane)
    _bind(s, grid, task)
    for operand, index in _reads(s, sketch, block):
        read = s.cache_read(block, index, SCOPE_TASKLET)
        s.compute_at(read, step if operand.uses(row) else task)
    s.reverse_compute_at(s.cache_write(block, 0, SCOPE_TASKLET), step)
    s.unroll(lane)


def _rows(s: Schedule, sketch: Sketch, sizes: Sizes, decisions: Mapping[str, int]) -> None:
    """Rows over DPUs and tasklets; every DPU sees the whole reduction."""
    block = s.get_sblock(sketch.program.block)
    loops = dict(enumerate(s.get_loops(block)))
    _, reduction = _split_reduction(s, sketch, sizes, loops)
    spatial = {axis: loops[axis] for axis in sketch.program.spatial}
    _kernel(s, sketch, sizes, decisions["vector"], block, [], spatial, reduction)


def _rows_split(s: Schedule, sketch: Sketch, sizes: Sizes, decisions: Mapping[str, int]) -> None:
    """Rows x reduction pieces over DPUs: partial results, added up by a host nest."""
    final = s.get_sblock(sketch.program.block)
    loops = dict(enumerate(s.get_loops(final)))
    pieces, reduction = _split_reduction(s, sketch, sizes, loops)
    piece_name = _name(s, pieces[0])
    reduction_names = [_name(s, loop) for loop in reduction]
    spatial_names = {axis: _name(s, loops[axis]) for axis in sketch.program.spatial}
    block = s.rfactor(pieces[0], factor_axis=0)
    named = {_name(s, loop): loop for loop in s.get_loops(block)}
    spatial = {axis: named[name] for axis, name in spatial_names.items()}
    reduction = [named[name] for name in reduction_names]
    _kernel(s, sketch, sizes, decisions["vector"], block, [named[piece_name]], spatial, reduction)
    _host_finish(s, final, sizes)


def _kernel(
    s: Schedule,
    sketch: Sketch,
    sizes: Sizes,
    place: int,
    block: Block,
    pieces: list[Loop],
    spatial: dict[int, Loop],
    reduction: list[Loop],
) -> None:
    """grid > tasklet > other spatial axes > row groups > tiles of the reduction > unrolled body.

    `reduction` ends with (tile step, element of the tile). With the vector kept for all rows of a
    tasklet, tiles lie outside of the row groups and the sums wait in WRAM.
    """
    row = sketch.roles.row
    grid, inner = _split_grid(s, sketch, sizes, spatial)
    grid = [*pieces, *grid]
    groups = sizes.task[row] // sizes.block
    task, group, lane = s.split(inner[row], [sizes.tasklets, groups, sizes.block])
    others = [loop for axis, loop in inner.items() if axis != row]
    *serial, step, element = reduction
    turn, copy = s.split(element, [None, sizes.unroll])
    if place == VECTOR_BLOCK:
        order, matrix_at = [*others, *serial, step, group], group
    else:
        order, matrix_at = [*others, group, *serial, step], step
    s.reorder(*grid, task, *order, turn, copy, lane)
    _bind(s, grid, task)
    result_at = others[-1] if others else task
    reads = []
    for operand, index in _reads(s, sketch, block):
        shared = place == VECTOR_RESIDENT and not operand.uses(row)
        scope = SCOPE_SHARED if shared else SCOPE_TASKLET
        reads.append((operand, shared, s.cache_read(block, index, scope)))
    write = s.cache_write(block, 0, SCOPE_TASKLET)
    if place != VECTOR_BLOCK:
        s.reverse_compute_at(s.cache_write(block, 0, SCOPE_REGISTERS), group)
    s.reverse_compute_at(write, result_at)
    for operand, shared, read in reads:
        if shared:
            s.compute_at(read, grid[-1])
            _share_copy(s, read, sizes, sizes.tile[sketch.roles.tile])
        elif not operand.uses(sketch.roles.tile):
            s.compute_at(read, task)
        else:
            s.compute_at(read, matrix_at if operand.uses(row) else step)
    s.decompose_reduction(block, serial[0] if serial else step)
    s.unroll(copy)
    s.unroll(lane)


def _host_finish(s: Schedule, final: Block, sizes: Sizes) -> None:
    """Partial results added on the host, the outermost axis cut over threads; pieces lie outside
    of the contiguous axis, so that the inner loop runs along memory."""
    *spatial, piece = s.get_loops(final)
    over, inside = s.split(spatial[0], [sizes.host, None])
    rest = [inside, *spatial[1:]]
    s.reorder(over, *rest[:-1], piece, rest[-1])
    s.parallel(over)
    s.decompose_reduction(final, piece)


def _split_grid(
    s: Schedule, sketch: Sketch, sizes: Sizes, loops: Mapping[int, Loop]
) -> tuple[list[Loop], dict[int, Loop]]:
    """Cut each grid axis into DPUs x span. Gives the DPU loops and, by axis, the loop inside."""
    grid, inner = [], dict(loops)
    for axis in sketch.roles.grid:
        over, inner[axis] = s.split(loops[axis], [sizes.grid[axis], sizes.dpu[axis]])
        grid.append(over)
    return grid, {axis: inner[axis] for axis in sketch.program.spatial}


def _split_reduction(
    s: Schedule, sketch: Sketch, sizes: Sizes, loops: Mapping[int, Loop]
) -> tuple[list[Loop], list[Loop]]:
    """[piece or nothing] and [other reduction loops..., tile step, element of the tile]."""
    piece, tile = sketch.roles.piece, sketch.roles.tile
    inner = {axis: loops[axis] for axis in sketch.program.reduction}
    pieces = []
    if piece is not None:
        over, inner[piece] = s.split(inner[piece], [sizes.grid[piece], sizes.dpu[piece]])
        pieces.append(over)
    step, element = s.split(inner[tile], [sizes.steps, sizes.tile[tile]])
    others = [loop for axis, loop in inner.items() if axis != tile]
    return pieces, [*others, step, element]


def _share_copy(s: Schedule, read: Block, sizes: Sizes, tile: int) -> None:
    """All tasklets load a shared operand together, a tile each in turn."""
    last = s.get_loops(read)[-1]
    if s.get(last).thread_binding is not None:
        last = s.add_unit_loop(read)  # a single element
    tile = min(int(s.get(last).extent), tile)
    turn, task, element = s.split(last, [None, sizes.tasklets, tile])
    outer = [loop for loop in s.get_loops(read)[:-3] if s.get(loop).thread_binding is None]
    s.reorder(task, *outer, turn, element)
    s.bind(task, "threadIdx.x")


def _reads(s: Schedule, sketch: Sketch, block: Block) -> list[tuple[Operand, int]]:
    """The inputs with their positions among the block's reads (before any caching)."""
    names = [str(region.source.name) for region in s.get(block).reads]
    return [(operand, names.index(operand.name)) for operand in sketch.program.inputs]


def _bind(s: Schedule, grid: list[Loop], task: Loop) -> None:
    for loop, name in zip(grid, _GRID, strict=False):
        s.bind(loop, name)
    s.bind(task, "threadIdx.x")


def _name(s: Schedule, loop: Loop) -> str:
    return str(s.get(loop).loop_var.name)


_RULES = {"elementwise": _elementwise, "rows": _rows, "rows_split": _rows_split}
