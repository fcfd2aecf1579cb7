"""Sketch x decisions -> scheduled module: four structures, each in the order that TVM gets right.

Order matters twice, both times TVM 0.27 gives silently wrong modules otherwise (the tests show it).
`rfactor` forgets the spatial predicate of the final block: only the reduction is split before it,
the spatial loops of each nest after it. `compute_at` forgets the reduction predicate of a block
that `rfactor` made: such a block stays where it is, consumers move by `reverse_compute_at`.
Binding comes after `rfactor`, else the host nest is bound too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from tvm.s_tir import Schedule

from atim.errors import ScheduleError
from atim.schedules.program import Operand
from atim.schedules.shapes import (
    REGISTER_ROWS,
    VECTOR_BLOCK,
    VECTOR_RESIDENT,
    Sizes,
    shared_chunks,
    sizes_of,
)
from atim.schedules.sketch import Sketch
from atim.target import (
    ANNOTATE_MULTIPLY,
    MULTIPLY_LIBRARY,
    SCOPE_REGISTERS,
    SCOPE_SHARED,
    SCOPE_TASKLET,
)

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
    schedule = Schedule(sketch.func, debug_mask="none", error_render_level="fast")
    try:
        _RULES[sketch.name](schedule, sketch, sizes, decisions)
    except (tvm.s_tir.ScheduleError, tvm.error.InternalError) as error:
        raise ScheduleError(f"{sketch.name} {dict(decisions)}: TVM refuses: {error}") from error
    return schedule


def _elementwise(s: Schedule, sketch: Sketch, sizes: Sizes, decisions: Mapping[str, int]) -> None:
    """grid > tasklet > other axes > blocks of the contiguous axis > one WRAM tile (of two axes
    where an input runs across)."""
    block, row = s.get_sblock(sketch.program.block), sketch.roles.row
    grid, inner = _split_grid(s, sketch, sizes, dict(enumerate(s.get_loops(block))))
    tile = sizes.tile[row]
    if decisions["cyclic"]:
        step, task, element = s.split(inner[row], [sizes.steps, sizes.tasklets, tile])
    else:
        task, step, element = s.split(inner[row], [sizes.tasklets, sizes.steps, tile])
    spread, across = _split_spread(s, sketch, sizes, inner), []
    if sketch.roles.across is not None:
        axis = sketch.roles.across
        inner[axis], second = s.split(inner[axis], [None, sizes.tile[axis]])
        across.append(second)
    others = [loop for axis, loop in inner.items() if axis != row]
    turn, lane = s.split(element, [None, sizes.unroll])
    s.reorder(*grid, *spread, task, *others, step, *across, turn, lane)
    _bind(s, grid, [*spread, task])
    for operand, index in _reads(s, block, sketch.program.inputs):
        read = _cache_read(s, block, index, SCOPE_TASKLET)
        s.compute_at(read, step if operand.uses(row) else task)
    s.reverse_compute_at(s.cache_write(block, 0, SCOPE_TASKLET), step)
    s.unroll(lane)


def _rows(s: Schedule, sketch: Sketch, sizes: Sizes, decisions: Mapping[str, int]) -> None:
    """Rows over DPUs and tasklets; every DPU sees the whole reduction."""
    block = s.get_sblock(sketch.program.block)
    loops = dict(enumerate(s.get_loops(block)))
    _, reduction = _split_reduction(s, sketch, sizes, loops)
    spatial = {axis: loops[axis] for axis in sketch.program.spatial}
    _kernel(s, sketch, sizes, decisions, block, [], spatial, reduction)


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
    _kernel(s, sketch, sizes, decisions, block, [named[piece_name]], spatial, reduction)
    _host_finish(s, sketch, final, sizes)


def _kernel(
    s: Schedule,
    sketch: Sketch,
    sizes: Sizes,
    decisions: Mapping[str, int],
    block: Block,
    pieces: list[Loop],
    spatial: dict[int, Loop],
    reduction: list[Loop],
) -> None:
    """grid > tasklet > other spatial axes > row groups > tiles of the reduction > unrolled body.

    `reduction` ends with (tile step, element of the tile). With the vector kept for all rows of a
    tasklet, tiles lie outside of the row groups and the sums wait in WRAM, as do those of a wide
    block of rows, whose loop runs innermost along contiguous memory.
    """
    row, tile, place = sketch.roles.row, sketch.roles.tile, decisions["vector"]
    grid, inner = _split_grid(s, sketch, sizes, spatial)
    grid = [*pieces, *grid]
    groups = sizes.task[row] // sizes.block
    task, group, lane = s.split(inner[row], [sizes.tasklets, groups, sizes.block])
    spread = _split_spread(s, sketch, sizes, inner)
    others = [loop for axis, loop in inner.items() if axis != row]
    *serial, step, element = reduction
    held, wide = place == VECTOR_BLOCK, sizes.block > REGISTER_ROWS
    turn, copy = s.split(lane if wide else element, [None, sizes.unroll])
    body = [element, turn, copy] if wide else [turn, copy, lane]
    order = [*serial, step, group] if held else [group, *serial, step]
    s.reorder(*grid, *spread, task, *others, *order, *body)
    _bind(s, grid, [*spread, task])
    share_at = others[-1] if others else task
    reads = []
    for operand, index in _reads(s, block, sketch.program.inputs):
        shared = place == VECTOR_RESIDENT and not operand.uses(row)
        scope = SCOPE_SHARED if shared else SCOPE_TASKLET
        reads.append((operand, shared, _cache_read(s, block, index, scope)))
    sums_at = share_at if held or wide else group
    _write_back(s, sketch, block, sums_at, share_at, fuse=not pieces)
    for operand, shared, read in reads:
        if shared:
            s.compute_at(read, grid[-1])
            _share_copy(s, read, sizes, operand.item_bytes, bool(spread))
        elif not operand.uses(tile):
            s.compute_at(read, task)
        else:
            s.compute_at(read, group if held and operand.uses(row) else step)
    s.annotate(block, ANNOTATE_MULTIPLY, decisions.get("multiply", MULTIPLY_LIBRARY))
    s.decompose_reduction(block, serial[0] if serial else step)
    for loop in body[1:] if not wide else [copy]:
        s.unroll(loop)


def _write_back(
    s: Schedule, sketch: Sketch, block: Block, sums_at: Loop, share_at: Loop, fuse: bool
) -> None:
    """Sums live at `sums_at` (registers, unless that is where the whole share lies); the tasklet's
    share of results goes to MRAM at `share_at`, through the epilogue where the kernel does it."""
    in_registers = not s.get(sums_at).same_as(s.get(share_at))
    scope = SCOPE_REGISTERS if in_registers else SCOPE_TASKLET
    epilogue = sketch.program.epilogue
    if epilogue is None or not epilogue.fused or not fuse:
        write = s.cache_write(block, 0, SCOPE_TASKLET)
        if in_registers:
            s.reverse_compute_at(s.cache_write(block, 0, scope), sums_at)
        s.reverse_compute_at(write, share_at)
        return
    after = s.get_sblock(epilogue.block)
    s.set_scope(block, 0, scope)
    write = s.cache_write(after, 0, SCOPE_TASKLET)
    s.reverse_compute_at(after, sums_at)
    s.reverse_compute_at(write, share_at)
    for _, index in _reads(s, after, epilogue.inputs):
        s.compute_at(_cache_read(s, after, index, SCOPE_TASKLET), share_at)


def _reduce(s: Schedule, sketch: Sketch, sizes: Sizes, decisions: Mapping[str, int]) -> None:
    """The reduction over DPUs and tasklets: a sum in each tasklet, added up by tasklet 0 in WRAM,
    one partial result a DPU, added up by the host."""
    final, axis = s.get_sblock(sketch.program.block), sketch.roles.tile
    loops = dict(enumerate(s.get_loops(final)))
    counts = [sizes.grid[axis], sizes.tasklets]
    over, inner = s.split(loops[axis], [sizes.grid[axis], sizes.dpu[axis]])
    if decisions["cyclic"]:
        step, task, element = s.split(inner, [sizes.steps, sizes.tasklets, sizes.tile[axis]])
    else:
        task, step, element = s.split(inner, [sizes.tasklets, sizes.steps, sizes.tile[axis]])
    others = [loops[a] for a in sketch.program.reduction if a != axis]
    s.reorder(over, task, *others, step, element)
    names = [_name(s, loop) for loop in (*others, step, element)]
    spatial_names = {a: _name(s, loops[a]) for a in sketch.program.spatial}
    both = s.fuse(over, task)
    both_name = _name(s, both)
    block = s.rfactor(both, factor_axis=0)
    partial = s.rfactor(s.split(s.get_loops(final)[-1], counts)[0], factor_axis=0)
    named = {_name(s, loop): loop for loop in s.get_loops(block)}
    over, task = s.split(named[both_name], counts)
    grid, spatial = _split_grid(
        s, sketch, sizes, {a: named[name] for a, name in spatial_names.items()}
    )
    *serial, step, element = [named[name] for name in names]
    turn, copy = s.split(element, [None, sizes.unroll])
    grid = [over, *grid]
    s.reorder(*grid, task, *spatial.values(), *serial, step, turn, copy)
    _bind(s, grid, [])
    s.set_scope(block, 0, SCOPE_SHARED)
    s.reverse_compute_at(partial, grid[-1])
    _bind(s, [], [task])
    for _, index in _reads(s, block, sketch.program.inputs):
        s.compute_at(_cache_read(s, block, index, SCOPE_TASKLET), step)
    s.reverse_compute_at(s.cache_write(block, 0, SCOPE_REGISTERS), list(spatial.values())[-1])
    s.reverse_compute_at(s.cache_write(partial, 0, SCOPE_SHARED), grid[-1])
    s.annotate(block, ANNOTATE_MULTIPLY, decisions.get("multiply", MULTIPLY_LIBRARY))
    s.decompose_reduction(block, serial[0] if serial else step)
    s.unroll(copy)
    if sizes.tasklets > 1:
        s.decompose_reduction(partial, s.get_loops(partial)[len(grid)])
    _host_finish(s, sketch, final, sizes)


def _host_finish(s: Schedule, sketch: Sketch, final: Block, sizes: Sizes) -> None:
    """Partial results added on the host, the outermost axis cut over threads; pieces lie outside
    of the contiguous axis, so that the inner loop runs along memory. Then the epilogue."""
    *spatial, piece = s.get_loops(final)
    over, inside = s.split(spatial[0], [sizes.host, None])
    rest = [inside, *spatial[1:]]
    s.reorder(over, *rest[:-1], piece, rest[-1])
    s.parallel(over)
    s.decompose_reduction(final, piece)
    epilogue = sketch.program.epilogue
    if epilogue is not None:
        first = s.get_loops(s.get_sblock(epilogue.block))[0]
        s.parallel(s.split(first, [sizes.host, None])[0])


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


def _split_spread(s: Schedule, sketch: Sketch, sizes: Sizes, inner: dict[int, Loop]) -> list[Loop]:
    """The tasklet loop of the second axis that is spread over tasklets, or nothing."""
    axis = sketch.roles.spread
    if axis is None:
        return []
    over, inner[axis] = s.split(inner[axis], [sizes.spread, sizes.task[axis]])
    return [over]


def _share_copy(s: Schedule, read: Block, sizes: Sizes, item_bytes: int, two_axes: bool) -> None:
    """All tasklets (of the first group, where two axes are spread) load a shared operand together,
    a chunk each in turn."""
    last = s.get_loops(read)[-1]
    if s.get(last).thread_binding is not None:
        last = s.add_unit_loop(read)  # a single element
    elements = np.array([int(s.get(last).extent)])
    parts = shared_chunks(elements, item_bytes, np.array([sizes.tasklets]))
    turn, task, element = s.split(last, [int(part[0]) for part in parts])
    outer = [loop for loop in s.get_loops(read)[:-3] if s.get(loop).thread_binding is None]
    groups = [s.add_unit_loop(read)] if two_axes else []
    s.reorder(*groups, task, *outer, turn, element)
    _bind(s, [], [*groups, task])


def _reads(s: Schedule, block: Block, operands: tuple[Operand, ...]) -> list[tuple[Operand, int]]:
    """Operands with their positions among the block's reads, which caching keeps."""
    names = [str(region.source.name) for region in s.get(block).reads]
    return [(operand, names.index(operand.name)) for operand in operands]


def _cache_read(s: Schedule, block: Block, index: int, scope: str) -> Block:
    """A cached copy for this block only, whoever else reads the tensor."""
    return s.cache_read(block, index, scope, consumer_blocks=[block])


def _bind(s: Schedule, grid: list[Loop], tasks: list[Loop]) -> None:
    for loop, name in zip(grid, _GRID, strict=False):
        s.bind(loop, name)
    for loop, name in zip(reversed(tasks), ("threadIdx.x", "threadIdx.y"), strict=False):
        s.bind(loop, name)


def _name(s: Schedule, loop: Loop) -> str:
    return str(s.get(loop).loop_var.name)


_RULES = {
    "elementwise": _elementwise,
    "rows": _rows,
    "rows_split": _rows_split,
    "reduce": _reduce,
}
