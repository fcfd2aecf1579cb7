"""Copies into WRAM, lengthened to what the loops behind them may touch.

TVM cuts a copy to the tensor where the tensor is shorter than its tile, down to a single element;
the compute loops still run over the whole tile under a guard. Lengthened, the copy is again a whole
number of 8-byte words, and what lies behind the tensor reads as the zeros that the host packed
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from tvm import ir, tirx
from tvm.tirx import For, ForKind, Stmt

from atim.codegen.access import Access, accesses, loop_ranges
from atim.codegen.affine import Affine, Ranges, affine, upper_bound
from atim.codegen.copies import chain, in_wram, item_bytes, rewrite_nests
from atim.codegen.kernel_func import rewrite
from atim.codegen.split import Split, with_body
from atim.target import DMA_ALIGN_BYTES


def widen_copies(parts: Split) -> Split:
    """Lengthen every copy from a tensor into a WRAM buffer that it alone fills."""
    body = parts.kernel.body
    ranges: dict[tirx.Var, tuple[int, int]] = loop_ranges(body)
    ranges |= {v: (0, n - 1) for v, n in zip(parts.grid_vars, parts.grid, strict=True)}
    local = set(parts.kernel.buffers)
    needs = _needs(list(accesses(body, ranges)), local, ranges)

    def change(nest: Stmt) -> Stmt:
        loops, _, store = chain(nest)
        assert store is not None
        load = store.value
        if not isinstance(load, ir.TensorLoad) or load.source in local or store.buffer not in needs:
            return nest
        widths: dict[tirx.Var, int] = {p.loop_var: 0 for p in loops}
        wide = _widen_store(store, needs[store.buffer], ranges, widths)

        def inner(stmt: Stmt) -> Stmt:
            if stmt.same_as(store):
                return wide
            if isinstance(stmt, For) and widths.get(stmt.loop_var):
                return with_body(stmt, stmt.body, tirx.IntImm("int32", widths[stmt.loop_var]))
            return stmt

        return rewrite(nest, inner)

    new = rewrite_nests(body, change)
    return replace(parts, kernel=replace(parts.kernel, body=new))


def _needs(
    found: list[Access], local: set[tirx.Var], ranges: Ranges
) -> Mapping[tirx.Var, tuple[int, ...]]:
    """WRAM buffers with one store -> elements that loads may touch along each axis."""
    stores = Counter(a.buffer for a in found if a.store)
    needs: dict[tirx.Var, tuple[int, ...]] = {}
    for access in found:
        buffer = access.buffer
        if buffer not in local or not in_wram(buffer) or stores[buffer] != 1 or access.store:
            continue
        guards = access.loose_guards(ranges)
        last = [None if i is None else upper_bound(i, guards, ranges) for i in access.indices]
        ends = [0 if n is None else n + 1 for n in last]
        needs[buffer] = tuple(map(max, needs.get(buffer, (0,) * len(ends)), ends))
    return needs


def _widen_store(
    store: tirx.BufferStore,
    need: tuple[int, ...],
    ranges: Ranges,
    widths: dict[tirx.Var, int],
) -> Stmt:
    """The store, perhaps inside new loops; loops that must grow are noted in `widths`."""
    targets, sources = list(store.indices), list(store.value.indices)
    if len(targets) != len(sources):
        return store
    step = max(1, DMA_ALIGN_BYTES // item_bytes(store.buffer))
    added: list[tuple[tirx.Var, int]] = []
    for axis, wanted in enumerate(need):
        target, source = affine(targets[axis], ranges), affine(sources[axis], ranges)
        if axis == len(need) - 1 and wanted > 1:
            wanted = -(-wanted // step) * step
        bounds = None if target is None else target.bounds(ranges)
        if target is None or source is None or bounds is None or bounds[1] + 1 >= wanted:
            continue
        if not target.terms:
            var = tirx.Var(f"ax{axis}", "int32")
            added.append((var, wanted - target.const))
            term = Affine({var: 1}, 0)
            targets[axis], sources[axis] = (target + term).expr(), (source + term).expr()
        elif len(target.terms) == 1 and not target.const:
            (var,) = target.terms
            if target.terms[var] == source.coefficient(var) == 1 and var in widths:
                widths[var] = wanted
    result: Stmt = store
    if added:
        load = tirx.BufferLoad(store.value.source, sources)
        result = tirx.BufferStore(store.buffer, load, targets)
    for var, extent in reversed(added):
        result = For(var, 0, extent, ForKind.SERIAL, result)
    return result
