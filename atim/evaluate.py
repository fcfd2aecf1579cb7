"""NumPy evaluation of a `te` program over a box of its iteration space.

In: a PrimFunc as `te.create_prim_func` makes it (blocks in sequence, each a store of an expression
or of a reduction) and NumPy arrays. Out: the values of one output over ranges of its axes; when a
reduction axis is given a part of its extent, the partial result. It is the independent reference
a DPU's tile is compared with, so it shares no code with the compiler.

Integers wrap as two's complement C integers of their type; float sums are accumulated in float64
and rounded once, so a caller compares floats with a tolerance that grows with the reduction.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi
from tvm import ir, s_tir, tirx

from atim.errors import UnsupportedError
from atim.evaluate_expr import Array, Range, Scope, Window
from atim.functions import COMBINERS
from atim.margins import margins_of

# Elements of the largest temporary of one chunk.
CHUNK_ELEMENTS = 1 << 22
# Integers below this are exact in float64, whose matrix products are the fast ones.
EXACT_FLOAT64 = float(1 << 53)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a block: te's name, its extent, and whether it is reduced."""

    name: str
    extent: int
    reduction: bool


@dataclass(frozen=True, slots=True)
class Block:
    """`store[spatial axes] = term`, or its reduction by `combine` from `init`."""

    axes: tuple[Axis, ...]
    variables: tuple[Any, ...]
    store: Any
    positions: tuple[int | None, ...]  # the axis of each store index; None is a constant 0
    term: Any
    combine: np.ufunc | None
    init: Any

    def output_shape(self, ranges: Sequence[Range]) -> tuple[int, ...]:
        sizes = [stop - start for start, stop in ranges]
        return tuple(1 if p is None else sizes[p] for p in self.positions)


def axes(func: tirx.PrimFunc, output: str | None = None) -> tuple[Axis, ...]:
    """Axes of the block that writes `output` (default: the last one written), in te's order.

    A box for `evaluate` has one (start, stop) for each of them.
    """
    blocks = _blocks(func)
    return blocks[_writer(func, blocks, output)].axes


def written(func: tirx.PrimFunc) -> tuple[str, ...]:
    """Names of the tensors that the program writes, in order: intermediates, then the output."""
    return tuple(block.store.name for block in _blocks(func))


def evaluate(
    func: tirx.PrimFunc,
    arrays: Mapping[str, Array],
    box: Sequence[Range] | None = None,
    output: str | None = None,
) -> Array:
    """Values of `output` (default: the last tensor written) over `box`.

    arrays: one array, or scalar, for each input parameter by name; shapes and dtypes as declared.
    box: (start, stop) for each of `axes(func, output)`; None is the whole space. A part of a
    reduction axis gives the partial reduction, which includes the reduction's initial value.
    Earlier blocks are evaluated where the box needs them, and always over their whole reductions.
    Returns an array of the shape of the box's spatial ranges. Raises UnsupportedError for programs
    that are not blocks of one store each.
    """
    blocks = _blocks(func)
    last = _writer(func, blocks, output)
    ranges = _checked_box(blocks[last], box)
    with np.errstate(all="ignore"):
        wanted = _needed(blocks[: last + 1], ranges)
        windows = _inputs(func, arrays)
        for block, needed in zip(blocks[: last + 1], wanted, strict=True):
            if needed is not None:
                windows[block.store] = _evaluate_block(block, needed, windows)
    return windows[blocks[last].store].data


def _inputs(func: tirx.PrimFunc, arrays: Mapping[str, Array]) -> dict[Any, Window]:
    """The arrays as given; an input that a schedule declares larger begins after its margin."""
    margins = margins_of(func)
    windows = {}
    for parameter in func.params:
        name = str(parameter.name)
        if name in arrays:
            origin, _ = margins.get(name, ((0,) * np.ndim(arrays[name]), ()))
            windows[parameter] = Window(np.asarray(arrays[name]), origin)
    return windows


