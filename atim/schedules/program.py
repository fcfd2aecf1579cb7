"""What the rules need to know of a tensor program: its axes, its operands and its arithmetic.

`analyse` reads a PrimFunc made by `te.create_prim_func` (or the same in TVMScript) and gives a
`Program` of plain numbers, so that everything after it (shapes, limits, features) is arithmetic
without TVM. Producers that are element-wise are inlined first; what can't be placed is refused
with the block's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from operator import add
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import sym, tirx
from tvm.s_tir import Schedule

from atim.errors import UnsupportedError
from atim.functions import on_dpus, on_host
from atim.margins import BACKWARDS_MARGIN, Grown, with_margins
from atim.schedules.loads import calls_of, loads_of

__all__ = [
    "Axis",
    "Epilogue",
    "Operand",
    "Program",
    "analyse",
    "inlined",
    "is_reduction",
    "item_bytes",
]

# TVM's nodes have no Python types worth naming
Node = Any
# a function's name and type -> it can be computed
Known = Callable[[str, str], bool]

# what a kernel can hold; 16-bit floats have no routine on a DPU that rounds as they must
_TYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float32", "float64"),
)

# IterVar kinds of TVM
_SPATIAL, _REDUCE = 0, 2


@dataclass(frozen=True, slots=True)
class Axis:
    """One iterator of the main block."""

    name: str
    extent: int
    reduce: bool


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as the main block touches it: for each dimension, coefficients of the axes, the
    least constant, and how much larger constants get (0 unless it is read at several places)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    index: tuple[tuple[int, ...], ...]
    offset: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def item_bytes(self) -> int:
        return item_bytes(self.dtype)

    def uses(self, axis: int) -> bool:
        """True when some dimension is indexed by this axis."""
        return any(row[axis] for row in self.index)

    @property
    def contiguous(self) -> tuple[int, ...]:
        """Coefficients of the axes in the contiguous dimension: the last one that is not 1 long."""
        for row, size in zip(reversed(self.index), reversed(self.shape), strict=True):
            if size > 1:
                return row
        return self.index[-1]

    def innermost(self, axis: int) -> int:
        """Coefficient of the axis in the contiguous dimension, 0 when absent."""
        return self.contiguous[axis]


@dataclass(frozen=True, slots=True)
class Epilogue:
    """Element-wise work on the result of a reduction, one block; operands indexed by the main axes.

    `fused` says if a kernel can do it as soon as a result is complete: same shape, same index.
    Otherwise it is a host nest.
    """

    block: str
    inputs: tuple[Operand, ...]
    output: Operand
    operations: tuple[tuple[str, str, int], ...]
    fused: bool


@dataclass(frozen=True, slots=True)
class Program:
    """A PrimFunc with one main block; `func` has the element-wise producers inlined already, and
    some inputs may be declared larger than they are (margins.py). `original` is as it was given.
    `splittable`: partial results of the reduction can be put together.

    `operations` counts (operation, dtype) of the main block's value, its accumulation included.
    """

    func: tirx.PrimFunc
    block: str
    axes: tuple[Axis, ...]
    inputs: tuple[Operand, ...]
    output: Operand
    operations: tuple[tuple[str, str, int], ...]
    epilogue: Epilogue | None
    original: tirx.PrimFunc
    splittable: bool

    @property
    def spatial(self) -> tuple[int, ...]:
        return tuple(i for i, axis in enumerate(self.axes) if not axis.reduce)

    @property
    def reduction(self) -> tuple[int, ...]:
        return tuple(i for i, axis in enumerate(self.axes) if axis.reduce)

    @property
    def results(self) -> int:
        """Elements of the main block's output."""
        return prod(self.output.shape)


def item_bytes(dtype: str) -> int:
    """Bytes of one element in MRAM and WRAM."""
    return int(np.dtype(dtype).itemsize)


def analyse(func: tirx.PrimFunc) -> Program:
    """Inline what can be inlined and read the main block and its epilogue.

    Raises `UnsupportedError` when there is no single reduction, when an index is not affine with
    static shape, or when the output is not indexed by the spatial axes in order.
    """
    schedule = Schedule(func, debug_mask="none", error_render_level="none")
    main, after = inlined(schedule)
    block = schedule.get(main)
    name = str(block.name_hint)
    axes = tuple(_axis(iv, name) for iv in block.iter_vars)
    output, inputs, operations = _body(block, [iv.var for iv in block.iter_vars], on_dpus)
    spatial = [i for i, axis in enumerate(axes) if not axis.reduce]
    if not _identity(output, spatial):
        raise UnsupportedError(f"block {name}: output not indexed by its axes in order")
    if not inputs and len(spatial) < len(axes):
        raise UnsupportedError(f"block {name}: a reduction that reads no tensor")
    epilogue = None if after is None else _epilogue(schedule.get(after), output, axes)
    grown, inputs = _grown(schedule, block, axes, inputs, epilogue)
    return Program(
        func=grown,
        block=name,
        axes=axes,
        inputs=inputs,
        output=output,
        operations=operations,
        epilogue=epilogue,
        original=func,
        splittable=_splittable(block),
    )


