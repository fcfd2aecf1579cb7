"""Accumulators in registers.

A WRAM element that a loop updates over and over is loaded before the loop and stored after it, in
between it lives in a C local. Compilers can't do this themselves here: all of a tasklet's buffers
are parts of one object, so a store to one may touch another as far as they know.
"""

from __future__ import annotations

import re

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.access import Access, accesses, uses
from atim.codegen.affine import Ranges
from atim.codegen.boundary import indexes_registers
from atim.codegen.kernel_func import (
    Tiles,
    body_of,
    local_buffers,
    ranges_of,
    rewrite,
    with_kernel_body,
)
from atim.codegen.split import sequence, substitute, with_body
from atim.target import SCOPE_REGISTERS, SCOPE_TASKLET

# registers that a row block may take; beyond it the compiler would spill
MAX_PROMOTED = 8


def unroll_registers(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """Loops that select an element of a register buffer are unrolled: registers have no
    addresses."""

    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == ForKind.SERIAL and indexes_registers(stmt):
            return For(stmt.loop_var, stmt.min, stmt.extent, ForKind.UNROLLED, stmt.body)
        return stmt

    return with_kernel_body(func, rewrite(body_of(func), change))


def promote_sums(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """`for k: S[i] += e` -> `r = S[i]; for k: r += e; S[i] = r`, around the outermost loop that
    leaves i alone, an unrolled one where a tile is unrolled whole; inner unrolled loops may select
    among a few elements."""
    buffers = local_buffers(func)
    body = _promote(body_of(func), ranges_of(func), buffers)
    return with_kernel_body(func, body, buffers)


def _promote(stmt: Stmt, ranges: Ranges, buffers: list[tirx.Var]) -> Stmt:
    if isinstance(stmt, SeqStmt):
        return _forward(_sequence([_promote(s, ranges, buffers) for s in stmt.seq]))
    if isinstance(stmt, IfThenElse):
        other = None if stmt.else_case is None else _promote(stmt.else_case, ranges, buffers)
        return IfThenElse(stmt.condition, _promote(stmt.then_case, ranges, buffers), other)
    if not isinstance(stmt, For):
        return stmt
    if stmt.kind in (ForKind.SERIAL, ForKind.UNROLLED):
        for store in _updates(stmt.body):
            selectors = _selectors(stmt, store, ranges)
            if selectors is not None and not any(stmt.same_as(s) for s in selectors):
                stmt, before, after = _in_registers(stmt, store, selectors, buffers)
                return _sequence([before, _promote(stmt, ranges, buffers), after])
    return with_body(stmt, _promote(stmt.body, ranges, buffers))


def _forward(stmt: Stmt) -> Stmt:
    """`S[i] = v; r = S[i]; for ...; S[i] = r` -> `r = v; for ...; S[i] = r`."""
    parts = list(stmt.seq) if isinstance(stmt, SeqStmt) else []
    kept: list[Stmt] = []
    for part in parts:
        last = kept[-1] if kept else None
        if (
            isinstance(part, tirx.BufferStore)
            and isinstance(last, tirx.BufferStore)
            and part.buffer.scope() == SCOPE_REGISTERS
            and isinstance(part.value, ir.TensorLoad)
            and part.value.source.same_as(last.buffer)
            and tvm_ffi.structural_equal(list(part.value.indices), list(last.indices))
        ):
            kept[-1] = tirx.BufferStore(part.buffer, last.value, list(part.indices))
        else:
            kept.append(part)
    return stmt if len(kept) == len(parts) else _sequence(kept)


def _sequence(stmts: list[Stmt]) -> Stmt:
    result = sequence(stmts)
    assert result is not None
    return result


def _updates(body: Stmt) -> list[tirx.BufferStore]:
    """Stores S[i] = f(S[i], ...) to a tasklet's WRAM."""
    found: list[tirx.BufferStore] = []

    def visit(store: tirx.BufferStore) -> None:
        if store.buffer.scope() == SCOPE_TASKLET and uses(store.value, {store.buffer}):
            found.append(store)

    tvm_ffi.structural_walk(body, [(tirx.BufferStore, visit)])
    return found


def _selectors(loop: For, store: tirx.BufferStore, ranges: Ranges) -> list[For] | None:
    """The unrolled loops inside `loop` that select the element, None if it can't be promoted."""
    around = _path(loop, store)
    unrolled = [
        p for p in around if p.kind == ForKind.UNROLLED and isinstance(p.extent, tirx.IntImm)
    ]
    moving = {p.loop_var for p in around} - {p.loop_var for p in unrolled}
    found = [a for a in accesses(loop.body, ranges) if a.buffer.same_as(store.buffer)]
    own = [a for a in accesses(store, ranges) if a.buffer.same_as(store.buffer)]
    if len(found) != len(own) or any(not _fixed(a, found[-1], moving) for a in found):
        return None
    uses_of = {
        p.loop_var: [i for i in found[-1].indices if i is not None and i.uses([p.loop_var])]
        for p in unrolled
    }
    chosen = [p for p in unrolled if uses_of[p.loop_var]]
    count = 1
    for selector in chosen:
        count *= int(selector.extent)
        others = [p.loop_var for p in chosen if p is not selector]
        indices = uses_of[selector.loop_var]
        # one axis for each selector, so that different iterations name different elements
        if len(indices) != 1 or indices[0].uses(others):
            return None
    return chosen if count <= MAX_PROMOTED else None


def _path(loop: For, store: tirx.BufferStore) -> list[For]:
    """The loop and the loops inside it that enclose the store."""

    def search(stmt: Stmt, path: list[For]) -> list[For] | None:
        if stmt.same_as(store):
            return path
        if isinstance(stmt, For):
            return search(stmt.body, [*path, stmt])
        parts = list(stmt.seq) if isinstance(stmt, SeqStmt) else []
        if isinstance(stmt, IfThenElse):
            parts = [s for s in (stmt.then_case, stmt.else_case) if s is not None]
        return next((p for s in parts if (p := search(s, path)) is not None), None)

    return search(loop, []) or []


def _fixed(access: Access, other: Access, moving: set[tirx.Var]) -> bool:
    """The access names the same element as the other, whatever the moving variables are."""
    return all(
        a is not None and a == b and not a.uses(moving)
        for a, b in zip(access.indices, other.indices, strict=True)
    )


def _in_registers(
    loop: For, store: tirx.BufferStore, selectors: list[For], buffers: list[tirx.Var]
) -> tuple[For, Stmt, Stmt]:
    """(the loop on registers, loads before it, stores after it)."""
    wram = store.buffer
    shape = [int(p.extent) for p in selectors] or [1]
    dtype = str(wram.dtype)
    name = re.sub(r"_wram(_\d+)?$", "", str(wram.name)) + "_sum"
    registers = tirx.decl_buffer(shape, dtype, name, scope=SCOPE_REGISTERS, layout=None)
    buffers.append(registers)
    place: list[ir.Expr] = [p.loop_var for p in selectors] or [tirx.IntImm("int32", 0)]

    def load(node: ir.TensorLoad, mutator: tvm_ffi.StructuralMutator) -> ir.Expr:
        if node.source.same_as(wram):
            return tirx.BufferLoad(registers, place)
        return mutator.default_mutate(node)

    def write(node: tirx.BufferStore, mutator: tvm_ffi.StructuralMutator) -> Stmt:
        value = mutator.mutate(node.value)
        if node.buffer.same_as(wram):
            return tirx.BufferStore(registers, value, place)
        return tirx.BufferStore(node.buffer, value, [mutator.mutate(i) for i in node.indices])

    inside = tvm_ffi.structural_mutate(loop, [(ir.TensorLoad, load), (tirx.BufferStore, write)])
    indices = list(store.indices)
    before = tirx.BufferStore(registers, tirx.BufferLoad(wram, indices), place)
    after = tirx.BufferStore(wram, tirx.BufferLoad(registers, place), indices)
    return inside, _nest(selectors, before), _nest(selectors, after)


def _nest(selectors: list[For], store: Stmt) -> Stmt:
    """The store for every element, in unrolled loops of their own."""
    result = store
    for selector in reversed(selectors):
        var = tirx.Var(str(selector.loop_var.name), "int32")
        body = substitute(result, {selector.loop_var: var})
        result = For(var, 0, selector.extent, ForKind.UNROLLED, body)
    return result
