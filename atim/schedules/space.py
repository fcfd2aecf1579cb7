"""The space of schedules of a program: which sketches fit, and the coarse grid of each decision."""

from __future__ import annotations

from math import gcd

from tvm import tirx

from atim.errors import UnsupportedError, UsageError
from atim.products import block_forms
from atim.schedules.program import Operand, Program, analyse
from atim.schedules.sketch import Decision, Roles, Sketch
from atim.target import DMA_ALIGN_BYTES, MULTIPLY_WORDS, Target

__all__ = ["design_space", "sketches_of"]

MAX_GRID_AXES = 3
# up to so many rows, tasklets may share a row (each sums a part of it)
FEW_ROWS = 96
TASKLETS = (1, 2, 3, 4, 6, 8, 10, 11, 12, 14, 16, 18, 20, 21, 22, 24)
SPREADS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
ROW_BLOCKS = (1, 2, 4)
WIDE_ROW_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128)
UNROLLS = (1, 2, 4, 8, 16, 32, 64)
HOST_THREADS = (1, 2, 4, 8, 16, 32)
_ODD_PARTS = (1, 3, 5, 7)


def design_space(
    func: tirx.PrimFunc, target: Target, resident: tuple[str, ...] = ()
) -> list[Sketch]:
    """All sketches of a PrimFunc for the target.

    resident: names of inputs that lie in MRAM before the run (unknown names raise `UsageError`).
    Raises `UnsupportedError` with the block's name when the program can't be placed on DPUs.
    """
    return sketches_of(analyse(func), target, resident)


def sketches_of(program: Program, target: Target, resident: tuple[str, ...] = ()) -> list[Sketch]:
    """As `design_space`, for a program analysed already."""
    after = program.epilogue
    read = [o.name for o in (*program.inputs, *(after.inputs if after else ()))]
    results = {program.output.name, after.output.name if after else ""}
    known = [name for p in program.original.params if (name := str(p.name)) not in results]
    for name in resident:
        if name not in known:
            raise UsageError(f"resident: {name!r} unknown, inputs: {', '.join(known)}")
    resident = tuple(name for name in resident if name in read)
    if not program.spatial:
        raise UnsupportedError(f"block {program.block}: no spatial axis")
    if not program.reduction:
        return [_elementwise(program, target, resident)]
    if not program.splittable:
        return [_rows(program, target, resident)]
    if program.results == len(program.inputs) == 1:
        return [_reduce(program, target, resident)]
    sketches = [_rows(program, target, resident)]
    if program.results > 1:
        sketches.append(_rows_split(program, target, resident))
    few = program.axes[_row_axis(program)].extent <= FEW_ROWS
    if few and _contiguous_in_tile(program):
        sketches.append(_reduce(program, target, resident))
    return sketches


def _elementwise(program: Program, target: Target, resident: tuple[str, ...]) -> Sketch:
    row_axis = _row_axis(program)
    grid, across = _grid_axes(program, MAX_GRID_AXES), _across_axis(program)
    roles = Roles(row_axis, row_axis, None, grid, across, _spread_axis(program))
    row = program.axes[row_axis]
    widest = max(o.item_bytes for o in (*program.inputs, program.output))
    decisions = (
        *_dpu_decisions(program, roles, target),
        *_tasklet_decisions(roles, target),
        Decision("tile", _tiles(row.extent, widest)),
        Decision("unroll", UNROLLS),
        Decision("cyclic", (0, 1)),
        Decision("even", (1,)),
    )
    if across is not None:
        decisions += (Decision("across", _tiles(program.axes[across].extent, widest)),)
    return Sketch("elementwise", program, roles, decisions, False, target, resident)


def _rows(program: Program, target: Target, resident: tuple[str, ...]) -> Sketch:
    roles = Roles(
        row=_row_axis(program),
        tile=_tile_axis(program),
        piece=None,
        grid=_grid_axes(program, MAX_GRID_AXES),
        spread=_spread_axis(program),
    )
    decisions = (*_dpu_decisions(program, roles, target), *_row_decisions(program, roles, target))
    return Sketch("rows", program, roles, decisions, False, target, resident)


def _rows_split(program: Program, target: Target, resident: tuple[str, ...]) -> Sketch:
    piece = max(program.reduction, key=lambda axis: program.axes[axis].extent)
    roles = Roles(
        row=_row_axis(program),
        tile=_tile_axis(program),
        piece=piece,
        grid=_grid_axes(program, MAX_GRID_AXES - 1),
        spread=_spread_axis(program),
    )
    pieces = tuple(p for p in counts(program.axes[piece].extent, target.dpus) if p > 1) or (1,)
    decisions = (
        *_dpu_decisions(program, roles, target),
        Decision("pieces", pieces),
        *_row_decisions(program, roles, target),
        Decision("host_threads", HOST_THREADS),
    )
    return Sketch("rows_split", program, roles, decisions, True, target, resident)


def _reduce(program: Program, target: Target, resident: tuple[str, ...]) -> Sketch:
    tile = _tile_axis(program)
    grid = tuple(a for a in _grid_axes(program, MAX_GRID_AXES - 1) if program.axes[a].extent > 1)
    roles = Roles(_row_axis(program), tile, tile, grid)
    extent = program.axes[tile].extent
    decisions = (
        *_dpu_decisions(program, roles, target),
        Decision("pieces", counts(extent, target.dpus)),
        Decision("tasklets", _tasklets(target)),
        Decision("tile", _tiles(extent, max(o.item_bytes for o in program.inputs))),
        Decision("unroll", UNROLLS),
        Decision("cyclic", (0, 1)),
        Decision("even", (1,)),
        *_multiply_decision(program, target),
        Decision("host_threads", HOST_THREADS),
    )
    return Sketch("reduce", program, roles, decisions, True, target, resident)


