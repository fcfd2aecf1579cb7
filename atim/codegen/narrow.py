"""Copies out of WRAM, cut to the elements that were computed.

TVM gives a written-back tile the guard of its tensor only. Where a DPU's or a tasklet's share ends
inside of a tile, the rest of the tile was never computed and belongs to somebody else; copied out,
it would overwrite results. The guards under which the buffer was filled are repeated on the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tvm import ir, tirx
from tvm.tirx import Stmt

from atim.codegen.access import Access, accesses, loop_ranges, loops_of_life
from atim.codegen.affine import Affine, Ranges, affine, below_zero, coarsest, less, scales
from atim.codegen.copies import chain, rewrite_nests
from atim.codegen.kernel_func import rewrite
from atim.codegen.split import Split, conjunction, guarded


@dataclass(frozen=True, slots=True)
class _Rule:
    """Elements of a buffer exist where factor * (index along axis) + outer < 0."""

    axis: int
    factor: int
    outer: Affine


def narrow_copies(parts: Split) -> Split:
    """Guard every copy from a local buffer to a tensor as the buffer's own stores are guarded."""
    body = parts.kernel.body
    ranges: dict[tirx.Var, tuple[int, int]] = loop_ranges(body)
    ranges |= {v: (0, n - 1) for v, n in zip(parts.grid_vars, parts.grid, strict=True)}
    local = set(parts.kernel.buffers)
    stores: dict[tirx.Var, list[Access]] = {}
    for access in accesses(body, ranges):
        if access.store and access.buffer in local:
            stores.setdefault(access.buffer, []).append(access)
    rules = {b: _rules(found, loops_of_life(body, b)) for b, found in stores.items()}

    def change(nest: Stmt) -> Stmt:
        _, guards, store = chain(nest)
        assert store is not None
        load = store.value
        if not isinstance(load, ir.TensorLoad) or load.source not in rules:
            return nest
        if store.buffer in local:
            return nest
        missing = _missing(load, rules, guards, ranges)

        def inner(stmt: Stmt) -> Stmt | None:
            return guarded(conjunction(missing), stmt) if stmt.same_as(store) else stmt

        return rewrite(nest, inner) if missing else nest

    new = rewrite_nests(body, change)
    return replace(parts, kernel=replace(parts.kernel, body=new))


def _rules(stores: Sequence[Access], inside: set[tirx.Var]) -> list[_Rule]:
    """Guards that all stores share, by element and by what encloses the buffer's life."""
    rules = _rules_of(stores[0], inside)
    for store in stores[1:]:
        others = _rules_of(store, inside)
        rules = [rule for rule in rules if rule in others]
    return rules


def _rules_of(store: Access, inside: set[tirx.Var]) -> list[_Rule]:
    rules: list[_Rule] = []
    for guard in store.guards:
        if not guard.uses(inside):
            rules.append(_Rule(0, 0, guard))
        for axis, index in enumerate(store.indices):
            if index is None:
                continue
            for factor in scales(guard, index):
                outer = guard - index * factor
                if not outer.uses(inside):
                    rules.append(_Rule(axis, factor, outer))
    return rules


def _missing(
    load: ir.TensorLoad,
    rules: Mapping[tirx.Var, Sequence[_Rule]],
    guards: Sequence[ir.Expr],
    ranges: Ranges,
) -> list[ir.Expr]:
    """The rules as guards of the copy, without those that it has and those that always hold."""
    known = [below_zero(guard, ranges) for guard in guards]
    missing: list[ir.Expr] = []
    for rule in rules[load.source]:
        index = affine(load.indices[rule.axis], ranges) if load.indices else Affine({}, 0)
        if index is None:
            continue
        form = coarsest(rule.outer + index * rule.factor, ranges)
        bounds = form.bounds(ranges)
        if form not in known and (bounds is None or bounds[1] >= 0):
            missing.append(less(form))
    return missing
