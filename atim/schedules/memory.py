"""Copies between MRAM and WRAM: how many, how long, and what they occupy, as closed forms.

One `Copy` for each operand of a sketch, over arrays of candidates. It mirrors where `rules` puts
the `cache_read` and `cache_write` blocks: with the tile, once a tasklet, or once a DPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from atim.schedules.program import Operand
from atim.schedules.shapes import (
    REGISTER_ROWS,
    VECTOR_BLOCK,
    VECTOR_RESIDENT,
    VECTOR_ROW,
    Shape,
    ceil_div,
    round_up,
    shared_chunks,
)
from atim.schedules.sketch import Column, Columns, Sketch
from atim.target import DMA_ALIGN_BYTES, DMA_MAX_BYTES

__all__ = ["Copy", "copies_of"]


@dataclass(frozen=True, slots=True)
class Copy:
    """One operand's way between MRAM and WRAM.

    dmas, bytes   DMA instructions and bytes of the busiest tasklet
    wram          bytes of the buffer: of each tasklet, or of the DPU where `shared` is true
    mram          bytes of the DPU's box in MRAM
    sides         elements of that box along each dimension up to the contiguous one
    misaligned    bytes between two DMAs, where that is no multiple of 8; else 0
    """

    operand: Operand
    write: bool
    dmas: Column
    bytes: Column
    wram: Column
    mram: Column
    sides: tuple[Column, ...]
    shared: Column
    misaligned: Column


def copies_of(sketch: Sketch, shape: Shape, columns: Columns) -> list[Copy]:
    """Every operand's copy: inputs of the main block, of the epilogue, and the output."""
    ones = np.ones_like(shape.tasklets)
    place = columns.get("vector", ones * VECTOR_ROW)
    copies = [_read(sketch, shape, operand, place) for operand in sketch.program.inputs]
    if sketch.name == "reduce":
        return [*copies, *_partial_sums(sketch, shape)]
    others = [a for a in sketch.program.spatial if a != sketch.roles.row]
    extents = [ones] * len(sketch.program.axes)
    extents[sketch.roles.row] = shape.task[sketch.roles.row]
    turns = _product(ones, [shape.task[a] for a in others])
    if sketch.name == "elementwise":
        extents = shape.tile
        turns = _product(shape.steps, [ceil_div(shape.task[a], shape.tile[a]) for a in others])
    if sketch.epilogue is not None:
        for operand in sketch.epilogue.inputs:
            copies.append(_copy(shape, operand, False, extents, turns, ones * 0))
        sums = _copy(shape, sketch.program.output, False, extents, ones * 0, ones * 0)
        in_wram = (place == VECTOR_BLOCK) | (shape.block > REGISTER_ROWS)
        held = np.where(in_wram, sums.wram, 0)
        copies.append(replace(sums, wram=held, mram=ones * 0))
    copies.append(_copy(shape, sketch.output, True, extents, turns, ones * 0))
    return copies


def _partial_sums(sketch: Sketch, shape: Shape) -> list[Copy]:
    """One sum a tasklet, and their total, both shared; tasklet 0 writes the total to MRAM."""
    ones = np.ones_like(shape.tasklets)
    total = _copy(shape, sketch.output, True, shape.dpu, ones, ones)
    nothing = ones * 0
    sums = replace(
        total, wram=total.wram * shape.tasklets, dmas=nothing, bytes=nothing, mram=nothing
    )
    return [sums, total]


