"""Reductions to several values (argmax, sums with sums of squares) -> one reduction for each.

Values that don't look at each other are taken apart as they are. Of a value and its place, which
`te` and TOPI write as one block, the value is an ordinary maximum or minimum; the place is then
the least (or greatest) index at which the tensor has that value. On DPUs both are plain reductions.
Integers give what the block gives, save where a row holds nothing but the type's own limit, for
which the place is the first as in NumPy. NaN counts as the greatest and the least, as in NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import ir, s_tir, tirx

from atim.errors import UnsupportedError
from atim.schedules.loads import loads_of

__all__ = ["rewrite_arguments"]

Node = Any


@dataclass(frozen=True, slots=True)
class _Pair:
    """What a block of two stores keeps: `value` compared, `place` the index it was found at."""

    value: tirx.BufferStore
    place: tirx.BufferStore
    element: Node
    index: Node
    greatest: bool
    first: bool


def rewrite_arguments(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The program with such blocks taken apart, unchanged where there are none.

    Raises `UnsupportedError` with the block's name for other blocks of several stores.
    """
    if not isinstance(func.body, s_tir.SBlockRealize):
        return func
    root = func.body.block
    nests = list(root.body.seq) if isinstance(root.body, tirx.SeqStmt) else [root.body]
    changed: list[Node] = []
    for nest in nests:
        block = _only_block(nest)
        if block is not None and isinstance(block.body, tirx.SeqStmt):
            changed += _apart(nest, block) or _value_and_place(nest, block)
        else:
            changed.append(nest)
    if len(changed) == len(nests):
        return func
    new_root = s_tir.SBlock(
        [], [], [], "root", tirx.SeqStmt(changed), alloc_buffers=root.alloc_buffers
    )
    body = s_tir.SBlockRealize([], True, new_root)
    return tirx.PrimFunc(func.params, body, attrs=func.attrs)


def _only_block(nest: Node) -> Node | None:
    while isinstance(nest, tirx.For):
        nest = nest.body
    return nest.block if isinstance(nest, s_tir.SBlockRealize) else None


def _value_and_place(nest: Node, block: Node) -> list[Node]:
    pair = _pair(block)
    return [_nest(nest, block, pair, place=False), _nest(nest, block, pair, place=True)]


def _apart(nest: Node, block: Node) -> list[Node]:
    """A nest for each result where none looks at another one's; empty where one does."""
    values = {s.var: s.value for s in block.body.seq if isinstance(s, tirx.Bind)}
    stores = [s for s in block.body.seq if isinstance(s, tirx.BufferStore)]
    starts = {s.buffer: s for s in block.init.seq} if block.init is not None else {}
    nests = []
    for store in stores:
        value = values.get(store.value, store.value)
        others = [s.buffer for s in stores if not s.buffer.same_as(store.buffer)]
        read = [load.source for load in loads_of(value, {})]
        if any(source.same_as(other) for source in read for other in others):
            return []
        own = tirx.BufferLoad(store.buffer, list(store.indices))
        new = s_tir.SBlock(
            block.iter_vars,
            [r for r in block.reads if any(r.source.same_as(source) for source in read)],
            [_region(own)],
            str(store.buffer.name),
            tirx.BufferStore(store.buffer, value, list(store.indices)),
            starts.get(store.buffer),
        )
        nests.append(_renewed(_with_block(nest, new)))
    return nests


def _with_block(nest: Node, block: Node) -> Node:
    def change(realize: Node, _: object) -> Node:
        return s_tir.SBlockRealize(realize.iter_values, realize.predicate, block)

    return tvm_ffi.structural_mutate(nest, [(s_tir.SBlockRealize, change)])