def _splittable(block: Node) -> bool:
    """A sum, product, maximum or minimum that starts from its identity: what `rfactor` takes."""
    if block.init is None or not isinstance(block.body, tirx.BufferStore):
        return False
    value, start, dtype = block.body.value, block.init.value, str(block.body.buffer.dtype)
    if dtype == "bool":  # TVM has no least or greatest of them
        return False
    identities = {
        tirx.Add: tirx.const(0, dtype),
        tirx.Mul: tirx.const(1, dtype),
        tirx.Max: tirx.min_value(dtype),
        tirx.Min: tirx.max_value(dtype),
    }
    identity = identities.get(type(value))
    if identity is None or not isinstance(value.a, tvm.ir.TensorLoad):
        return False
    own = value.a.source.same_as(block.body.buffer)
    return own and bool(tvm_ffi.structural_equal(start, identity))


def _grown(
    schedule: Schedule,
    block: Node,
    axes: tuple[Axis, ...],
    inputs: tuple[Operand, ...],
    epilogue: Epilogue | None,
) -> tuple[tirx.PrimFunc, tuple[Operand, ...]]:
    """The program and the block's inputs, those that are read outside of themselves or backwards
    declared larger (margins.py)."""
    grown: dict[str, Grown] = {}
    result = []
    variables = [iv.var for iv in block.iter_vars]
    elsewhere = {o.name for o in epilogue.inputs} if epilogue is not None else set()
    for operand in inputs:
        margin, sizes = _room(operand, axes)
        if any(margin) or sizes != operand.shape:
            if operand.name in elsewhere or (epilogue is not None and not epilogue.fused):
                raise UnsupportedError(
                    f"block {block.name_hint}: {operand.name} is read outside of itself or"
                    " backwards, and by another block as well"
                )
            offset = tuple(map(add, operand.offset, margin))
            operand = replace(operand, shape=sizes, offset=offset)
            region = tuple(
                (_linear(row, first, variables), more + 1)
                for row, first, more in zip(operand.index, offset, operand.extra, strict=True)
            )
            grown[operand.name] = Grown(margin, sizes, region)
        result.append(operand)
    return with_margins(schedule.mod["main"], grown), tuple(result)