# --- reading the program ---------------------------------------------------------------------


@functools.lru_cache(maxsize=16)
def _blocks(func: tirx.PrimFunc) -> tuple[Block, ...]:
    found: list[Block] = []

    def visit(realize: s_tir.SBlockRealize) -> None:
        # The root block holds the others: it has no axes and stores nothing itself.
        if len(realize.block.iter_vars) or isinstance(realize.block.body, tirx.BufferStore):
            found.append(_read_block(realize.block))

    tvm_ffi.structural_walk(func.body, (s_tir.SBlockRealize, visit), order="pre")
    if not found:
        raise UnsupportedError("evaluate: the function has no block that stores a value")
    return tuple(found)


def _read_block(block: s_tir.SBlock) -> Block:
    store = block.body
    if not isinstance(store, tirx.BufferStore):
        raise UnsupportedError(
            f"evaluate: block {block.name_hint} is a {type(store).__name__}, wanted one store"
        )
    variables = tuple(iv.var for iv in block.iter_vars)
    block_axes = tuple(
        Axis(iv.var.name.removeprefix("v_"), int(iv.dom.extent), iv.iter_type == iv.CommReduce)
        for iv in block.iter_vars
    )
    positions: list[int | None] = []
    for index in store.indices:
        if isinstance(index, tirx.IntImm) and int(index.value) == 0:
            positions.append(None)
            continue
        match = [n for n, v in enumerate(variables) if v.same_as(index)]
        if not match:
            raise UnsupportedError(f"evaluate: {block.name_hint} stores at {index}, wanted an axis")
        positions.append(match[0])
    term, combine, init = store.value, None, None
    if block.init is not None:
        init = block.init.value
        term, combine = _reduction(block.name_hint, store)
    return Block(block_axes, variables, store.buffer, tuple(positions), term, combine, init)


def _reduction(name: str, store: tirx.BufferStore) -> tuple[Any, np.ufunc]:
    value = store.value
    combine = COMBINERS.get(type(value).__name__)
    if combine is not None:
        for own, term in ((value.a, value.b), (value.b, value.a)):
            if isinstance(own, ir.TensorLoad) and own.source.same_as(store.buffer):
                return term, combine
    known = ", ".join(COMBINERS)
    raise UnsupportedError(f"evaluate: {name} is reduced by {value}, known are {known}")


def _writer(func: tirx.PrimFunc, blocks: Sequence[Block], output: str | None) -> int:
    """The block that writes `output`: a parameter, where an intermediate has the same name."""
    if output is None:
        return len(blocks) - 1
    found = [n for n, block in enumerate(blocks) if block.store.name == output]
    if not found:
        written = ", ".join(block.store.name for block in blocks)
        raise UnsupportedError(f"evaluate: nothing writes {output}; written are {written}")
    given = [n for n in found if any(blocks[n].store.same_as(p) for p in func.params)]
    return (given or found)[0]


def _checked_box(block: Block, box: Sequence[Range] | None) -> tuple[Range, ...]:
    if box is None:
        return tuple((0, axis.extent) for axis in block.axes)
    if len(box) != len(block.axes):
        raise ValueError(f"evaluate: box has {len(box)} ranges, {len(block.axes)} axes")
    for axis, (start, stop) in zip(block.axes, box, strict=True):
        if not 0 <= start <= stop <= axis.extent:
            raise ValueError(f"evaluate: range {start}..{stop} of {axis.name}, 0..{axis.extent}")
    return tuple((int(start), int(stop)) for start, stop in box)


# --- which part of each intermediate the box needs -------------------------------------------


