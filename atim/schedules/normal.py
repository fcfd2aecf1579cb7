"""A program as the rest of the package reads it: 32-bit loops, and at least one axis per tensor.

`te` over extents of int64, Torch and Relax count loops in 64 bits; DPUs count in 32. TVM's own
pass refuses such loops over tensors of int64, whose values must keep their type: here only loops,
shapes and indices change, and a loop variable inside a value is widened again. Tensors without axes
(the sum of everything) get one of a single element; `shaped` gives callers theirs back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from numpy.typing import NDArray
from tvm import ir, s_tir, sym, tirx

from atim.errors import UnsupportedError
from atim.functions import COMBINERS

__all__ = ["normal", "shaped"]

# TVM's nodes have no Python types worth naming
Node = Any

SCALARS = "atim.scalars"  # attribute: names of the parameters that had no axes
AXIS = "one"

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max)
_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)
_INT32_MAX = 2**31 - 1


def normal(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The program with 32-bit loops and indices and with axes everywhere; unchanged where it is so.

    Raises `UnsupportedError` for extents of 0, unknown ones, and those beyond 32 bits; and for
    blocks that aren't one statement at every point of their loops.
    """
    if not isinstance(func.body, s_tir.SBlockRealize):
        raise UnsupportedError("the program has no blocks, only bare loops")
    root = func.body.block
    buffers = [*func.params, *root.alloc_buffers]
    for buffer in buffers:
        _check_shape(buffer)
    new = {b: _declared(b) for b in buffers if not _is_normal(b)}
    nests = list(root.body.seq) if isinstance(root.body, tirx.SeqStmt) else [root.body]
    if str(root.name_hint) != "root":
        raise UnsupportedError(f"block {root.name_hint}: not in loops of the program's own")
    writers: dict[Node, str] = {}
    for nest in nests:
        _check_nest(nest, writers)
    if not new and not any(_is_wide(nest) for nest in nests):
        return func
    changed = [_Nest.of(nest).rebuilt(new) for nest in nests]
    allocated = [new.get(b, b) for b in root.alloc_buffers]
    body = tirx.SeqStmt(changed) if len(changed) > 1 else changed[0]
    block = s_tir.SBlock([], [], [], "root", body, alloc_buffers=allocated)
    params = [new.get(b, b) for b in func.params]
    result = tirx.PrimFunc(params, s_tir.SBlockRealize([], True, block), attrs=func.attrs)
    scalars = [str(p.name) for p in func.params if not len(p.shape)]
    return result.with_attr(SCALARS, scalars) if scalars else result


def shaped(func: tirx.PrimFunc, name: str, array: NDArray[Any], back: bool = False) -> NDArray[Any]:
    """An array that the caller gives for a parameter, as `func` declares it; or `back`."""
    scalars = func.attrs.get(SCALARS, ()) if func.attrs else ()
    if name not in [str(s) for s in scalars]:
        return array
    if back:
        return array.reshape(())
    return array.reshape(1) if array.ndim == 0 else array


def _check_shape(buffer: Node) -> None:
    if tirx.is_buffer_var(buffer) and len(buffer.strides):
        raise UnsupportedError(
            f"tensor {buffer.name}: strides {list(buffer.strides)}, only row-major ones are taken"
        )
    for extent in buffer.shape if tirx.is_buffer_var(buffer) else ():
        if not isinstance(extent, tirx.IntImm):
            raise UnsupportedError(f"tensor {buffer.name}: extent {extent} is not known")
        if not 1 <= int(extent) <= _INT32_MAX:
            limit = "at least 1" if int(extent) < 1 else f"at most {_INT32_MAX:,}"
            raise UnsupportedError(f"tensor {buffer.name}: extent {int(extent)}, {limit} needed")


def _check_nest(nest: Node, writers: dict[Node, str]) -> None:
    """Rules take loops for the axes of a block, and a block as one that runs at all of them, reads
    inside its tensors and makes all of its results. `writers`: which block wrote a tensor."""
    found = _Nest.of(nest)
    for loop in found.loops:
        if loop.kind != tirx.ForKind.SERIAL or loop.annotations:
            name = found.realize.block.name_hint
            raise UnsupportedError(
                f"block {name}: loop {loop.loop_var.name} is bound or annotated, only plain loops"
                " are taken"
            )
    _check_results(found.realize.block, writers)
    _check_reads(found.realize.block)
    block, loops = found.realize.block, [loop.loop_var for loop in found.loops]
    for axis, value in zip(block.iter_vars, found.realize.iter_values, strict=True):
        own = any(value.same_as(loop) for loop in loops)
        if not own and not isinstance(value, tirx.IntImm):
            raise UnsupportedError(
                f"block {block.name_hint}: axis {axis.var.name} is {value}, not a loop by itself"
            )
    always = found.realize.predicate
    if not (isinstance(always, tirx.IntImm) and int(always)):
        raise UnsupportedError(f"block {block.name_hint}: only runs where {always}")
    inner: list[Node] = []
    tvm_ffi.structural_walk(block.body, [(tirx.For, inner.append), (s_tir.SBlock, inner.append)])
    if inner:
        raise UnsupportedError(f"block {block.name_hint}: holds loops or blocks of its own")


