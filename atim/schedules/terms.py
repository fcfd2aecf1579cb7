"""Closed forms of a candidate: what it moves, computes and occupies, without touching TVM.

`verify` compares them with the hardware's limits and the tuner's features are built on them. Costs
of arithmetic are rounded means of published single-tasklet measurements (350 MHz DPU, values 0..49
for integer multiply); they only need to rank candidates, the simulator decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

import numpy as np
import numpy.typing as npt

from atim.functions import KERNEL
from atim.schedules.memory import Copy, copies_of
from atim.schedules.products import ProductCosts, product_costs
from atim.schedules.program import Operand
from atim.schedules.shapes import REGISTER_ROWS, Shape, shape_of
from atim.schedules.sketch import Column, Sketch
from atim.target import DMA_ALIGN_BYTES, WRAM_RESERVE_BYTES

__all__ = ["TERMS", "Term", "terms_of"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Term:
    """Name, unit and meaning of a closed form."""

    name: str
    unit: str
    meaning: str


TERMS = (
    Term("dpus", "DPUs", "used, product of the grid"),
    Term("pieces", "pieces", "of the reduction over DPUs, 1 without"),
    Term("tasklets", "tasklets", "used on each DPU"),
    Term("rows_per_dpu", "elements", "of the row axis on one DPU"),
    Term("rows_per_tasklet", "elements", "of the row axis on one tasklet"),
    Term("row_block", "rows", "that share one loaded vector element"),
    Term("tile", "elements", "of the tile axis in one WRAM tile"),
    Term("tile_bytes", "B", "of the tile axis in the widest input"),
    Term("steps", "tiles", "in one row of a DPU (element-wise: in one tasklet's share)"),
    Term("unroll", "copies", "of the innermost body"),
    Term("host_threads", "threads", "of the host finish"),
    Term("work", "body executions", "of the busiest tasklet"),
    Term("balance", "ratio", "busiest tasklet's work / mean over all tasklets of all DPUs, >= 1"),
    Term("instructions", "slots", "of the busiest tasklet, estimate"),
    Term("turns", "tiles", "that the busiest tasklet works through"),
    Term("body_slots", "slots", "per body execution, estimate"),
    Term("dma_count", "DMAs", "of the busiest tasklet"),
    Term("dma_bytes", "B", "of the busiest tasklet"),
    Term("read_bytes", "B", "of these, MRAM to WRAM"),
    Term("write_bytes", "B", "of these, WRAM to MRAM"),
    Term("dma_mean_bytes", "B", "per DMA"),
    Term("wram_bytes", "B", "all buffers, stacks and the runtime's own"),
    Term("buffer_bytes", "B", "WRAM buffers of one tasklet"),
    Term("shared_bytes", "B", "WRAM buffers of the DPU"),
    Term("mram_bytes", "B", "all operands' tiles on one DPU"),
    Term("iram_words", "instructions", "of the kernel, estimate"),
    Term("h2d_bytes", "B", "to one DPU, operands that aren't resident"),
    Term("h2d_same_bytes", "B", "of these, the same on every DPU"),
    Term("resident_bytes", "B", "on one DPU, placed before the run"),
    Term("d2h_bytes", "B", "from one DPU"),
    Term("h2d_total_bytes", "B", "to all DPUs"),
    Term("d2h_total_bytes", "B", "from all DPUs"),
    Term("finish_bytes", "B", "of partial results that the host adds, 0 without"),
    Term("issue_cycles", "cycles", "issue slots of a DPU, at least 11 an instruction of a tasklet"),
    Term("dma_cycles", "cycles", "that the DMA engine is busy"),
    Term("kernel_cycles", "cycles", "larger of both, a turn of the other; or a tasklet alone"),
    Term("misaligned", "bytes", "between two DMAs, where that is no multiple of 8; else 0"),
)

# Issue slots of one operation by kind of type: int up to 32 bit, int64, float32, float64.
# Source: cycles / 11 of single-tasklet loops on a DPU (public measurements, SDK 2023.2).
_KINDS = ("i32", "i64", "f32", "f64")
_SLOTS = {
    "add": (1, 2, 62, 91),
    "sub": (1, 2, 47, 61),
    "mul": (12, 129, 176, 654),
    "scale": (3, 9, 176, 654),
    "div": (40, 50, 1028, 2139),
    "floordiv": (45, 60, 1028, 2139),
    "floormod": (45, 60, 1028, 2139),
    "max": (2, 4, 13, 23),
    "min": (2, 4, 13, 23),
    "cast": (1, 2, 30, 40),
    "select": (2, 3, 3, 4),
}
_OTHER = (3, 5, 200, 300)
# The same with hypothetical units: an instruction each
_UNIT_SLOTS = _SLOTS | {
    "add": (1, 2, 1, 91),
    "sub": (1, 2, 1, 61),
    "mul": (1, 6, 1, 654),
    "scale": (1, 6, 1, 654),
    "div": (40, 50, 1, 2139),
    "cast": (1, 2, 1, 40),
}

# Code size, from kernels built: what is copied with each unrolled body (a call with its moves, or
# the instructions themselves), and everything around it, library routines included
_CALL_WORDS, _CALL_WORDS_64 = 4, 7
_CALLS_FROM_SLOTS, _LIBRARY_SLOTS = 9, 40
_INLINE = ("min", "max")  # never a call
_BASE_WORDS, _LIBRARY_WORDS = 200, 450
_COPY_WORDS = 20
_FUNCTION_WORDS = 150  # exp and its like

# Issue slots of a sum of 8 or 16 bits, from kernels built: 8 bytes at a time, one at a time
_NARROW_SUM = {1: (1.6, 4.3), 2: (2.1, 3.5)}

# Issue slots around the body
_SLOTS_PER_DMA = 4
_SLOTS_PER_LOOP = 3.5  # and nothing where a tile is unrolled whole
_SLOTS_PER_STEP = 6
_SLOTS_PER_ROLLED_STEP = 6  # further, to set up its loop
_SLOTS_PER_GROUP = 10
_SLOTS_PROLOGUE = 100
_SLOTS_BARRIER = 15
_SLOTS_PER_SUM = 6


def terms_of(sketch: Sketch, matrix: Column) -> dict[str, Floats]:
    """Every term of every candidate, arrays [n] in the order of `TERMS`."""
    columns = sketch.columns(matrix)
    shape = shape_of(sketch, columns)
    copies = copies_of(sketch, shape, columns)
    found: dict[str, Column | Floats] = {}
    found |= _layout(sketch, shape)
    found |= _memory(sketch, shape, copies)
    costs = product_costs(sketch, shape, columns)
    found |= _compute(sketch, shape, copies, found["work"], costs)
    found |= _transfers(sketch, shape, copies, found["dpus"])
    found |= _cycles(sketch, shape, found)
    return {term.name: np.asarray(found[term.name], dtype=np.float64) for term in TERMS}


def _layout(sketch: Sketch, shape: Shape) -> dict[str, Column | Floats]:
    program, row, tile = sketch.program, sketch.roles.row, sketch.roles.tile
    dpus = _product(shape.grid)
    work = _product(
        [np.minimum(n, axis.extent) for n, axis in zip(shape.task, program.axes, strict=True)]
    )
    total = prod(axis.extent for axis in program.axes)
    piece = sketch.roles.piece
    widest = max((o.item_bytes for o in program.inputs if o.uses(tile)), default=0)
    return {
        "dpus": dpus,
        "pieces": shape.grid[piece] if piece is not None else np.ones_like(dpus),
        "tasklets": shape.threads,
        "rows_per_dpu": shape.dpu[row],
        "rows_per_tasklet": shape.task[row],
        "row_block": shape.block,
        "tile": shape.tile[tile],
        "tile_bytes": shape.tile[tile] * widest,
        "steps": shape.steps,
        "unroll": shape.unroll,
        "host_threads": shape.host,
        "work": work,
        "balance": work * (dpus * shape.threads) / total,
    }


def _memory(sketch: Sketch, shape: Shape, copies: list[Copy]) -> dict[str, Column | Floats]:
    zero = np.zeros_like(shape.tasklets)
    buffers = sum((np.where(c.shared, 0, c.wram) for c in copies), zero)
    shared = sum((np.where(c.shared, c.wram, 0) for c in copies), zero)
    reads = sum((c.bytes for c in copies if not c.write), zero)
    writes = sum((c.bytes for c in copies if c.write), zero)
    dmas = sum((c.dmas for c in copies), zero)
    stacks = shape.threads * sketch.target.stack_bytes
    return {
        "dma_count": dmas,
        "dma_bytes": reads + writes,
        "read_bytes": reads,
        "write_bytes": writes,
        "dma_mean_bytes": (reads + writes) / np.maximum(dmas, 1),
        "wram_bytes": shape.threads * buffers + shared + stacks + WRAM_RESERVE_BYTES,
        "buffer_bytes": buffers,
        "shared_bytes": shared,
        "mram_bytes": sum((c.mram for c in copies), zero),
        "misaligned": reduce(np.maximum, (c.misaligned for c in copies), zero),
    }


def _compute(
    sketch: Sketch,
    shape: Shape,
    copies: list[Copy],
    work: Column | Floats,
    costs: ProductCosts | None,
) -> dict[str, Column | Floats]:
    """Instructions of the busiest tasklet and words of code."""
    program, row = sketch.program, sketch.roles.row
    units = bool(sketch.target.units)
    slots, code_words = partial(_slots, units), partial(_words, units)
    arithmetic = _arithmetic_slots(sketch, shape, slots)
    each = [_access_slots(o) for o in program.inputs if o.uses(row)]
    once = [_access_slots(o) for o in program.inputs if not o.uses(row)]
    wide = shape.block > REGISTER_ROWS
    lanes = np.where(wide, shape.unroll, shape.unroll * shape.block)
    body = arithmetic + sum(each) + sum(once) / shape.block
    if costs is not None:
        body = np.where(costs.known, costs.body + _beside_products(sketch, slots), body)
    rolled = wide | (shape.unroll < shape.tile[sketch.roles.tile])
    body = body + rolled * _SLOTS_PER_LOOP / lanes
    sums = _access_slots(program.output)
    body = body + (np.where(wide, 2 * sums, 0) if program.reduction else sums)
    dmas = sum((c.dmas for c in copies), np.zeros_like(lanes))
    groups = shape.task[row] // shape.block
    steps = work / np.maximum(shape.tile[sketch.roles.tile] * shape.block, 1)
    around = _SLOTS_PROLOGUE + _SLOTS_PER_DMA * dmas
    around = around + (_SLOTS_PER_STEP + _SLOTS_PER_ROLLED_STEP * rolled) * steps
    around = around + _SLOTS_PER_GROUP * groups * bool(program.reduction)
    around = around + _results_slots(sketch, shape)
    if costs is not None:
        around = around + costs.tile * steps * np.minimum(shape.block, REGISTER_ROWS)
    code = sum(n * code_words(op, dtype) for op, dtype, n in program.operations)
    words = code + sum(each) + sums + sum(once) / shape.block
    if costs is not None:
        again = costs.redo * shape.block / lanes
        own = costs.code + again + _beside_products(sketch, code_words)
        words = np.where(costs.known, own, words)
    after = sketch.epilogue.operations if sketch.epilogue else ()
    every = (*program.operations, *after)
    library = any(slots(op, dtype) > _LIBRARY_SLOTS for op, dtype, _ in every)
    functions = len({op for op, _, _ in every if op in KERNEL})
    base = _BASE_WORDS + _LIBRARY_WORDS * library + _COPY_WORDS * len(copies)
    base += _FUNCTION_WORDS * functions
    results = np.minimum(shape.block, REGISTER_ROWS) * sum(n * code_words(*op) for *op, n in after)
    return {
        "turns": steps,
        "body_slots": body,
        "instructions": body * work + around,
        "iram_words": base + results + lanes * words,
    }


def _arithmetic_slots(
    sketch: Sketch, shape: Shape, slots: Callable[[str, str], int]
) -> Column | Floats:
    """Of the body's operations; sums of two narrow tensors go by words of 8 bytes where the body is
    whole words."""
    program = sketch.program
    together = np.ones_like(shape.block) * sum(n * slots(*op) for *op, n in program.operations)
    (operation, *others) = program.operations or (("", "", 0),)
    size = program.output.item_bytes
    if others or operation[0] not in ("add", "sub") or operation[2] > 1 or program.reduction:
        return together
    if size not in _NARROW_SUM or {o.item_bytes for o in program.inputs} != {size}:
        return together
    in_words, apart = _NARROW_SUM[size]
    return np.where(shape.unroll * size % DMA_ALIGN_BYTES == 0, in_words, apart)


def _beside_products(sketch: Sketch, cost: Callable[[str, str], int]) -> int:
    """Of what the body does besides multiplying, adding to the sum and widening bytes."""
    narrow = all(o.item_bytes < 4 for o in sketch.program.inputs)
    total = 0
    for op, dtype, n in sketch.program.operations:
        own = n if op == "cast" and narrow else op in ("mul", "add")
        total += (n - own) * cost(op, dtype)
    return total


def _results_slots(sketch: Sketch, shape: Shape) -> Column | Floats:
    """What a result costs after its sum: the epilogue, or the sums of other tasklets."""
    results = _product([shape.task[a] for a in sketch.program.spatial])
    if sketch.name == "reduce":
        wait = _SLOTS_BARRIER * shape.tasklets * (shape.tasklets > 1)
        return wait + _SLOTS_PER_SUM * shape.tasklets * results
    if sketch.epilogue is None:
        return results * 0
    units = bool(sketch.target.units)
    each = sum(n * _slots(units, op, dtype) for op, dtype, n in sketch.epilogue.operations)
    return np.asarray(results * (each + _SLOTS_PER_LOOP), np.float64)


def _transfers(
    sketch: Sketch, shape: Shape, copies: list[Copy], dpus: Column | Floats
) -> dict[str, Column | Floats]:
    zero = np.zeros_like(shape.tasklets)
    reads = [c for c in copies if not c.write]
    sent = [c for c in reads if c.operand.name not in sketch.resident]
    h2d = sum((c.mram for c in sent), zero)
    same = sum((np.where(_on_all_dpus(shape, c.operand), c.mram, 0) for c in sent), zero)
    d2h = sum((c.mram for c in copies if c.write), zero)
    finish = zero
    if sketch.roles.piece is not None:
        output = sketch.program.output
        finish = shape.grid[sketch.roles.piece] * sketch.program.results * output.item_bytes
    return {
        "h2d_bytes": h2d,
        "h2d_same_bytes": np.where(dpus > 1, same, 0),
        "resident_bytes": sum((c.mram for c in reads), zero) - h2d,
        "d2h_bytes": d2h,
        "h2d_total_bytes": h2d * dpus,
        "d2h_total_bytes": d2h * dpus,
        "finish_bytes": finish,
    }


def _on_all_dpus(shape: Shape, operand: Operand) -> npt.NDArray[np.bool_]:
    """No axis of the operand is cut over DPUs."""
    same = np.ones_like(shape.tasklets, dtype=bool)
    for axis, count in enumerate(shape.grid):
        if operand.uses(axis):
            same &= count == 1
    return same


def _cycles(
    sketch: Sketch, shape: Shape, found: dict[str, Column | Floats]
) -> dict[str, Column | Floats]:
    """What bounds the kernel: issue slots, the DMA engine, or one tasklet alone. All tasklets ask
    for their first tile at once, and the last one works on its own without transfers to hide: a
    turn of what doesn't bound is added."""
    chip = sketch.target.chip
    distance = chip.issue_distance_cycles
    count, size = found["dma_count"], found["dma_bytes"]
    alone = distance * found["instructions"]
    issue = np.maximum(shape.threads, distance) * found["instructions"]
    stretch = chip.refresh_stretch
    engine = (stretch * shape.threads) * (
        chip.dma_occupancy_cycles * count + chip.dma_occupancy_cycles_per_byte * size
    )
    waiting = alone + stretch * (
        chip.dma_read_latency_cycles * count + chip.dma_cycles_per_byte * size
    )
    beside = np.minimum(alone, engine) / np.maximum(found["turns"], 1)
    return {
        "issue_cycles": issue,
        "dma_cycles": engine,
        "kernel_cycles": np.maximum(np.maximum(issue, engine) + beside, waiting),
    }


def _kind(dtype: str) -> int:
    kind = np.dtype(dtype)
    wide = kind.itemsize > 4
    return (2 if kind.kind == "f" else 0) + wide


def _slots(units: bool, op: str, dtype: str) -> int:
    table = _UNIT_SLOTS if units else _SLOTS
    return KERNEL.get(op) or table.get(op, _OTHER)[_kind(dtype)]


def _words(units: bool, op: str, dtype: str) -> int:
    """Code of one operation in an unrolled body."""
    slots = _slots(units, op, dtype)
    call = _CALL_WORDS_64 if np.dtype(dtype).itemsize > 4 else _CALL_WORDS
    return call if slots > _CALLS_FROM_SLOTS and op not in _INLINE else slots


def _access_slots(operand: Operand) -> float:
    """Loads (or stores) of an element: 8 bytes move in one slot."""
    return max(operand.item_bytes / 8, 0.125)


def _product(factors: list[Column]) -> Column:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result