def _needed(blocks: Sequence[Block], last: tuple[Range, ...]) -> list[tuple[Range, ...] | None]:
    ranges: list[tuple[Range, ...] | None] = [None] * len(blocks)
    ranges[-1] = last
    regions: dict[Any, list[Range]] = {}
    for n in reversed(range(len(blocks))):
        block = blocks[n]
        if ranges[n] is None and block.store in regions:
            region = regions[block.store]
            wanted = [(0, axis.extent) for axis in block.axes]
            for dim, position in enumerate(block.positions):
                if position is not None:
                    wanted[position] = region[dim]
            ranges[n] = tuple(wanted)
        current = ranges[n]
        if current is not None:
            bounds = {v: (lo, hi - 1) for v, (lo, hi) in zip(block.variables, current, strict=True)}
            _add_reads(block.term, bounds, regions)
    return ranges


def _add_reads(term: Any, bounds: dict[Any, Range], regions: dict[Any, list[Range]]) -> None:
    def visit(load: ir.TensorLoad) -> None:
        region: list[Range] = []
        for index, extent in zip(load.indices, load.source.shape, strict=True):
            low, high = _bounds(index, bounds)
            region.append((max(0, low), min(int(extent), high + 1)))
        known = regions.get(load.source)
        if known is not None:
            pairs = zip(region, known, strict=True)
            region = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
        regions[load.source] = region

    tvm_ffi.structural_walk(term, (ir.TensorLoad, visit), order="pre")


BOUND_RULES: dict[str, Callable[[int, int], int]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "Min": min,
    "Max": max,
}


def _bounds(index: Any, bounds: Mapping[Any, Range]) -> Range:
    """Smallest and largest value of an index expression; anything unknown is unbounded."""
    if isinstance(index, tirx.IntImm):
        return int(index.value), int(index.value)
    if isinstance(index, tirx.Var):
        return bounds.get(index, (-(1 << 62), 1 << 62))
    name = type(index).__name__
    if name == "Sub" or name in BOUND_RULES:
        (a, b), (c, d) = _bounds(index.a, bounds), _bounds(index.b, bounds)
        if name == "FloorDiv" and c <= 0:
            return -(1 << 62), 1 << 62
        if name == "Sub":
            return a - d, b - c
        function = BOUND_RULES[name]
        corners = [function(a, c), function(b, d)]
        if name in ("Mul", "FloorDiv"):
            corners += [function(a, d), function(b, c)]
        return min(corners), max(corners)
    return -(1 << 62), 1 << 62


# --- evaluating a block ----------------------------------------------------------------------


def _evaluate_block(
    block: Block, ranges: tuple[Range, ...], windows: Mapping[Any, Window]
) -> Window:
    dtype = np.dtype(str(block.store.dtype))
    rank = len(block.axes)
    spatial = [n for n in range(rank) if not block.axes[n].reduction]
    reduced = tuple(n for n in range(rank) if block.axes[n].reduction)
    # Float sums are kept in float64 until the end; every other reduction in its own type.
    wide = block.combine is np.add and np.issubdtype(dtype, np.floating)
    full = np.zeros([ranges[n][1] - ranges[n][0] for n in spatial], np.float64 if wide else dtype)
    if block.combine is not None:
        init = Scope(block.variables, ranges, windows).value(block.init)
        init = init.reshape((1,) * (rank - init.ndim) + init.shape)
        full[...] = init[tuple(0 if n in reduced else slice(None) for n in range(rank))]
    factors = _factors(block.term) if block.combine is np.add else [block.term]
    for chunk in _chunks(block, factors, ranges):
        scope = Scope(block.variables, chunk, windows)
        offsets = [(chunk[n][0] - ranges[n][0], chunk[n][1] - ranges[n][0]) for n in spatial]
        cut: list[Any] = [slice(*pair) for pair in offsets]
        part = full[(*cut, ...)]
        if block.combine is None:
            part[...] = np.broadcast_to(scope.value(block.term), _shape(chunk))
        elif len(factors) > 1:
            part += _sum_of_products([scope.value(f) for f in factors], chunk, reduced, part.dtype)
        else:
            values = np.broadcast_to(scope.value(block.term), _shape(chunk))
            # NumPy would widen sums of small integers; extrema need no type.
            dtype_option = part.dtype if block.combine in (np.add, np.multiply) else None
            reduced_values = block.combine.reduce(values, axis=reduced, dtype=dtype_option)
            block.combine(part, reduced_values, out=part)
    # `full` is in axis order; the store may permute the axes or add constant dimensions.
    order = [spatial.index(p) for p in block.positions if p is not None]
    data = full.astype(dtype).transpose(order).reshape(block.output_shape(ranges))
    return Window(data, tuple(0 if p is None else ranges[p][0] for p in block.positions))