def _row_decisions(program: Program, roles: Roles, target: Target) -> tuple[Decision, ...]:
    widest = max(o.item_bytes for o in program.inputs)
    vectors = [o for o in program.inputs if not o.uses(roles.row)]
    return (
        *_tasklet_decisions(roles, target),
        Decision("row_block", _row_blocks(program, roles)),
        Decision("tile", _tiles(program.axes[roles.tile].extent, widest)),
        Decision("vector", (0, 1, 2) if vectors else (0,)),
        Decision("unroll", UNROLLS),
        Decision("even", (1,)),
        *_multiply_decision(program, target),
    )


def _multiply_decision(program: Program, target: Target) -> tuple[Decision, ...]:
    """How products are summed up: nothing where the block sums up something else, or where a
    hypothetical unit multiplies what is wider than a byte."""
    forms = block_forms(program.func, program.block)
    if target.units and forms != (MULTIPLY_WORDS,):
        return ()
    return (Decision("multiply", forms),) if forms else ()


def _tasklet_decisions(roles: Roles, target: Target) -> tuple[Decision, ...]:
    along = Decision("tasklets", _tasklets(target))
    if roles.spread is None:
        return (along,)
    return (along, Decision("tasklets_outer", tuple(t for t in SPREADS if t <= target.tasklets)))


def _row_blocks(program: Program, roles: Roles) -> tuple[int, ...]:
    """Rows handled together: whole 8-byte words where rows are what is contiguous in an operand of
    the inner loop, and then also more of them than there are registers."""
    steps = [
        DMA_ALIGN_BYTES // gcd(DMA_ALIGN_BYTES, operand.innermost(roles.row) * operand.item_bytes)
        for operand in program.inputs
        if operand.uses(roles.tile) and operand.innermost(roles.row)
    ]
    if not steps or program.axes[roles.row].extent == 1:
        return ROW_BLOCKS
    return tuple(block for block in WIDE_ROW_BLOCKS if block % max(steps) == 0)


def _dpu_decisions(program: Program, roles: Roles, target: Target) -> tuple[Decision, ...]:
    return tuple(
        Decision(f"dpus_{program.axes[a].name}", counts(program.axes[a].extent, target.dpus))
        for a in roles.grid
    )


def counts(extent: int, limit: int) -> tuple[int, ...]:
    """1, 2, 3, ... as odd part x power of two up to min(extent, limit), and that bound itself."""
    top = min(extent, limit)
    values = {top}
    for odd in _ODD_PARTS:
        value = odd
        while value <= top:
            values.add(value)
            value *= 2
    return tuple(sorted(values))


def _tasklets(target: Target) -> tuple[int, ...]:
    return tuple(t for t in TASKLETS if t <= target.tasklets) or (1,)


def _tiles(extent: int, item_bytes: int) -> tuple[int, ...]:
    """Elements of a WRAM tile: 16 B to 2 KB (one DMA), not beyond the axis."""
    sizes = [n for n in (16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)]
    values = [s // item_bytes for s in sizes if s >= item_bytes]
    fitting = [v for v in values if v < extent]
    rest = [v for v in values if v >= extent]
    return tuple(dict.fromkeys(fitting + rest[:1])) or (values[-1],)


def _grid_axes(program: Program, limit: int) -> tuple[int, ...]:
    """The longest spatial axes, in program order, as many as the grid has dimensions."""
    ranked = sorted(program.spatial, key=lambda axis: -program.axes[axis].extent)
    return tuple(sorted(ranked[:limit]))


def _row_axis(program: Program) -> int:
    """The last spatial axis, unless it is 1 long: then the one before is contiguous."""
    long = [axis for axis in program.spatial if program.axes[axis].extent > 1]
    return long[-1] if long else program.spatial[-1]


def _across_axis(program: Program) -> int | None:
    """An axis besides the row axis along which an input of both is contiguous."""
    row = _row_axis(program)
    for operand in program.inputs:
        for axis, coefficient in enumerate(operand.contiguous):
            long = program.axes[axis].extent > 1
            if coefficient and long and axis != row and operand.uses(row):
                return axis
    return None


def _spread_axis(program: Program) -> int | None:
    """The axis before the row axis that is long enough to be spread over tasklets as well."""
    row = _row_axis(program)
    long = [a for a in program.spatial if a < row and program.axes[a].extent > 1]
    return long[-1] if long else None


def _contiguous_in_tile(program: Program) -> bool:
    """Every input is contiguous along the tile axis alone, so that tiles of one element in all
    other axes start at multiples of 8 bytes."""
    tile = _tile_axis(program)
    return not any(
        coefficient and axis != tile and program.axes[axis].extent > 1
        for operand in program.inputs
        for axis, coefficient in enumerate(operand.contiguous)
    )


def _tile_axis(program: Program) -> int:
    """The reduction axis that is contiguous in the largest operand, else the longest."""

    def volume(operand: Operand) -> int:
        product = 1
        for n in operand.shape:
            product *= n
        return product

    for operand in sorted(program.inputs, key=volume, reverse=True):
        for axis in program.reduction:
            if operand.innermost(axis) == 1 and program.axes[axis].extent > 1:
                return axis
    return max(program.reduction, key=lambda axis: program.axes[axis].extent)
