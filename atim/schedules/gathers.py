"""Reads that a kernel has no tile for: the host puts their elements in order beforehand.

A kernel reads an operand in boxes, by one affine index for each operand. A tensor that is read by
an index with quotients and remainders, through another tensor, or by two indices at once (A and
its transposed) is copied: a block before writes `A_at[axes] = A[index]`, and the read is of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import ir, s_tir, sym, tirx

__all__ = ["Gathered", "named_apart", "with_gathers"]

# TVM's nodes have no Python types worth naming
Node = Any


@dataclass(frozen=True, slots=True)
class Gathered:
    """`func` with its copies, and for the name of each copied tensor why it is made."""

    func: tirx.PrimFunc
    reasons: dict[str, str]


def with_gathers(func: tirx.PrimFunc) -> Gathered:
    """The program with a copy before each block that needs one; unchanged where none does."""
    root = func.body.block
    nests = list(root.body.seq) if isinstance(root.body, tirx.SeqStmt) else [root.body]
    taken = {str(b.name) for b in (*func.params, *root.alloc_buffers)}
    made: list[_Copy] = []
    changed: list[Node] = []
    for nest in nests:
        block = _block_of(nest)
        copies = [] if block is None else _copies(block, taken)
        changed += [copy.nest() for copy in copies]
        changed.append(_reading(nest, block, copies) if copies else nest)
        made += copies
    if not made:
        return Gathered(func, {})
    buffers = [*root.alloc_buffers, *(copy.buffer for copy in made)]
    new = s_tir.SBlock([], [], [], "root", tirx.SeqStmt(changed), alloc_buffers=buffers)
    body = s_tir.SBlockRealize([], True, new)
    result = tirx.PrimFunc(func.params, body, attrs=func.attrs)
    return Gathered(result, {str(copy.buffer.name): copy.reason for copy in made})


@dataclass(frozen=True, slots=True)
class _Copy:
    """`buffer[axes] = load`, the axes those of the block's that the indices use."""

    load: Node
    buffer: Node
    axes: tuple[Node, ...]
    guarded: bool
    reason: str

    def nest(self) -> Node:
        """Loops around a block of their own."""
        names = [str(axis.var.name) for axis in self.axes]
        dtypes = [str(axis.var.ty) for axis in self.axes]
        variables = [tirx.Var(n, t) for n, t in zip(names, dtypes, strict=True)]
        renamed = {a.var: v for a, v in zip(self.axes, variables, strict=True)}
        source = self.load.source
        indices = [
            tvm_ffi.structural_map(i, [(tirx.Var, lambda v: renamed.get(v, v))])
            for i in self.load.indices
        ]
        if self.guarded:  # what is behind a guard may lie outside, and is not looked at there
            indices = [
                tirx.max(tirx.min(i, tirx.const(int(n) - 1, str(i.ty))), tirx.const(0, str(i.ty)))
                for i, n in zip(indices, source.shape, strict=True)
            ]
        inside: list[Node] = []
        for index in indices:
            tvm_ffi.structural_walk(
                index, [(ir.TensorLoad, lambda read: inside.append(read.source))]
            )
        store = tirx.BufferStore(self.buffer, tirx.BufferLoad(source, indices), variables)
        own = [ir.Range.from_min_extent(v, 1) for v in variables]
        block = s_tir.SBlock(
            [
                tirx.IterVar(axis.dom, var, tirx.IterVar.DataPar)
                for axis, var in zip(self.axes, variables, strict=True)
            ],
            [_all_of(buffer) for buffer in dict.fromkeys([source, *inside])],
            [tirx.BufferRegion(self.buffer, own)],
            str(self.buffer.name),
            store,
        )
        loops = [tirx.Var(n.removeprefix("v_"), t) for n, t in zip(names, dtypes, strict=True)]
        body: Node = s_tir.SBlockRealize(loops, True, block)
        for loop, axis in reversed(list(zip(loops, self.axes, strict=True))):
            body = tirx.For(loop, 0, axis.dom.extent, tirx.ForKind.SERIAL, body)
        return body


def _all_of(buffer: Node) -> Node:
    return tirx.BufferRegion(buffer, [ir.Range(0, n) for n in buffer.shape])


def _block_of(nest: Node) -> Node | None:
    while isinstance(nest, tirx.For):
        nest = nest.body
    if not isinstance(nest, s_tir.SBlockRealize):
        return None
    return nest.block if isinstance(nest.block.body, tirx.BufferStore) else None