def _room(operand: Operand, axes: tuple[Axis, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(margin in front, size with it) of each axis, so that every index is inside."""
    margins, sizes = [], []
    for row, first, more, size in zip(
        operand.index, operand.offset, operand.extra, operand.shape, strict=True
    ):
        steps = [c * (axis.extent - 1) for c, axis in zip(row, axes, strict=True)]
        low = first + sum(min(step, 0) for step in steps)
        high = first + more + sum(max(step, 0) for step in steps)
        backwards = any(step < 0 for step in steps)
        margin = max(-low, 0) + BACKWARDS_MARGIN * backwards
        margins.append(margin)
        sizes.append(margin + max(size, high + 1) if margin or high >= size else size)
    return tuple(margins), tuple(sizes)


def _linear(row: tuple[int, ...], constant: int, variables: list[Node]) -> Node:
    """sum of coefficient * variable, plus the constant."""
    result: Node = tirx.IntImm("int32", constant)
    for coefficient, variable in zip(row, variables, strict=True):
        if coefficient:
            result = result + variable * coefficient
    return result


def inlined(schedule: Schedule) -> tuple[Node, Node | None]:
    """The main block (the only reduction, or the last block) and the one after it, once everything
    element-wise before and between is inlined."""
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    names = [str(schedule.get(b).name_hint) for b in blocks]
    reductions = [n for n, b in zip(names, blocks, strict=True) if is_reduction(schedule.get(b))]
    if len(reductions) > 1:
        raise UnsupportedError(f"blocks {', '.join(reductions)}: one reduction at most in a kernel")
    main = reductions[0] if reductions else names[-1]
    last = names[-1]
    for name in names:
        if name in (main, last):
            continue
        try:
            schedule.compute_inline(schedule.get_sblock(name))
        except tvm.s_tir.ScheduleError as error:
            raise UnsupportedError(f"block {name}: can't be inlined") from error
    after = None if last == main else schedule.get_sblock(last)
    return schedule.get_sblock(main), after


def _epilogue(block: Node, result: Operand, axes: tuple[Axis, ...]) -> Epilogue:
    """What a kernel has no functions for, or reads outside or backwards, is a nest of the host."""
    output, inputs, operations = _body(block, [iv.var for iv in block.iter_vars], on_host)
    spatial = [i for i, axis in enumerate(axes) if not axis.reduce]

    def widened(operand: Operand) -> Operand:
        index = []
        for row in operand.index:
            wide = [0] * len(axes)
            for axis, coefficient in zip(spatial, row, strict=True):
                wide[axis] = coefficient
            index.append(tuple(wide))
        return replace(operand, index=tuple(index))

    extents = [int(iv.dom.extent) for iv in block.iter_vars]
    same = extents == [axes[i].extent for i in spatial] and not is_reduction(block)
    if not same:
        return Epilogue(str(block.name_hint), (), output, operations, fused=False)
    reads = [widened(operand) for operand in inputs]
    fused = _identity(widened(output), spatial) and all(
        _identity(read, spatial) for read in reads if read.name == result.name
    )
    fused = fused and all(on_dpus(name, dtype) for name, dtype in calls_of(block.body.value))
    others = tuple(read for read in reads if read.name != result.name)
    inside = [_room(read, axes) == ((0,) * len(read.shape), read.shape) for read in others]
    fused = fused and all(inside)
    return Epilogue(str(block.name_hint), others, widened(output), operations, fused)


def _body(
    block: Node, variables: list[Node], has: Known
) -> tuple[Operand, tuple[Operand, ...], tuple[tuple[str, str, int], ...]]:
    """(output, inputs, operations) of a block that stores one value; `has` says which functions."""
    name, store = str(block.name_hint), block.body
    if not isinstance(store, tirx.BufferStore):
        raise UnsupportedError(f"block {name}: one store expected, {type(store).__name__} found")
    output = _operand(store.buffer, store.indices, variables, name)
    operations: dict[tuple[str, str], int] = {}
    loads: dict[str, Operand] = {}
    buffers: dict[str, Node] = {}
    where = "a kernel" if has is on_dpus else "host code"
    for function, dtype in calls_of(store.value):
        if not has(function, dtype):
            raise UnsupportedError(f"block {name}: {where} has no {function} of {dtype}")
    try:
        reads = loads_of(store.value, operations)
    except UnsupportedError as error:
        raise UnsupportedError(f"block {name}: {error}") from error
    for label, dtype in operations:
        if dtype in _TYPES:
            continue
        known_types = ", ".join(_TYPES)
        raise UnsupportedError(f"block {name}: {label} gives {dtype}, known are {known_types}")
    for load in reads:
        operand = _operand(load.source, load.indices, variables, name)
        if not buffers.setdefault(operand.name, load.source).same_as(load.source):
            raise UnsupportedError(f"block {name}: two tensors are named {operand.name}")
        if operand.name == output.name:
            continue
        known = loads.setdefault(operand.name, operand)
        if operand.index != known.index:
            raise UnsupportedError(f"block {name}: {operand.name} is read at two different indices")
        loads[operand.name] = _united(known, operand)
    counted = tuple((op, dtype, n) for (op, dtype), n in sorted(operations.items()))
    return output, tuple(loads.values()), counted


def _united(one: Operand, other: Operand) -> Operand:
    """Both reads of a tensor, at indices that differ by constants."""
    low = tuple(map(min, one.offset, other.offset))
    ends = zip(one.offset, one.extra, other.offset, other.extra, strict=True)
    high = [max(a + more, b + more_b) for a, more, b, more_b in ends]
    return replace(
        one, offset=low, extra=tuple(h - least for h, least in zip(high, low, strict=True))
    )


def _identity(operand: Operand, axes: list[int]) -> bool:
    """True when dimension d is indexed by axes[d] alone."""
    if len(operand.index) != len(axes) or any(operand.offset) or any(operand.extra):
        return False
    return all(
        row[axis] == 1 and sum(1 for c in row if c) == 1
        for row, axis in zip(operand.index, axes, strict=True)
    )


def is_reduction(block: Node) -> bool:
    return any(int(iv.iter_type) == _REDUCE for iv in block.iter_vars)


def _axis(iv: tirx.IterVar, block: str) -> Axis:
    kind = int(iv.iter_type)
    if kind not in (_SPATIAL, _REDUCE):
        raise UnsupportedError(f"block {block}: axis {iv.var.name} is neither spatial nor reduced")
    extent = iv.dom.extent
    if not isinstance(extent, tirx.IntImm):
        raise UnsupportedError(f"block {block}: axis {iv.var.name} has no static extent")
    return Axis(str(iv.var.name).removeprefix("v_"), int(extent), kind == _REDUCE)


def _operand(buffer: Node, indices: Node, variables: list[Node], block: str) -> Operand:
    name, dtype = str(buffer.name), str(buffer.dtype)
    if dtype not in _TYPES:
        raise UnsupportedError(f"block {block}: {name} is {dtype}, known are {', '.join(_TYPES)}")
    if not indices:
        raise UnsupportedError(f"block {block}: {name} has no axes, at least one is needed")
    rows, offsets = [], []
    for index in indices:
        linear = sym.detect_linear_equation(index, variables)
        if not linear or not all(isinstance(c, tirx.IntImm) for c in linear):
            raise UnsupportedError(f"block {block}: index {index} of {name} is not affine")
        rows.append(tuple(int(c) for c in linear[:-1]))
        offsets.append(int(linear[-1]))
    return Operand(
        name=name,
        dtype=dtype,
        shape=tuple(int(n) for n in buffer.shape),
        index=tuple(rows),
        offset=tuple(offsets),
        extra=(0,) * len(offsets),
    )
