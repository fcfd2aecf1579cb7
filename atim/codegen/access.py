"""Who touches which element: loads and stores of a statement with their linear indices and guards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, IfThenElse, SeqStmt, Stmt

from atim.codegen.affine import Affine, Ranges, affine, below_zero
from atim.codegen.split import conjuncts


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store of `buffer`. An index that is not linear is None; a guard g means g < 0."""

    buffer: tirx.Var
    indices: tuple[Affine | None, ...]
    guards: tuple[Affine, ...]
    store: bool


def loop_ranges(stmt: Stmt) -> dict[tirx.Var, tuple[int, int]]:
    """Lowest and highest value of every loop variable whose loop has a constant extent, and the extents
    that loops with a minimum, as in `min(64, n)`, can reach at most."""
    ranges: dict[tirx.Var, tuple[int, int]] = {}

    def visit(loop: For) -> None:
        extent = largest_extent(loop.extent)
        if extent is not None:
            ranges[loop.loop_var] = (0, max(extent - 1, 0))

    tvm_ffi.structural_walk(stmt, [(For, visit)])
    return ranges


def largest_extent(extent: ir.Expr) -> int | None:
    """A constant that the extent never exceeds."""
    if isinstance(extent, tirx.IntImm):
        return int(extent.value)
    if isinstance(extent, tirx.Min):
        known = [n for n in map(largest_extent, (extent.a, extent.b)) if n is not None]
        return min(known, default=None)
    return None


def accesses(stmt: Stmt, ranges: Ranges, guards: tuple[Affine, ...] = ()) -> Iterator[Access]:
    """Every load and store in program order; a store's loads come before it."""
    if isinstance(stmt, SeqStmt):
        for part in stmt.seq:
            yield from accesses(part, ranges, guards)
    elif isinstance(stmt, For):
        yield from accesses(stmt.body, ranges, guards)
    elif isinstance(stmt, IfThenElse):
        yield from _loads(stmt.condition, ranges, guards)
        forms = [below_zero(c, ranges) for c in conjuncts(stmt.condition)]
        holds = tuple(f for f in forms if f is not None)
        yield from accesses(stmt.then_case, ranges, guards + holds)
        if stmt.else_case is not None:
            fails = (holds[0] * -1 - 1,) if len(forms) == len(holds) == 1 else ()
            yield from accesses(stmt.else_case, ranges, guards + fails)
    elif isinstance(stmt, tirx.BufferStore):
        yield from _loads(stmt.value, ranges, guards)
        yield Access(stmt.buffer, _indices(stmt.indices, ranges), guards, True)
    elif isinstance(stmt, tirx.Evaluate):
        yield from _loads(stmt.value, ranges, guards)


def _indices(indices: list[ir.Expr], ranges: Ranges) -> tuple[Affine | None, ...]:
    return tuple(affine(i, ranges) for i in indices)


def _loads(expr: ir.Expr, ranges: Ranges, guards: tuple[Affine, ...]) -> Iterator[Access]:
    """Loads of an expression; the branches of a conditional are guarded by its condition."""
    if isinstance(expr, ir.TensorLoad):
        for index in expr.indices:
            yield from _loads(index, ranges, guards)
        yield Access(expr.source, _indices(expr.indices, ranges), guards, False)
        return
    choice = _conditional(expr)
    if choice is not None:
        condition, yes, no = choice
        yield from _loads(condition, ranges, guards)
        forms = [below_zero(c, ranges) for c in conjuncts(condition)]
        holds = tuple(f for f in forms if f is not None)
        yield from _loads(yes, ranges, guards + holds)
        yield from _loads(no, ranges, guards)
        return
    for child in children(expr):
        yield from _loads(child, ranges, guards)


def _conditional(expr: ir.Expr) -> tuple[ir.Expr, ir.Expr, ir.Expr] | None:
    if isinstance(expr, tirx.Select):
        return expr.condition, expr.true_value, expr.false_value
    if isinstance(expr, ir.Call) and getattr(expr.op, "name", "") == "tirx.if_then_else":
        return tuple(expr.args)
    return None


def children(expr: ir.Expr) -> list[ir.Expr]:
    """Direct operands of an expression node."""
    if isinstance(expr, ir.Call):
        return [a for a in expr.args if isinstance(a, ir.Expr)]
    if isinstance(expr, tirx.Cast):
        return [expr.value]
    if isinstance(expr, tirx.Select):
        return [expr.condition, expr.true_value, expr.false_value]
    if isinstance(expr, ir.TensorLoad):
        return list(expr.indices)
    if isinstance(expr, tirx.Not):
        return [expr.a]
    return [expr.a, expr.b] if hasattr(expr, "b") else []


def uses(expr: ir.Expr | Stmt, variables: set[tirx.Var]) -> bool:
    """Some of the variables (buffers included) occurs in the expression or statement."""
    stop = (tirx.Var, lambda v: tvm_ffi.VisitInterrupt(v) if v in variables else None)
    return tvm_ffi.structural_walk(expr, [stop], order="pre") is not None


def storage(shape: list[int] | tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """The shape as stored: the last axis that is not 1 is rounded up to 8 bytes, so that every row starts
    where a DMA may start."""
    sizes = list(shape) or [1]
    last = max((i for i, n in enumerate(sizes) if n != 1), default=len(sizes) - 1)
    step = max(1, 8 // item_bytes)
    sizes[last] = -(-sizes[last] // step) * step
    return tuple(sizes)