def _pair(block: Node) -> _Pair:
    """The block's meaning. The value's update compares it with an element and keeps one."""
    values = {s.var: s.value for s in block.body.seq if isinstance(s, tirx.Bind)}
    stores = [s for s in block.body.seq if isinstance(s, tirx.BufferStore)]
    for value, place in (stores, stores[::-1]) if len(stores) == 2 else ():
        kept, found = values.get(value.value, value.value), values.get(place.value, place.value)
        if not (isinstance(kept, tirx.Select) and isinstance(found, tirx.Select)):
            continue
        comparison = kept.condition
        index = found.false_value
        first = _first_of_equals(found.condition, comparison)
        own = kept.true_value
        kinds = (tirx.GT, tirx.GE, tirx.LT, tirx.LE)
        if (
            not loads_of(index, {})
            and first is not None
            and isinstance(comparison, kinds)
            and tvm_ffi.structural_equal(comparison.a, own)
            and tvm_ffi.structural_equal(comparison.b, kept.false_value)
            and isinstance(own, ir.TensorLoad)
            and own.source.same_as(value.buffer)
        ):
            greatest = isinstance(comparison, (tirx.GT, tirx.GE))
            return _Pair(value, place, kept.false_value, index, greatest, first)
    raise UnsupportedError(
        f"block {block.name_hint}: {len(stores)} results, only a maximum or minimum with its place"
        " can be taken apart"
    )


def _first_of_equals(kept: Node, comparison: Node) -> bool | None:
    """Which place stays where two elements are equal: the first (True), the last (False); None
    where the condition for keeping a place says something else.

    The condition is the comparison of the values itself, or `v > x or (v == x and place < index)`.
    """
    if tvm_ffi.structural_equal(kept, comparison):
        return isinstance(comparison, (tirx.GE, tirx.LE))
    if not isinstance(kept, tirx.Or) or not tvm_ffi.structural_equal(kept.a, comparison):
        return None
    tie = kept.b
    if not isinstance(tie, tirx.And) or not isinstance(tie.a, tirx.EQ):
        return None
    if isinstance(comparison, (tirx.GE, tirx.LE)):
        return None
    return {tirx.LT: True, tirx.GT: False}.get(type(tie.b))


def _nest(nest: Node, block: Node, pair: _Pair, place: bool) -> Node:
    """The nest with a block that reduces the value, or the place."""
    store = pair.place if place else pair.value
    buffer, indices = store.buffer, list(store.indices)
    own = tirx.BufferLoad(buffer, indices)
    best = tirx.BufferLoad(pair.value.buffer, list(pair.value.indices))
    if place:
        kind = tirx.Min if pair.first else tirx.Max
        dtype = str(buffer.dtype)
        none = tirx.max_value(dtype) if pair.first else tirx.min_value(dtype)
        index = pair.index if dtype == str(pair.index.ty) else pair.index.astype(dtype)
        found = tirx.EQ(pair.element, best)
        if "float" in str(pair.element.ty):
            # what the reduction starts from is beyond all elements but an infinity
            extreme = tirx.Max if pair.greatest else tirx.Min
            kept = extreme(pair.element, _start(block, pair.value))
            found = tirx.Or(tirx.EQ(kept, best), tirx.isnan(pair.element))
        here = tirx.Select(found, index, none)
        start: Node = none
        reads = [*block.reads, _region(best)]
    else:
        kind = tirx.Max if pair.greatest else tirx.Min
        here = pair.element
        start = _start(block, store)
        reads = list(block.reads)
    new = s_tir.SBlock(
        block.iter_vars,
        reads,
        [_region(own)],
        str(buffer.name),
        tirx.BufferStore(buffer, kind(own, here), indices),
        tirx.BufferStore(buffer, start, indices),
    )
    return _renewed(_with_block(nest, new))


def _start(block: Node, store: tirx.BufferStore) -> Node:
    """What the reduction of a store starts from."""
    return next(s.value for s in block.init.seq if s.buffer.same_as(store.buffer))


def _renewed(nest: Node) -> Node:
    """The nest with loop and block variables of its own."""
    new: dict[Node, Node] = {}

    def note(var: Node) -> None:
        new.setdefault(var, tirx.Var(str(var.name), str(var.ty)))

    tvm_ffi.structural_walk(
        nest, [(tirx.For, lambda f: note(f.loop_var)), (tirx.IterVar, lambda v: note(v.var))]
    )
    return tvm_ffi.structural_map(nest, [(tirx.Var, lambda v: new.get(v, v))])


def _region(load: ir.TensorLoad) -> Node:
    return tirx.BufferRegion(load.source, [ir.Range.from_min_extent(i, 1) for i in load.indices])
