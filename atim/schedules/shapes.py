"""Decisions -> sizes at every level: DPU grid, elements of each axis per DPU, tasklet, WRAM tile.

Requested counts are upper limits: after rounding, DPUs and tasklets without any work are not
launched, so `used <= requested`, and every size is reached by its own used count. In even mode
tiles are equalised (777 columns in tiles of 256 become four of 196, not three and a rest of 9) and
tasklet shares fill the DPU's span exactly; with even = 0 tiles are literal and the last is clipped.

Alignment holds by construction: a size that sets the length or the step of a DMA is rounded up to
8 bytes of the operand concerned. All functions work on arrays of candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from atim.schedules.sketch import Column, Columns, Sketch
from atim.target import DMA_ALIGN_BYTES, DMA_MAX_BYTES, MULTIPLY_FLOAT

__all__ = [
    "REGISTER_ROWS",
    "SWITCHES",
    "VECTOR_BLOCK",
    "VECTOR_RESIDENT",
    "VECTOR_ROW",
    "Shape",
    "Sizes",
    "alignment",
    "ceil_div",
    "one_group",
    "round_up",
    "shape_of",
    "shared_chunks",
    "sizes_of",
]

# where operands that don't depend on the row axis are kept: the values of decision "vector"
VECTOR_ROW, VECTOR_BLOCK, VECTOR_RESIDENT = 0, 1, 2

# rows whose sums fit in registers; more are a wide block: sums in WRAM, the row loop innermost
REGISTER_ROWS = 8

# decisions that may be 0, with their largest value
SWITCHES = {"vector": VECTOR_RESIDENT, "even": 1, "cyclic": 1, "multiply": MULTIPLY_FLOAT}


@dataclass(slots=True)
class Shape:
    """Sizes in elements, an array [n] each; lists are indexed by the position of the axis.

    grid      DPUs used along the axis
    dpu       elements per DPU, unclipped: the step from one DPU to the next
    reach     elements that a DPU's loops touch, at least `dpu` (more where a tile is clipped)
    task      elements per tasklet, unclipped
    tile      elements at the level where operands are copied to WRAM
    tasklets  tasklets along the row axis (in "reduce": the tile axis);  spread: along the other
    block     rows handled together;  steps: tiles per row (or per tasklet)
    unroll    copies of the innermost body along the tile, or along the rows of a wide block
    host      host threads
    """

    grid: list[Column]
    dpu: list[Column]
    reach: list[Column]
    task: list[Column]
    tile: list[Column]
    tasklets: Column
    spread: Column
    block: Column
    steps: Column
    unroll: Column
    host: Column

    @property
    def threads(self) -> Column:
        """Tasklets of a DPU in all."""
        return self.tasklets * self.spread


@dataclass(frozen=True, slots=True)
class Sizes:
    """`Shape` of a single candidate, as integers."""

    grid: tuple[int, ...]
    dpu: tuple[int, ...]
    task: tuple[int, ...]
    tile: tuple[int, ...]
    tasklets: int
    spread: int
    block: int
    steps: int
    unroll: int
    host: int


def shape_of(sketch: Sketch, columns: Columns) -> Shape:
    """Sizes of every candidate. Decisions below their minimum are taken as the minimum, so that
    `verify` can reject them afterwards."""
    columns = {name: np.maximum(c, 0 if name in SWITCHES else 1) for name, c in columns.items()}
    ones = np.ones_like(next(iter(columns.values())))
    extents = [ones * axis.extent for axis in sketch.program.axes]
    shape = Shape(
        grid=[ones] * len(extents),
        dpu=list(extents),
        reach=list(extents),
        task=list(extents),
        tile=[ones] * len(extents),
        tasklets=ones,
        spread=ones,
        block=ones,
        steps=ones,
        unroll=ones,
        host=_host(sketch, columns, ones),
    )
    roles = sketch.roles
    for axis in sketch.program.spatial:
        if axis != roles.row and axis in (*roles.grid, roles.across, roles.spread):
            _cut_serial(sketch, shape, axis, columns)
    if sketch.name == "elementwise":
        _cut_along(sketch, shape, columns, _dpus(sketch, roles.row, columns))
    elif sketch.name == "reduce":
        if roles.row in roles.grid:
            _cut_serial(sketch, shape, roles.row, columns)
        _cut_along(sketch, shape, columns, columns["pieces"])
    else:
        _cut_reduction(sketch, shape, columns)
        _cut_rows(sketch, shape, columns)
    return shape


def sizes_of(sketch: Sketch, columns: Columns) -> Sizes:
    """Sizes of the first candidate."""
    shape = shape_of(sketch, columns)

    def first(parts: list[Column]) -> tuple[int, ...]:
        return tuple(int(part[0]) for part in parts)

    return Sizes(
        first(shape.grid),
        first(shape.dpu),
        first(shape.task),
        first(shape.tile),
        *first([shape.tasklets, shape.spread, shape.block, shape.steps, shape.unroll, shape.host]),
    )


def one_group(sketch: Sketch, shape: Shape) -> npt.NDArray[np.bool_]:
    """A tasklet's rows are handled together, all at once."""
    row = sketch.roles.row
    return np.minimum(shape.task[row], sketch.program.axes[row].extent) <= shape.block


