"""Guards inside unrolled loops, rounded up to whole groups: the surplus works on padding.

`for v: for u < 4 (unrolled): if (4*v + u < n)` becomes `for v: if (4*v < n): for u < 4`, so the
unrolled body has neither branches nor a rest. It is done only where the surplus iterations can't
change a result:

- they store to elements of a tasklet's own buffer that no valid iteration of that buffer touches,
or - they add zero to a sum, because an operand was read from beyond the tensor, where the host put
zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.access import Access, accesses, children, loops_of_life, uses
from atim.codegen.affine import Affine, Ranges, affine, below_zero, less, scales
from atim.codegen.copies import in_mram, match_copy
from atim.codegen.kernel_func import (
    Tiles,
    body_of,
    external_name,
    grid_of,
    has_load,
    ranges_of,
    with_kernel_body,
)
from atim.codegen.split import PRODUCTS, conjunction, conjuncts, guarded, with_body
from atim.target import SCOPE_SHARED


def round_guards(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """Apply the rule above to every guard directly inside unrolled loops."""
    facts = _Facts(func, tiles)
    return with_kernel_body(func, _round(body_of(func), facts))


def _round(stmt: Stmt, facts: _Facts) -> Stmt:
    if isinstance(stmt, For):
        if match_copy(stmt) is not None:
            return stmt
        return _group(stmt, facts) if stmt.kind == ForKind.UNROLLED else _inside(stmt, facts)
    if isinstance(stmt, SeqStmt):
        return SeqStmt([_round(s, facts) for s in stmt.seq])
    if isinstance(stmt, IfThenElse) and stmt.else_case is None:
        result = guarded(stmt.condition, _round(stmt.then_case, facts))
        assert result is not None
        return result
    return stmt


def _inside(loop: For, facts: _Facts) -> Stmt:
    return with_body(loop, _round(loop.body, facts))


def _group(outermost: For, facts: _Facts) -> Stmt:
    """A nest of unrolled loops around one guarded statement: guards that no longer depend on the
    nest move in front of it."""
    loops = [outermost]
    while isinstance(loops[-1].body, For) and loops[-1].body.kind == ForKind.UNROLLED:
        loops.append(loops[-1].body)
    guard = loops[-1].body
    if not isinstance(guard, IfThenElse) or guard.else_case is not None:
        return _inside(outermost, facts)
    parts = [_rounded(c, loops, guard.then_case, facts) for c in conjuncts(guard.condition)]
    own = {loop.loop_var for loop in loops}
    free = [c for c in parts if not uses(c, own) and not has_load(c)]
    bound = [c for c in parts if not any(c.same_as(f) for f in free)]
    body = guarded(conjunction(bound), guard.then_case)
    for loop in reversed(loops):
        assert body is not None
        body = with_body(loop, body)
    result = guarded(conjunction(free), body)
    assert result is not None
    return result


def _rounded(guard: ir.Expr, unrolled: Sequence[For], body: Stmt, facts: _Facts) -> ir.Expr:
    """The guard without the unrolled variables, or the guard itself where that isn't safe."""
    form = below_zero(guard, facts.ranges)
    loops = [p for p in unrolled if form is not None and form.coefficient(p.loop_var)]
    if form is None or not loops or not facts.surplus_is_harmless(form, body):
        return guard
    for loop in loops:
        c = form.coefficient(loop.loop_var)
        low, high = facts.ranges[loop.loop_var]
        form = form - form.only([loop.loop_var]) + min(c * low, c * high)
    return less(form)


@dataclass(frozen=True, slots=True)
class _Filling:
    """A WRAM buffer is filled by one unguarded copy: MRAM indices minus WRAM indices, where
    constant within the copy. `shift[a]` is (WRAM axis, difference) or None; `filled` the elements
    along each WRAM axis."""

    mram: tirx.Var
    filled: tuple[int, ...]
    shift: tuple[tuple[int, Affine] | None, ...]


