"""Who touches which element: loads and stores with their linear indices and guards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.affine import Affine, Ranges, affine, below_zero
from atim.codegen.split import conjuncts, operation


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store of `buffer`. An index that is not linear is None; a guard g means g < 0.

    `nest` holds the variables of the loops that contain this statement and nothing else.
    """

    buffer: tirx.Var
    indices: tuple[Affine | None, ...]
    guards: tuple[Affine, ...]
    store: bool
    nest: tuple[tirx.Var, ...] = ()

    def loose_guards(self, ranges: Ranges) -> tuple[Affine, ...]:
        """The guards once the nest runs in full: each holds for some iteration of it."""
        return tuple(loosened(g, self.nest, ranges) for g in self.guards)


def loop_ranges(stmt: Stmt) -> dict[tirx.Var, tuple[int, int]]:
    """Lowest and highest value of every loop variable whose loop has a constant extent, and the
    extents that loops with a minimum, as in `min(64, n)`, can reach at most."""
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


def loosened(form: Affine, variables: Iterable[tirx.Var], ranges: Ranges) -> Affine:
    """The lowest value of the form over these variables, as a form of the others."""
    moving = form.only(variables)
    bounds = moving.bounds(ranges)
    return form if bounds is None else form - moving + bounds[0]


@dataclass(frozen=True, slots=True)
class _Around:
    """What encloses a statement."""

    guards: tuple[Affine, ...] = ()
    nest: tuple[tirx.Var, ...] = ()

    def under(self, *guards: Affine) -> _Around:
        return _Around(self.guards + guards, self.nest)

    def inside(self, loop: For) -> _Around:
        own = loop.kind in (ForKind.SERIAL, ForKind.UNROLLED)
        return _Around(self.guards, (*self.nest, loop.loop_var) if own else ())


_NOTHING = _Around()


def accesses(stmt: Stmt, ranges: Ranges, around: _Around = _NOTHING) -> Iterator[Access]:
    """Every load and store in program order; a store's loads come before it."""
    if isinstance(stmt, SeqStmt):
        for part in stmt.seq:
            yield from accesses(part, ranges, _Around(around.guards))
    elif isinstance(stmt, For):
        yield from accesses(stmt.body, ranges, around.inside(stmt))
    elif isinstance(stmt, IfThenElse):
        yield from _loads(stmt.condition, ranges, around)
        forms = [below_zero(c, ranges) for c in conjuncts(stmt.condition)]
        holds = tuple(f for f in forms if f is not None)
        yield from accesses(stmt.then_case, ranges, around.under(*holds))
        if stmt.else_case is not None:
            fails = (holds[0] * -1 - 1,) if len(forms) == len(holds) == 1 else ()
            yield from accesses(stmt.else_case, ranges, around.under(*fails))
    elif isinstance(stmt, tirx.BufferStore):
        yield from _loads(stmt.value, ranges, around)
        yield _access(stmt.buffer, stmt.indices, ranges, around, True)
    elif isinstance(stmt, tirx.Evaluate):
        yield from _loads(stmt.value, ranges, around)


def _access(
    buffer: tirx.Var, indices: list[ir.Expr], ranges: Ranges, around: _Around, store: bool
) -> Access:
    linear = tuple(affine(i, ranges) for i in indices)
    return Access(buffer, linear, around.guards, store, around.nest)


def _loads(expr: ir.Expr, ranges: Ranges, around: _Around) -> Iterator[Access]:
    """Loads of an expression; the branches of a conditional are guarded by its condition."""
    if isinstance(expr, ir.TensorLoad):
        for index in expr.indices:
            yield from _loads(index, ranges, around)
        yield _access(expr.source, list(expr.indices), ranges, around, False)
        return
    choice = _conditional(expr)
    if choice is not None:
        condition, yes, no = choice
        yield from _loads(condition, ranges, around)
        forms = [below_zero(c, ranges) for c in conjuncts(condition)]
        holds = tuple(f for f in forms if f is not None)
        yield from _loads(yes, ranges, around.under(*holds))
        yield from _loads(no, ranges, around)
        return
    for child in children(expr):
        yield from _loads(child, ranges, around)


def _conditional(expr: ir.Expr) -> tuple[ir.Expr, ir.Expr, ir.Expr] | None:
    if isinstance(expr, tirx.Select):
        return expr.condition, expr.true_value, expr.false_value
    if isinstance(expr, ir.Call) and operation(expr) == "if_then_else":
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
    if isinstance(expr, (tirx.Not, tirx.BitwiseNot)):
        return [expr.a]
    return [expr.a, expr.b] if hasattr(expr, "b") else []


def uses(expr: ir.Expr | Stmt, variables: set[tirx.Var]) -> bool:
    """Some of the variables (buffers included) occurs in the expression or statement."""
    stop = (tirx.Var, lambda v: tvm_ffi.VisitInterrupt(v) if v in variables else None)
    return tvm_ffi.structural_walk(expr, [stop], order="pre") is not None


def loops_of_life(body: Stmt, buffer: tirx.Var) -> set[tirx.Var]:
    """Variables of the loops inside the smallest statement with every access to the buffer."""
    stmt = body
    while True:
        parts: list[Stmt] = []
        if isinstance(stmt, (For, IfThenElse)):
            parts = [stmt.body] if isinstance(stmt, For) else [stmt.then_case]
        elif isinstance(stmt, SeqStmt):
            parts = [s for s in stmt.seq if uses(s, {buffer})]
        if len(parts) != 1:
            break
        stmt = parts[0]
    inside: set[tirx.Var] = set()

    def visit(loop: For) -> None:
        inside.add(loop.loop_var)

    tvm_ffi.structural_walk(stmt, [(For, visit)])
    return inside


def storage(shape: list[int] | tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """The shape as stored: the last axis that is not 1 is rounded up to 8 bytes, so that every row
    starts where a DMA may start."""
    sizes = list(shape) or [1]
    last = max((i for i, n in enumerate(sizes) if n != 1), default=len(sizes) - 1)
    step = max(1, 8 // item_bytes)
    sizes[last] = -(-sizes[last] // step) * step
    return tuple(sizes)