def _read(sketch: Sketch, shape: Shape, operand: Operand, place: Column) -> Copy:
    """An input: per tile, or per tasklet where it doesn't follow the tile, or resident."""
    row, tile = sketch.roles.row, sketch.roles.tile
    ones = np.ones_like(shape.tasklets)
    if sketch.name == "reduce":
        serial = [a for a in range(len(sketch.program.axes)) if a != tile]
        turns = _product(shape.steps, [shape.task[a] for a in serial])
        return _copy(shape, operand, False, shape.tile, turns, ones * 0)
    if not operand.uses(tile):
        if sketch.name == "elementwise" or operand.uses(row):
            return _copy(shape, operand, False, shape.task, ones, ones * 0)
        resident = place == VECTOR_RESIDENT
        extents = [np.where(resident, d, t) for d, t in zip(shape.reach, shape.task, strict=True)]
        return _copy(shape, operand, False, extents, ones, resident)
    serial = [a for a in range(len(sketch.program.axes)) if a not in (row, tile)]
    turns = _product(shape.steps, [shape.task[a] for a in serial])
    groups = ceil_div(np.minimum(shape.task[row], sketch.program.axes[row].extent), shape.block)
    if sketch.name == "elementwise":
        turns = _product(shape.steps, [ceil_div(shape.task[a], shape.tile[a]) for a in serial])
        return _copy(shape, operand, False, shape.tile, turns, ones * 0)
    if operand.uses(row):
        return _copy(shape, operand, False, shape.tile, turns * groups, ones * 0)
    resident = place == VECTOR_RESIDENT
    extents = [np.where(resident, d, t) for d, t in zip(shape.reach, shape.tile, strict=True)]
    turns = np.where(place == VECTOR_BLOCK, turns, turns * groups)
    return _copy(shape, operand, False, extents, turns, resident)


def _copy(
    shape: Shape,
    operand: Operand,
    write: bool,
    extents: list[Column],
    turns: Column,
    shared: Column,
) -> Copy:
    """`turns` copies of the box by each tasklet, or one of a shared box by all of them together."""
    shared = shared.astype(bool)
    item = operand.item_bytes
    *outer, inner = _box(operand, extents)
    *rows, pitch = _box(operand, shape.reach)
    count, sharers, size = shared_chunks(inner, item, shape.tasklets)
    length = np.where(shared, count * sharers * size, inner)
    length_bytes = round_up(length * item, DMA_ALIGN_BYTES)
    pitch_bytes = round_up(np.maximum(pitch, length) * item, DMA_ALIGN_BYTES)
    # rows that follow each other in MRAM and in WRAM are one DMA
    run, runs, whole = length_bytes, np.ones_like(turns), length_bytes == pitch_bytes
    for side, full in zip(reversed(outer), reversed(rows), strict=True):
        run = np.where(whole & ~shared, run * side, run)
        runs = np.where(whole & ~shared, runs, runs * side)
        whole = whole & (side == full)
    dmas = np.where(shared, runs * count, turns * runs * ceil_div(run, DMA_MAX_BYTES))
    moved = round_up(size * item, DMA_ALIGN_BYTES) * count
    return Copy(
        operand=operand,
        write=write,
        dmas=dmas,
        bytes=np.where(shared, runs * moved, turns * runs * run),
        wram=_product(length_bytes, outer),
        mram=_product(pitch_bytes, rows),
        sides=(*rows, pitch_bytes // item),
        shared=shared,
        misaligned=_misaligned(shape, operand, extents, [*rows, pitch]),
    )


def _misaligned(
    shape: Shape, operand: Operand, extents: list[Column], sides: list[Column]
) -> Column:
    """Bytes by which an axis steps between copies, or between tasklets, where that is no multiple
    of 8; else 0. Along the contiguous dimension, and along those before it as long as all behind
    are one element on a DPU (`sides`): there rows are not padded to 8 bytes."""
    result = np.zeros_like(shape.tasklets)
    alone = np.ones_like(result, bool)
    for row, side in zip(reversed(operand.index[: len(sides)]), reversed(sides), strict=True):
        for axis, coefficient in enumerate(row):
            steps = [(extents, shape.task)]
            if row is not operand.contiguous:  # there tasklets' shares are rounded up already
                steps.append((shape.task, shape.dpu))
            for part, whole in steps if coefficient else ():
                step = part[axis] * abs(coefficient) * operand.item_bytes
                off = alone & (part[axis] < whole[axis]) & (step % DMA_ALIGN_BYTES != 0)
                result = np.where(off, step, result)
        alone &= side == 1
    return result


def _box(operand: Operand, extents: list[Column]) -> list[Column]:
    """Elements along each dimension up to the contiguous one; may reach beyond the tensor."""
    sides = []
    kept = operand.index.index(operand.contiguous) + 1
    for row, extra in zip(operand.index[:kept], operand.extra[:kept], strict=True):
        side = np.full_like(extents[0], 1 + extra)
        for coefficient, extent in zip(row, extents, strict=True):
            if coefficient:
                side = side + abs(coefficient) * (extent - 1)
        sides.append(side)
    return sides


def _product(start: Column, factors: list[Column]) -> Column:
    for factor in factors:
        start = start * factor
    return start