def _check_results(block: Node, writers: dict[Node, str]) -> None:
    name = str(block.name_hint)
    if not block.writes:
        raise UnsupportedError(f"block {name}: writes no tensor")
    for tensor in (region.source for region in block.writes):
        if tensor in writers:
            raise UnsupportedError(
                f"block {name}: {tensor.name} is written by block {writers[tensor]} already"
            )
        writers[tensor] = name
        if block.init is None and any(r.source.same_as(tensor) for r in block.reads):
            raise UnsupportedError(
                f"block {name}: {tensor.name} is updated in place, only reductions from an initial"
                " value of their own read what they write"
            )
    store = block.body
    if block.init is None or not isinstance(store, tirx.BufferStore):
        return
    ends = (getattr(store.value, "a", None), getattr(store.value, "b", None))
    own = any(isinstance(e, ir.TensorLoad) and e.source.same_as(store.buffer) for e in ends)
    if not own or type(store.value).__name__ not in COMBINERS:
        known = ", ".join(COMBINERS)
        raise UnsupportedError(
            f"block {name}: {store.buffer.name} is reduced by {store.value}, known are {known}"
        )


def _check_reads(block: Node) -> None:
    """An affine index that no condition guards stays inside of its tensor."""
    if not isinstance(block.body, tirx.BufferStore):
        return
    loads: list[Node] = []
    choices: list[Node] = []
    rows = [(tirx.Select, choices.append), (ir.Call, choices.append)]
    tvm_ffi.structural_walk(block.body.value, [(ir.TensorLoad, loads.append), *rows])
    if choices:
        return
    axes = [(axis.var, axis.dom) for axis in block.iter_vars]
    for load in loads:
        for place, (index, extent) in enumerate(zip(load.indices, load.source.shape, strict=True)):
            linear = sym.detect_linear_equation(index, [var for var, _ in axes])
            bounds = _bounds(linear, [dom for _, dom in axes])
            if bounds is not None and not 0 <= bounds[0] <= bounds[1] < int(extent):
                raise UnsupportedError(
                    f"block {block.name_hint}: {load.source.name} is read outside, axis {place}"
                    f" from {bounds[0]} to {bounds[1]}, {int(extent)} elements there"
                )