class _Facts:
    """What is known of the whole kernel while its guards are rounded."""

    def __init__(self, func: tirx.PrimFunc, tiles: Tiles) -> None:
        self.tiles = tiles
        self.ranges: Ranges = ranges_of(func)
        self.grid = list(grid_of(func))
        self.body = body_of(func)
        self.found: dict[tirx.Var, list[Access]] = {}
        for access in accesses(self.body, self.ranges):
            self.found.setdefault(access.buffer, []).append(access)
        self.fillings: dict[tirx.Var, _Filling] = {}
        self._find_fillings(self.body)

    def surplus_is_harmless(self, form: Affine, body: Stmt) -> bool:
        """Running the body where form >= 0 changes nothing that counts."""
        if isinstance(body, SeqStmt):
            return all(self.surplus_is_harmless(form, s) for s in body.seq)
        if not isinstance(body, tirx.BufferStore) or in_mram(body.buffer):
            return False
        if body.buffer.scope() == SCOPE_SHARED or not self._can_run(body):
            return False
        return self._own_element(form, body) or self._adds_zero(form, body)

    def _can_run(self, store: tirx.BufferStore) -> bool:
        """In range and without faults whatever the data: no division, no access to MRAM."""
        for access in accesses(store, self.ranges):
            if in_mram(access.buffer):
                return False
            for index, size in zip(access.indices, access.buffer.shape, strict=True):
                bounds = index.bounds(self.ranges) if index is not None else None
                if bounds is None or bounds[0] < 0 or bounds[1] >= int(size):
                    return False
        return not _divides(store.value)

    def _own_element(self, form: Affine, store: tirx.BufferStore) -> bool:
        """Which iterations are valid is decided by the element stored, for the buffer's whole life,
        and every other store to the buffer has the same guard."""
        found = self.found[store.buffer]
        if not found[0].store:
            return False
        inside = loops_of_life(self.body, store.buffer)
        for axis, index in enumerate(store.indices):
            linear = affine(index, self.ranges)
            if linear is None:
                continue
            for k in scales(form, linear):
                outer = form - linear * k
                if not outer.uses(inside) and all(
                    _same_guard(a, axis, k, outer) for a in found if a.store
                ):
                    return True
        return False

    def _adds_zero(self, form: Affine, store: tirx.BufferStore) -> bool:
        """store is S[i] = S[i] + e with e = 0 where form >= 0."""
        value = store.value
        if not isinstance(value, tirx.Add) or not isinstance(value.a, ir.TensorLoad):
            return False
        same = value.a.source.same_as(store.buffer) and all(
            tvm_ffi.structural_equal(a, b)
            for a, b in zip(value.a.indices, store.indices, strict=True)
        )
        return same and self._is_zero(value.b, form)

    def _is_zero(self, expr: ir.Expr, form: Affine) -> bool:
        if isinstance(expr, tirx.Cast):
            return self._is_zero(expr.value, form)
        factors = _factors(expr)
        if factors:
            zeros = [self._is_zero(factor, form) for factor in factors]
            # inf * 0 is not 0: both factors must be zero unless they are integers
            return all(zeros) if "float" in str(expr.ty) else any(zeros)
        return isinstance(expr, ir.TensorLoad) and self._beyond_tensor(expr, form)

    def _beyond_tensor(self, load: ir.TensorLoad, form: Affine) -> bool:
        """Where form >= 0 the loaded element was read from outside of the tensor or of its tile."""
        filling = self.fillings.get(load.source)
        if filling is None:
            return False
        tile = self.tiles[str(filling.mram.name)]
        reach = [self._last(index) for index in load.indices]
        if tile.mode != "in" or any(
            r is None or r >= n for r, n in zip(reach, filling.filled, strict=True)
        ):
            return False
        for axis, shift in enumerate(filling.shift):
            if shift is None:
                continue
            index = affine(load.indices[shift[0]], self.ranges)
            if index is None:
                continue
            local = index + shift[1]
            moves = dict(zip(self.grid, tile.offset_coeffs[axis], strict=True))
            offset = Affine({v: c for v, c in moves.items() if c}, tile.offset_base[axis])
            for excess in (local + offset - tile.host_shape[axis], local - tile.extent[axis]):
                for k in scales(excess, form):
                    bounds = (excess - form * k).bounds(self.ranges)
                    if bounds is not None and bounds[0] >= 0:
                        return True
        return False

    def _last(self, index: ir.Expr) -> int | None:
        """Highest value of an index."""
        linear = affine(index, self.ranges)
        bounds = linear.bounds(self.ranges) if linear is not None else None
        return None if bounds is None else bounds[1]

    def _find_fillings(self, stmt: Stmt) -> None:
        copy = match_copy(stmt)
        if copy is not None:
            stores = [a for a in self.found[copy.store.buffer] if a.store]
            if copy.reads_mram and not copy.guards and len(stores) == 1:
                moving = [p.loop_var for p in copy.loops]
                self.fillings[copy.store.buffer] = self._filling(copy.load, copy.store, moving)
        elif isinstance(stmt, For):
            self._find_fillings(stmt.body)
        elif isinstance(stmt, SeqStmt):
            for part in stmt.seq:
                self._find_fillings(part)

    def _filling(
        self, load: ir.TensorLoad, store: tirx.BufferStore, moving: Sequence[tirx.Var]
    ) -> _Filling:
        shifts: list[tuple[int, Affine] | None] = []
        for index in load.indices:
            source = affine(index, self.ranges)
            found = None
            for axis, target in enumerate(store.indices):
                linear = affine(target, self.ranges)
                if source is not None and linear is not None and linear.terms:
                    difference = source - linear
                    if not difference.uses(moving) and source.uses(moving):
                        found = (axis, difference)
            shifts.append(found)
        filled = [last + 1 if (last := self._last(i)) is not None else 0 for i in store.indices]
        return _Filling(load.source, tuple(filled), tuple(shifts))


def _same_guard(access: Access, axis: int, k: int, outer: Affine) -> bool:
    """One of the access's guards is k * index + outer < 0."""
    index = access.indices[axis]
    return index is not None and any(g - index * k == outer for g in access.guards)


def _factors(expr: ir.Expr) -> list[ir.Expr]:
    """Of a product, in whatever form; [] of anything else."""
    if isinstance(expr, tirx.Mul):
        return [expr.a, expr.b]
    if isinstance(expr, ir.Call) and external_name(expr) in PRODUCTS:
        return list(expr.args[1:])
    return []


def _divides(expr: ir.Expr) -> bool:
    if isinstance(expr, (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)) and "int" in str(
        expr.ty
    ):
        return True
    return any(_divides(child) for child in children(expr))