def _copies(block: Node, taken: set[str]) -> list[_Copy]:
    """One for each different index of a tensor that isn't its first affine one."""
    loads: list[Node] = []
    value, own = block.body.value, block.body.buffer
    tvm_ffi.structural_walk(value, [(ir.TensorLoad, loads.append)], order="pre")
    inner = {id(x) for load in loads for i in load.indices for x in _loads_in(i)}
    variables = [axis.var for axis in block.iter_vars]
    first: dict[Node, Node] = {}
    copies: list[_Copy] = []
    for load in loads:
        source = load.source
        if source.same_as(own) or id(load) in inner or _known(load, copies):
            continue
        rows = _rows(load.indices, variables)
        if rows is not None and first.setdefault(source, rows) == rows:
            continue
        axes = tuple(axis for axis in block.iter_vars if _uses(load.indices, axis.var))
        if not axes:  # one element
            continue
        what = f"at {list(load.indices)}" if rows is None else "by two different indices"
        reason = f"block {block.name_hint}: {source.name} is read {what}, the host puts it in order"
        shape = [int(axis.dom.extent) for axis in axes]
        buffer = tirx.decl_buffer(shape, str(source.dtype), _unique(f"{source.name}_at", taken))
        copies.append(_Copy(load, buffer, axes, _has_choice(value), reason))
    return copies


def _loads_in(expr: Node) -> list[Node]:
    found: list[Node] = []
    tvm_ffi.structural_walk(expr, [(ir.TensorLoad, found.append)])
    return found


def _known(load: Node, copies: Sequence[_Copy]) -> bool:
    return any(tvm_ffi.structural_equal(load, copy.load) for copy in copies)


def _rows(indices: Sequence[Node], variables: list[Node]) -> tuple[tuple[int, ...], ...] | None:
    """Coefficients of the variables in each index, None where one isn't affine."""
    rows = []
    for index in indices:
        linear = sym.detect_linear_equation(index, variables)
        if not linear or not all(isinstance(c, tirx.IntImm) for c in linear):
            return None
        rows.append(tuple(int(c) for c in linear[:-1]))
    return tuple(rows)


def _uses(indices: Sequence[Node], variable: Node) -> bool:
    found: list[Node] = []
    for index in indices:
        tvm_ffi.structural_walk(index, [(tirx.Var, found.append)])
    return any(var.same_as(variable) for var in found)


def _has_choice(value: Node) -> bool:
    found: list[Node] = []
    rows = [(tirx.Select, found.append), (ir.Call, found.append)]
    tvm_ffi.structural_walk(value, rows)
    return bool(found)


def _unique(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free)
    return free


def _reading(nest: Node, block: Node, copies: Sequence[_Copy]) -> Node:
    """The nest with the copies read in place of their sources."""

    def load(node: Node, mutator: tvm_ffi.StructuralMutator) -> Node:
        for copy in copies:
            if tvm_ffi.structural_equal(node, copy.load):
                return tirx.BufferLoad(copy.buffer, [axis.var for axis in copy.axes])
        return mutator.default_mutate(node)

    value = tvm_ffi.structural_mutate(block.body.value, [(ir.TensorLoad, load)])
    store = tirx.BufferStore(block.body.buffer, value, list(block.body.indices))
    bare = s_tir.SBlock(block.iter_vars, [], [], block.name_hint, store)
    read = [*(load.source for load in _loads_in(value)), block.body.buffer]
    regions = s_tir.analysis.get_sblock_access_region(bare, {b: b for b in read})
    reads = [r for r in regions[0] if not r.source.same_as(block.body.buffer)]
    new = s_tir.SBlock(block.iter_vars, reads, block.writes, block.name_hint, store, block.init)

    def change(realize: Node, _: object) -> Node:
        return s_tir.SBlockRealize(realize.iter_values, realize.predicate, new)

    return tvm_ffi.structural_mutate(nest, [(s_tir.SBlockRealize, change)])


def named_apart(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The program with different names for all that it allocates; parameters keep theirs."""
    if not isinstance(func.body, s_tir.SBlockRealize):
        return func
    root = func.body.block
    taken = {str(p.name) for p in func.params}
    new: dict[Node, Node] = {}
    for buffer in root.alloc_buffers:
        name = _unique(str(buffer.name), taken)
        if name != str(buffer.name):
            new[buffer] = tirx.decl_buffer(list(buffer.shape), str(buffer.dtype), name)
    if not new:
        return func
    body = tvm_ffi.structural_map(func.body, [(tirx.Var, lambda v: new.get(v, v))])
    return tirx.PrimFunc(func.params, body, attrs=func.attrs)