def _shape(ranges: Sequence[Range]) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in ranges)


def _factors(term: Any) -> list[Any]:
    if isinstance(term, tirx.Mul):
        return _factors(term.a) + _factors(term.b)
    return [term]


def _sum_of_products(
    factors: list[Array], chunk: Sequence[Range], reduced: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """Sum over `reduced` of the product of `factors`, each of shape 1 or full along each axis."""
    rank = len(chunk)
    shape = _shape(chunk)
    exact = 1.0
    operands: list[Any] = []
    covered: set[int] = set()
    integer = np.issubdtype(dtype, np.integer)
    for factor in factors:
        aligned = factor.reshape((1,) * (rank - factor.ndim) + factor.shape)
        kept = [n for n in range(rank) if aligned.shape[n] != 1]
        covered.update(kept)
        exact *= float(np.max(np.abs(aligned.astype(np.float64)), initial=1.0)) if integer else 0.0
        operands += [aligned.reshape([shape[n] for n in kept]), kept]
    # An axis that no factor depends on multiplies the sum by its extent.
    repeats = math.prod(shape[n] for n in reduced if n not in covered)
    exact *= math.prod(shape[n] for n in reduced)
    working = np.dtype(np.float64) if exact < EXACT_FLOAT64 else dtype
    operands[::2] = [factor.astype(working) for factor in operands[::2]]
    kept_out = [n for n in range(rank) if n not in reduced]
    present = [n for n in kept_out if n in covered]
    total = np.einsum(*operands, present, optimize=len(factors) > 2 or exact < EXACT_FLOAT64)
    total = total.reshape([shape[n] if n in covered else 1 for n in kept_out])
    total = np.broadcast_to(total * working.type(repeats), [shape[n] for n in kept_out])
    if integer and working != dtype:
        return np.asarray(total.astype(np.int64).astype(dtype))
    return np.asarray(total)


def _chunks(
    block: Block, factors: Sequence[Any], ranges: tuple[Range, ...]
) -> Iterator[tuple[Range, ...]]:
    """Parts of the box whose largest temporary has at most CHUNK_ELEMENTS elements."""
    uses = [_used_axes(block, f) for f in factors] if len(factors) > 1 else []
    uses = uses or [list(range(len(ranges)))]
    uses.append([n for n, axis in enumerate(block.axes) if not axis.reduction])
    shape = _shape(ranges)
    largest = max(uses, key=lambda used: math.prod(shape[n] for n in used))
    if math.prod(shape[n] for n in largest) <= CHUNK_ELEMENTS:
        if 0 not in shape:
            yield ranges
        return
    cut = max(largest, key=lambda n: shape[n])
    start, stop = ranges[cut]
    middle = (start + stop) // 2
    for half in ((start, middle), (middle, stop)):
        yield from _chunks(block, factors, (*ranges[:cut], half, *ranges[cut + 1 :]))


def _used_axes(block: Block, expression: Any) -> list[int]:
    used: set[int] = set()

    def visit(variable: tirx.Var) -> None:
        used.update(n for n, v in enumerate(block.variables) if v.same_as(variable))

    tvm_ffi.structural_walk(expression, (tirx.Var, visit), order="pre")
    return sorted(used)