def _bounds(linear: Sequence[Node], ranges: Sequence[Node]) -> tuple[int, int] | None:
    """(Least, largest) value of coefficients and a constant over the ranges of their variables;
    None if that isn't known."""
    known = [*linear, *(n for r in ranges for n in (r.min, r.extent))]
    if not linear or not all(isinstance(n, tirx.IntImm) for n in known):
        return None
    low = high = int(linear[-1])
    for factor, one in zip(linear, ranges, strict=False):
        ends = [int(factor) * int(one.min), int(factor) * (int(one.min) + int(one.extent) - 1)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _is_normal(buffer: Node) -> bool:
    if not tirx.is_buffer_var(buffer):
        return True
    return bool(len(buffer.shape)) and all(str(n.ty) == "int32" for n in buffer.shape)


def _declared(buffer: Node) -> Node:
    shape = [int(n) for n in buffer.shape] or [1]
    return tirx.decl_buffer(shape, str(buffer.dtype), str(buffer.name))


def _is_wide(nest: Node) -> bool:
    loops: list[Node] = []
    tvm_ffi.structural_walk(nest, [(tirx.For, loops.append)])
    axes: list[Node] = []
    tvm_ffi.structural_walk(nest, [(tirx.IterVar, axes.append)])
    variables = [*(loop.loop_var for loop in loops), *(axis.var for axis in axes)]
    return any(str(v.ty) == "int64" for v in variables)


@dataclass(frozen=True, slots=True)
class _Nest:
    """Loops around a block."""

    loops: tuple[Node, ...]
    realize: Node

    @staticmethod
    def of(nest: Node) -> _Nest:
        loops = []
        while isinstance(nest, tirx.For):
            loops.append(nest)
            nest = nest.body
        if not isinstance(nest, s_tir.SBlockRealize):
            kind = type(nest).__name__
            hint = ": allocate with T.sblock_alloc_buffer" if kind == "AllocBuffer" else ""
            raise UnsupportedError(f"a block in its loops expected, {kind} found{hint}")
        return _Nest(tuple(loops), nest)

    def rebuilt(self, buffers: Mapping[Node, Node]) -> Node:
        """The nest over other declarations of its tensors, counting in 32 bits."""
        block = self.realize.block
        variables = {loop.loop_var: _narrowed_var(loop.loop_var) for loop in self.loops}
        variables |= {axis.var: _narrowed_var(axis.var) for axis in block.iter_vars}
        loops = [(variables[loop.loop_var], int(loop.extent)) for loop in self.loops]
        bounds = [(variables[loop.loop_var], int(loop.extent)) for loop in self.loops]
        bounds += [(variables[a.var], int(a.dom.extent)) for a in block.iter_vars]
        axes = [
            tirx.IterVar(ir.Range(0, int(a.dom.extent)), variables[a.var], a.iter_type)
            for a in block.iter_vars
        ]
        change = _Change(variables, buffers, bounds)
        values = [change.index(v) for v in self.realize.iter_values]
        if any(not len(w.source.shape) for w in block.writes):
            axis = axes[0] if len(axes) == 1 and int(axes[0].iter_type) == 0 else None
            if axis is None:
                axis = tirx.IterVar(
                    ir.Range(0, 1), tirx.Var(f"v_{AXIS}", "int32"), tirx.IterVar.DataPar
                )
                axes, values = [axis, *axes], [tirx.IntImm("int32", 0), *values]
            if isinstance(values[0], tirx.IntImm):
                loop = tirx.Var(AXIS, "int32")
                loops, values = [(loop, 1), *loops], [loop, *values[1:]]
            change.place = axis.var
        new = s_tir.SBlock(
            axes,
            [change.region(r) for r in block.reads],
            [change.region(w) for w in block.writes],
            block.name_hint,
            change.value(block.body),
            None if block.init is None else change.value(block.init),
        )
        predicate = change.value(self.realize.predicate)
        body: Node = s_tir.SBlockRealize(values, predicate, new)
        for variable, extent in reversed(loops):
            body = tirx.For(variable, 0, extent, tirx.ForKind.SERIAL, body)
        return body


def _narrowed_var(var: Node) -> Node:
    return tirx.Var(str(var.name), "int32")


class _Change:
    """Expressions and stores of a nest over the new variables and tensors. `place`: the index in
    tensors that had no axes."""

    def __init__(
        self,
        variables: Mapping[Node, Node],
        buffers: Mapping[Node, Node],
        bounds: Sequence[tuple[Node, int]],
    ) -> None:
        self._variables = variables
        self._buffers = buffers
        self._analyzer = sym.Analyzer()
        for variable, extent in bounds:
            self._analyzer.bind(variable, ir.Range(0, extent))
        self.place: Node = tirx.IntImm("int32", 0)

    def value(self, node: Node) -> Node:
        """Types stay: a loop variable that was of 64 bits is widened."""
        rows = [
            (tirx.Var, self._var),
            (ir.TensorLoad, self._load),
            (tirx.BufferStore, self._store),
            *((kind, self._comparison) for kind in _COMPARISONS),
        ]
        return tvm_ffi.structural_mutate(node, rows)

    def index(self, node: Node) -> Node:
        """Of 32 bits. What is computed from tensors or is too large on the way stays wide until it
        is complete."""
        wide = self.value(node)
        narrow = self._narrow(wide)
        if narrow is not None:
            return narrow
        return wide if str(wide.ty) == "int32" else tirx.Cast("int32", wide)

    def region(self, region: Node) -> Node:
        ranges = [
            ir.Range.from_min_extent(self.index(r.min), self.index(r.extent)) for r in region.region
        ]
        source = self._buffers.get(region.source, region.source)
        return tirx.BufferRegion(source, ranges or [ir.Range.from_min_extent(self.place, 1)])

    def _var(self, var: Node, _: object) -> Node:
        new = self._variables.get(var)
        if new is None:
            return self._buffers.get(var, var)
        return new if str(var.ty) == "int32" else tirx.Cast(str(var.ty), new)

    def _load(self, load: Node, _: object) -> Node:
        source = self._buffers.get(load.source, load.source)
        return tirx.BufferLoad(source, [self.index(i) for i in load.indices] or [self.place])

    def _store(self, store: Node, _: object) -> Node:
        buffer = self._buffers.get(store.buffer, store.buffer)
        indices = [self.index(i) for i in store.indices] or [self.place]
        return tirx.BufferStore(buffer, self.value(store.value), indices)

    def _comparison(self, node: Node, _: object) -> Node:
        sides = [self.value(node.a), self.value(node.b)]
        if str(sides[0].ty) == "int64":
            narrow = [n for side in sides if (n := self._narrow(side)) is not None]
            sides = narrow if len(narrow) == len(sides) else sides
        return type(node)(*sides)

    def _narrow(self, node: Node) -> Node | None:
        """The same value in 32 bits, None where that isn't certain."""
        if isinstance(node, tirx.IntImm):
            fits = abs(int(node)) <= _INT32_MAX
            return tirx.IntImm("int32", int(node)) if fits else None
        if isinstance(node, tirx.Var):
            return node if str(node.ty) == "int32" else None
        if isinstance(node, tirx.Cast):
            return self._narrow(node.value) if str(node.ty) == "int64" else None
        if not isinstance(node, _ARITHMETIC):
            return None
        a, b = self._narrow(node.a), self._narrow(node.b)
        if a is None or b is None:
            return None
        bound = self._analyzer.const_int_bound(node)
        if max(abs(int(bound.min_value)), abs(int(bound.max_value))) > _INT32_MAX:
            return None
        return type(node)(a, b)
