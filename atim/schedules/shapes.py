"""Decisions -> sizes at every level: DPU grid, elements of each axis per DPU, tasklet and WRAM tile.

Requested counts are upper limits: after rounding, DPUs and tasklets without any work are not launched,
so `used <= requested` and every size is reached by its own used count. In even mode tiles are equalised
(777 columns in tiles of 256 become four of 196, not 3 x 256 + 9) and tasklet shares fill the DPU's span
exactly; with even = 0 they are taken literally and the last one is clipped.

Alignment is met by construction: a size that sets a DMA's length or an address step is rounded up to
8 bytes of the operand concerned. All functions work on arrays of candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm

import numpy as np

from atim.schedules.program import Program
from atim.schedules.sketch import Column, Sketch
from atim.target import DMA_ALIGN_BYTES

__all__ = ["VECTOR_BLOCK", "VECTOR_RESIDENT", "VECTOR_ROW", "Shape", "canonical", "shape_of"]

# where operands that don't depend on the row axis are kept ("vector" decision)
VECTOR_ROW, VECTOR_BLOCK, VECTOR_RESIDENT = 0, 1, 2


@dataclass(slots=True)
class Shape:
    """Sizes in elements, one array [n] each; lists are indexed by the position of the axis.

    grid      DPUs used along the axis
    dpu       elements per DPU, unclipped
    task      elements per tasklet, unclipped
    tile      elements at the level where operands are copied to WRAM
    tasklets  tasklets used;  block: rows handled together;  steps: tiles per row (or per tasklet)
    unroll    copies of the innermost body along the tile;  host: host threads
    """

    grid: list[Column]
    dpu: list[Column]
    task: list[Column]
    tile: list[Column]
    tasklets: Column
    block: Column
    steps: Column
    unroll: Column
    host: Column

    def scalar(self) -> Shape:
        """The only candidate of a one-row matrix, as plain integers."""

        def one(column: Column) -> int:
            return int(column[0])

        return Shape(  # type: ignore[arg-type]
            *[[one(c) for c in getattr(self, f)] for f in ("grid", "dpu", "task", "tile")],  # type: ignore[arg-type]
            *[one(getattr(self, f)) for f in ("tasklets", "block", "steps", "unroll", "host")],  # type: ignore[arg-type]
        )


def shape_of(sketch: Sketch, columns: dict[str, Column]) -> Shape:
    """Sizes of every candidate. Non-positive decisions are taken as 1 (and rejected by `verify`)."""
    columns = {name: np.maximum(c, 0 if name in _SWITCHES else 1) for name, c in columns.items()}
    ones = np.ones_like(next(iter(columns.values())))
    extents = [ones * axis.extent for axis in sketch.program.axes]
    shape = Shape(
        grid=[ones.copy() for _ in extents],
        dpu=[e.copy() for e in extents],
        task=[e.copy() for e in extents],
        tile=[ones.copy() for _ in extents],
        tasklets=ones,
        block=ones,
        steps=ones,
        unroll=ones,
        host=columns.get("host_threads", ones),
    )
    for axis in sketch.roles.grid:
        if axis != sketch.roles.row:
            _cut_serial(sketch, shape, axis, columns)
    if sketch.name == "elementwise":
        _cut_elementwise(sketch, shape, columns)
    else:
        _cut_reduction(sketch, shape, columns)
        _cut_rows(sketch, shape, columns)
    return shape


_SWITCHES = ("vector", "even", "cyclic")


def canonical(sketch: Sketch, matrix: Column) -> Column:
    """Requested DPUs, pieces and tasklets replaced by the used ones: equal schedules get equal rows."""
    columns = sketch.columns(matrix)
    shape = shape_of(sketch, columns)
    result = np.array(matrix, dtype=np.int64, copy=True)
    used = {f"dpus_{sketch.program.axes[a].name}": shape.grid[a] for a in sketch.roles.grid}
    used["tasklets"] = shape.tasklets
    if sketch.roles.piece is not None:
        used["pieces"] = shape.grid[sketch.roles.piece]
    for i, name in enumerate(sketch.names):
        if name in used:
            result[:, i] = used[name]
    return result


def _ceil_div(a: Column, b: Column) -> Column:
    return -(-a // b)


def _round_up(a: Column, step: Column | int) -> Column:
    return -(-a // step) * step


def alignment(program: Program, axis: int) -> int:
    """Elements by which tiles along the axis must be counted so that every DMA that starts at a multiple
    of the tile is aligned: 8 bytes over the operands where the axis is contiguous."""
    steps = [1]
    for operand in (*program.inputs, program.output):
        stride = operand.innermost(axis) * operand.item_bytes
        if stride:
            steps.append(DMA_ALIGN_BYTES // gcd(DMA_ALIGN_BYTES, stride))
    return lcm(*steps)


def _dpus(sketch: Sketch, axis: int, columns: dict[str, Column]) -> Column:
    name = f"dpus_{sketch.program.axes[axis].name}"
    return columns.get(name, np.ones_like(next(iter(columns.values()))))


def _cut_serial(sketch: Sketch, shape: Shape, axis: int, columns: dict[str, Column]) -> None:
    """A spatial axis over DPUs whose share every tasklet walks in full."""
    extent = shape.dpu[axis]
    span = _ceil_div(extent, _dpus(sketch, axis, columns))
    shape.dpu[axis] = shape.task[axis] = span
    shape.grid[axis] = _ceil_div(extent, span)


def _cut_elementwise(sketch: Sketch, shape: Shape, columns: dict[str, Column]) -> None:
    """The contiguous axis: DPUs x tasklets x blocks x elements of one WRAM tile."""
    row = sketch.roles.row
    assert row is not None
    extent, even = shape.dpu[row], columns["even"] > 0
    step = alignment(sketch.program, row)
    share = _ceil_div(extent, _dpus(sketch, row, columns))
    unroll = np.minimum(columns["unroll"], _round_up(share, step))
    grain = np.lcm(unroll, step)
    per_task = _ceil_div(share, columns["tasklets"])
    blocks = _ceil_div(per_task, columns["tile"])
    fitted = _round_up(_ceil_div(per_task, blocks), grain)
    tile = np.where(even, fitted, _round_up(columns["tile"], grain))
    all_blocks = _ceil_div(share, tile)
    blocks = _ceil_div(all_blocks, columns["tasklets"])
    tasklets = _ceil_div(all_blocks, blocks)
    full = tasklets * blocks * tile
    shape.dpu[row] = np.where(even, full, np.minimum(full, _round_up(share, step)))
    shape.grid[row] = _ceil_div(extent, shape.dpu[row])
    shape.task[row], shape.tile[row] = blocks * tile, tile
    shape.tasklets, shape.steps, shape.unroll = tasklets, blocks, unroll


def _cut_reduction(sketch: Sketch, shape: Shape, columns: dict[str, Column]) -> None:
    """The reduction: pieces over DPUs, tiles of one WRAM buffer."""
    piece, tile = sketch.roles.piece, sketch.roles.tile
    assert tile is not None
    even, step = columns["even"] > 0, alignment(sketch.program, tile)
    if piece is not None and piece != tile:
        _cut_piece(shape, piece, columns)
    extent = shape.dpu[tile]
    share = extent
    if piece == tile:
        share = _ceil_div(extent, columns["pieces"])
    unroll = np.minimum(columns["unroll"], _round_up(share, step))
    grain = np.lcm(unroll, step)
    fitted = _round_up(_ceil_div(share, _ceil_div(share, columns["tile"])), grain)
    size = np.where(even, fitted, _round_up(columns["tile"], grain))
    steps = _ceil_div(share, size)
    span = np.where(even, steps * size, np.minimum(steps * size, _round_up(share, step)))
    shape.dpu[tile] = shape.task[tile] = span
    shape.tile[tile], shape.steps, shape.unroll = size, steps, unroll
    if piece == tile:
        shape.grid[tile] = _ceil_div(extent, span)


def _cut_piece(shape: Shape, axis: int, columns: dict[str, Column]) -> None:
    extent = shape.dpu[axis]
    span = _ceil_div(extent, columns["pieces"])
    shape.dpu[axis] = shape.task[axis] = span
    shape.grid[axis] = _ceil_div(extent, span)


def _cut_rows(sketch: Sketch, shape: Shape, columns: dict[str, Column]) -> None:
    """The last spatial axis: DPUs x tasklets x row groups x rows handled together."""
    row = sketch.roles.row
    assert row is not None
    extent, even = shape.dpu[row], columns["even"] > 0
    step = alignment(sketch.program, row)
    share = _ceil_div(extent, _dpus(sketch, row, columns))
    block = np.minimum(columns["row_block"], _round_up(share, step))
    grain = np.lcm(block, step)
    per_task = _round_up(_ceil_div(share, columns["tasklets"]), grain)
    tasklets = _ceil_div(share, per_task)
    full = tasklets * per_task
    shape.dpu[row] = np.where(even, full, np.minimum(full, _round_up(share, step)))
    shape.grid[row] = _ceil_div(extent, shape.dpu[row])
    shape.task[row], shape.tile[row] = per_task, block
    shape.tasklets, shape.block = tasklets, block