def ceil_div(a: Column, b: Column | int) -> Column:
    """Quotient rounded up."""
    return -(-a // b)


def round_up(a: Column, step: Column | int) -> Column:
    """The next multiple of step."""
    return -(-a // step) * step


def shared_chunks(elements: Column, item: int, tasklets: Column) -> tuple[Column, Column, Column]:
    """How tasklets load `elements` of `item` bytes together: (turns, tasklets that take part,
    elements each time). One DMA of at most 2 KB a turn: the DMA engine is serial, so that fewer
    and longer ones are faster, and what doesn't divide is padded by 8 bytes a DMA at most."""
    longest = DMA_MAX_BYTES // item
    chunks = ceil_div(elements, longest)
    turns = ceil_div(chunks, tasklets)
    sharers = ceil_div(chunks, turns)
    step = DMA_ALIGN_BYTES // gcd(DMA_ALIGN_BYTES, item)
    size = round_up(ceil_div(elements, turns * sharers), step)
    return turns, sharers, np.minimum(size, elements)


def alignment(sketch: Sketch, axis: int) -> int:
    """Elements that a tile along the axis must be a multiple of, so that DMAs starting at any tile
    are aligned to 8 bytes in every operand where the axis runs through the contiguous dimension."""
    steps = [1]
    if sketch.program.axes[axis].extent == 1:
        return 1  # a single copy, whose length is rounded up into padding
    for operand in (*sketch.inputs, sketch.output):
        stride = operand.innermost(axis) * operand.item_bytes
        if stride:
            steps.append(DMA_ALIGN_BYTES // gcd(DMA_ALIGN_BYTES, stride))
    return lcm(*steps)


def _not_beyond(requested: Column, share: Column) -> Column:
    """The request where it fits, else the largest power of two that does."""
    power = np.int64(1) << np.floor(np.log2(share)).astype(np.int64)
    return np.where(requested > share, power, requested)


def _host(sketch: Sketch, columns: Columns, ones: Column) -> Column:
    """Threads that get a part of the outermost axis of the host finish."""
    extent = ones * sketch.program.axes[sketch.program.spatial[0]].extent
    return ceil_div(extent, ceil_div(extent, columns.get("host_threads", ones)))


def _dpus(sketch: Sketch, axis: int, columns: Columns) -> Column:
    name = f"dpus_{sketch.program.axes[axis].name}"
    return columns.get(name, np.ones_like(next(iter(columns.values()))))


def _cut_serial(sketch: Sketch, shape: Shape, axis: int, columns: Columns) -> None:
    """A spatial axis besides the row axis: over DPUs, perhaps over tasklets, the rest in turn,
    element by element or (the axis `across`) tile by tile."""
    extent, roles = shape.dpu[axis], sketch.roles
    share = ceil_div(extent, _dpus(sketch, axis, columns))
    spread = columns["tasklets_outer"] if axis == roles.spread else np.ones_like(share)
    per_task = ceil_div(share, spread)
    tile = np.full_like(share, alignment(sketch, axis))
    if axis == roles.across:
        tile = round_up(ceil_div(per_task, ceil_div(per_task, columns["across"])), tile)
        shape.tile[axis] = tile
    per_task = round_up(per_task, tile)
    if axis == roles.spread:
        shape.spread = ceil_div(share, per_task)
    used = ceil_div(share, per_task)
    shape.dpu[axis] = shape.reach[axis] = used * per_task
    shape.task[axis] = per_task
    shape.grid[axis] = ceil_div(extent, shape.dpu[axis])


def _cut_along(sketch: Sketch, shape: Shape, columns: Columns, dpus: Column) -> None:
    """The tile axis over everything: DPUs x tasklets x blocks x elements of one WRAM tile."""
    axis = sketch.roles.tile
    extent, even = shape.dpu[axis], columns["even"] > 0
    step = alignment(sketch, axis)
    share = ceil_div(extent, dpus)
    unroll = _not_beyond(columns["unroll"], share)
    grain = np.lcm(unroll, step)
    per_task = ceil_div(share, columns["tasklets"])
    fitted = round_up(ceil_div(per_task, ceil_div(per_task, columns["tile"])), grain)
    tile = np.where(even, fitted, round_up(columns["tile"], grain))
    all_blocks = ceil_div(share, tile)
    blocks = ceil_div(all_blocks, columns["tasklets"])
    tasklets = ceil_div(all_blocks, blocks)
    full = tasklets * blocks * tile
    # results are written tile by tile, so that the next DPU must begin after the last tile
    clipped = ~even & (sketch.name == "reduce")
    shape.dpu[axis] = np.where(clipped, np.minimum(full, round_up(share, step)), full)
    shape.grid[axis] = ceil_div(extent, shape.dpu[axis])
    shape.reach[axis], shape.task[axis], shape.tile[axis] = full, blocks * tile, tile
    shape.tasklets, shape.steps, shape.unroll = tasklets, blocks, unroll


def _cut_reduction(sketch: Sketch, shape: Shape, columns: Columns) -> None:
    """The reduction: pieces over DPUs, tiles of one WRAM buffer."""
    piece, tile = sketch.roles.piece, sketch.roles.tile
    even, step = columns["even"] > 0, alignment(sketch, tile)
    share = extent = shape.dpu[tile]
    if piece == tile:
        share = ceil_div(extent, columns["pieces"])
    elif piece is not None:
        whole = shape.dpu[piece]
        span = ceil_div(whole, columns["pieces"])
        shape.dpu[piece] = shape.reach[piece] = shape.task[piece] = span
        shape.grid[piece] = ceil_div(whole, span)
    _, block = _row_block(sketch, shape, columns)
    wide = block > REGISTER_ROWS
    # copies of a wide block's body fill it exactly: results are written block by block
    fitting = np.gcd(columns["unroll"], block)
    unroll = np.where(wide, fitting, _not_beyond(columns["unroll"], share))
    grain = np.lcm(np.where(wide, 1, unroll), step)
    fitted = round_up(ceil_div(share, ceil_div(share, columns["tile"])), grain)
    size = np.where(even, fitted, round_up(columns["tile"], grain))
    steps = ceil_div(share, size)
    span = np.where(even, steps * size, np.minimum(steps * size, round_up(share, step)))
    shape.dpu[tile] = shape.task[tile] = span
    shape.reach[tile] = steps * size
    shape.tile[tile], shape.steps, shape.unroll = size, steps, unroll
    if piece == tile:
        shape.grid[tile] = ceil_div(extent, span)


def _row_block(sketch: Sketch, shape: Shape, columns: Columns) -> tuple[Column, Column]:
    """(rows of a DPU before rounding, rows handled together); to be called before the rows are
    cut."""
    row = sketch.roles.row
    share = ceil_div(shape.dpu[row], _dpus(sketch, row, columns))
    step = alignment(sketch, row)
    return share, _not_beyond(columns["row_block"], round_up(share, step))


def _cut_rows(sketch: Sketch, shape: Shape, columns: Columns) -> None:
    """The last spatial axis: DPUs x tasklets x row groups x rows handled together."""
    row = sketch.roles.row
    extent, step = shape.dpu[row], alignment(sketch, row)
    share, block = _row_block(sketch, shape, columns)
    grain = np.lcm(block, step)
    per_task = round_up(ceil_div(share, columns["tasklets"]), grain)
    tasklets = ceil_div(share, per_task)
    shape.dpu[row] = shape.reach[row] = tasklets * per_task
    shape.grid[row] = ceil_div(extent, shape.dpu[row])
    shape.task[row], shape.tile[row] = per_task, block
    shape.tasklets, shape.block = tasklets, block
