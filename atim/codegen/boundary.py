"""Boundary passes: what tiles that don't divide cost, taken out of the inner loops (ATiM, ISCA
2025, 5.3).

    level 1  DMA-aware check removal: a copy without its guards becomes bulk DMA, over-reading
             padding
    level 2  loop-bound tightening: `for v < n: if (v < m)` -> `for v < min(n, m)`
    level 3  hoisting: guards that don't depend on a loop leave it, equal neighbours join
    level 4  partial dead-code removal: reads that only feed a guarded statement move under it
    level 5  guards are rounded up to whole unrolled groups where the surplus is harmless
             (padding.py); pipeline.py also moves sums from WRAM to registers from here on

Levels are cumulative; `BOUNDARY_PASSES` is in order of execution. Each pass takes and returns the
kernel form of kernel_func.py and leaves it unchanged when nothing matches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.access import accesses, loosened, uses
from atim.codegen.affine import (
    Affine,
    Ranges,
    affine,
    below_zero,
    less,
    lower_bound,
    scales,
    upper_bound,
)
from atim.codegen.copies import READ, Copy, match_copy, rewrite_nests, to_dma
from atim.codegen.kernel_func import (
    KernelPass,
    Tiles,
    body_of,
    external_name,
    grid_of,
    has_load,
    ranges_of,
    rewrite,
    with_kernel_body,
)
from atim.codegen.padding import round_guards
from atim.codegen.split import conjunction, conjuncts, guarded, sequence, with_body
from atim.target import SCOPE_REGISTERS, SCOPE_TASKLET


@dataclass(frozen=True, slots=True)
class BoundaryPass:
    """A pass and the lowest level at which it runs."""

    level: int
    run: KernelPass


# level 1 -----------------------------------------------------------------------------------------


def remove_copy_checks(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """Drop the guards of copies where what lies behind them is padding.

    A read may run over its guard if both arrays are long enough and nothing else writes its target;
    a write only if all it adds lies outside of the tensor, where the host drops it. Other guards
    limit the length of the copy or stand before it.
    """
    body, ranges = body_of(func), ranges_of(func)
    writers = Counter(a.buffer for a in accesses(body, {}) if a.store)
    grid = list(grid_of(func))

    def change(stmt: Stmt) -> Stmt:
        copy = match_copy(stmt)
        if copy is None or not copy.guards:
            return stmt
        forms = [(guard, below_zero(guard, ranges)) for guard in copy.guards]
        some = [_some(copy, form, ranges) for _, form in forms if form is not None]
        fits, always_fits = _in_range(copy, some, ranges), _in_range(copy, [], ranges)
        kept: list[tuple[ir.Expr, Affine | None]] = []
        for guard, form in forms:
            if form is None or not fits:
                kept.append((guard, form))
            elif copy.reads_mram and writers[copy.store.buffer] == 1:
                # for the copy as a whole, a guard may still keep it in range
                kept += [] if always_fits else _guard(_some(copy, form, ranges), ranges)
            elif not copy.reads_mram and _beyond_tensor(copy, form, tiles, grid, ranges):
                # tiles wholly outside of the tensor need not be written
                kept += _guard(_some(copy, form, ranges), ranges)
            else:
                kept.append((guard, form))
        return _rebuild(copy, kept, ranges)

    return with_kernel_body(func, rewrite_nests(body, change))


def _some(copy: Copy, form: Affine, ranges: Ranges) -> Affine:
    """The form for the copy as a whole: negative if form < 0 for any element."""
    return loosened(form, [loop.loop_var for loop in copy.loops], ranges)


def _guard(form: Affine, ranges: Ranges) -> list[tuple[ir.Expr, Affine | None]]:
    """`form < 0` as a guard, nothing if it always holds."""
    bounds = form.bounds(ranges)
    return [] if bounds is not None and bounds[1] < 0 else [(less(form), form)]


def _in_range(copy: Copy, guards: list[Affine], ranges: Ranges) -> bool:
    """Every element that the loops name exists on both sides, given the guards."""
    sides = ((copy.load.source, copy.load.indices), (copy.store.buffer, copy.store.indices))
    for buffer, indices in sides:
        for index, size in zip(indices, buffer.shape, strict=True):
            linear = affine(index, ranges)
            if linear is None:
                return False
            low, high = lower_bound(linear, guards, ranges), upper_bound(linear, guards, ranges)
            if low is None or high is None or low < 0 or high >= int(size):
                return False
    return True


def _beyond_tensor(
    copy: Copy, form: Affine, tiles: Tiles, grid: list[tirx.Var], ranges: Ranges
) -> bool:
    """What the write adds without the guard `form < 0` lies outside of the tensor."""
    tile = tiles[str(copy.store.buffer.name)]
    for axis, index in enumerate(copy.store.indices):
        linear = affine(index, ranges)
        assert linear is not None
        offset = dict(zip(grid, tile.offset_coeffs[axis], strict=True))
        moved = Affine({v: c for v, c in offset.items() if c}, tile.offset_base[axis])
        if _implies(form, linear + moved - tile.host_shape[axis], ranges):
            return True
    return False


def _implies(form: Affine, excess: Affine, ranges: Ranges) -> bool:
    """Wherever form >= 0, excess >= 0 too."""
    for k in scales(excess, form):
        bounds = (excess - form * k).bounds(ranges)
        if bounds is not None and bounds[0] >= 0:
            return True
    return False


def _rebuild(copy: Copy, kept: list[tuple[ir.Expr, Affine | None]], ranges: Ranges) -> Stmt:
    """The copy's loops with the guards that stayed, each as far out as its variables allow: as the
    extent of the innermost loop it depends on, else as an `if`."""
    result: Stmt = copy.store
    left = list(kept)
    for loop in reversed(copy.loops):
        mine = [(g, f) for g, f in left if uses(g, {loop.loop_var})]
        left = [pair for pair in left if not any(pair[0].same_as(g) for g, _ in mine)]
        limits = [_limit(loop, f) if f is not None else None for _, f in mine]
        inside = [g for (g, _), limit in zip(mine, limits, strict=True) if limit is None]
        body = guarded(conjunction(inside), result)
        assert body is not None
        result = with_body(loop, body, _least(loop.extent, [n for n in limits if n is not None]))
    final = guarded(conjunction([g for g, _ in left]), result)
    assert final is not None
    return final


def inject_dma(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """Every copy nest between MRAM and WRAM -> DMA calls. Raises `ScheduleError` for one that can't
    be."""
    body, ranges = body_of(func), ranges_of(func)
    writers = Counter(a.buffer for a in accesses(body, {}) if a.store)

    def convert(stmt: Stmt) -> Stmt:
        copy = match_copy(stmt)
        if copy is None:
            return stmt
        if isinstance(stmt, IfThenElse) and not any(
            uses(c, {p.loop_var for p in copy.loops}) for c in conjuncts(stmt.condition)
        ):
            return IfThenElse(stmt.condition, convert(stmt.then_case), None)
        return to_dma(copy, ranges, sole=writers[copy.store.buffer] == 1)

    return with_kernel_body(func, rewrite_nests(body, convert))


# level 2 -----------------------------------------------------------------------------------------


def _limit(loop: For, form: Affine) -> ir.Expr | None:
    """The extent with which form < 0 holds in all iterations, and not in the first one left out."""
    step = form.coefficient(loop.loop_var)
    if step <= 0:
        return None
    rest = form.only([loop.loop_var]) - form
    rest = rest + (step - 1)
    if all(c % step == 0 for c in rest.terms.values()):
        whole = {v: c // step for v, c in rest.terms.items()}
        return Affine(whole, rest.const // step).expr()
    return tirx.FloorDiv(rest.expr(), tirx.IntImm("int32", step))


def _least(extent: ir.Expr, limits: list[ir.Expr]) -> ir.Expr:
    for limit in limits:
        known = isinstance(extent, tirx.IntImm) and isinstance(limit, tirx.IntImm)
        lower = extent if known and int(extent) <= int(limit) else limit
        extent = lower if known else tirx.Min(extent, limit)
    return extent


def tighten_loops(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """Guards on a loop's own variable become its extent; so does the extent of a loop directly
    inside that may be empty. Loops over registers keep constant extents."""
    ranges = ranges_of(func)

    def change(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, For) or stmt.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            return stmt
        if indexes_registers(stmt):
            return stmt
        guards: list[ir.Expr] = []
        inner = stmt.body
        if isinstance(inner, IfThenElse) and inner.else_case is None:
            guards, inner = conjuncts(inner.condition), inner.then_case
        limits, left = [], []
        for guard in guards:
            form = below_zero(guard, ranges)
            limit = None if form is None else _limit(stmt, form)
            if limit is None:
                left.append(guard)
            else:
                limits.append(limit)
        if isinstance(inner, For):
            limits += [_limit(stmt, f) for f in _empty_forms(inner.extent, ranges)]
        limits = [limit for limit in limits if limit is not None]
        if not limits:
            return stmt
        body = guarded(conjunction(left), inner)
        assert body is not None
        return with_body(stmt, body, _least(stmt.extent, limits))

    return with_kernel_body(func, rewrite(body_of(func), change))


def _empty_forms(extent: ir.Expr, ranges: Ranges) -> list[Affine]:
    """Forms that are negative while the extent is positive."""
    if isinstance(extent, tirx.Min):
        return _empty_forms(extent.a, ranges) + _empty_forms(extent.b, ranges)
    linear = affine(extent, ranges)
    return [linear * -1] if linear is not None and linear.terms else []


def indexes_registers(loop: For) -> bool:
    """The loop's variable selects an element of a register buffer."""
    return any(
        a.buffer.scope() == SCOPE_REGISTERS
        and any(i is None or i.uses([loop.loop_var]) for i in a.indices)
        for a in accesses(loop.body, {})
    )


# level 3 -----------------------------------------------------------------------------------------


def hoist_branches(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """Guards that a loop doesn't change leave the loop; neighbours under the same guard share one
    `if`."""
    return with_kernel_body(func, hoist(body_of(func)))


def hoist(body: Stmt) -> Stmt:
    """`hoist_branches` on a statement."""

    def change(stmt: Stmt) -> Stmt | None:
        if isinstance(stmt, For) and stmt.kind != ForKind.THREAD_BINDING:
            return _hoist_loop(stmt)
        return _join(stmt) if isinstance(stmt, SeqStmt) else stmt

    return rewrite(body, change)


def _hoist_loop(loop: For) -> Stmt | None:
    guard = loop.body
    if not isinstance(guard, IfThenElse) or guard.else_case is not None:
        return loop
    parts = conjuncts(guard.condition)
    free = [c for c in parts if not uses(c, {loop.loop_var}) and not has_load(c)]
    if not free:
        return loop
    bound = [c for c in parts if not any(c.same_as(f) for f in free)]
    body = guarded(conjunction(bound), guard.then_case)
    assert body is not None
    return guarded(conjunction(free), with_body(loop, body))


def _join(stmt: SeqStmt) -> Stmt | None:
    joined: list[Stmt] = []
    for part in stmt.seq:
        last = joined[-1] if joined else None
        if (
            isinstance(part, IfThenElse)
            and isinstance(last, IfThenElse)
            and part.else_case is None
            and last.else_case is None
            and not has_load(part.condition)
            and tvm_ffi.structural_equal(part.condition, last.condition)
        ):
            both = sequence([last.then_case, part.then_case])
            joined[-1] = IfThenElse(part.condition, both, None)
        else:
            joined.append(part)
    return stmt if len(joined) == len(stmt.seq) else sequence(joined)


# level 4 -----------------------------------------------------------------------------------------


def sink_reads(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """Reads that only a guarded statement uses move under its guard, and the guard then leaves the
    loop."""
    body = body_of(func)
    while True:
        total = _touches(body)
        changed = False

        def change(stmt: Stmt, total: Counter[tirx.Var] = total) -> Stmt | None:
            nonlocal changed
            if not isinstance(stmt, SeqStmt):
                return stmt
            moved = _sink(stmt, total)
            changed = changed or moved is not stmt
            return moved

        body = rewrite(body, change)
        if not changed:
            return with_kernel_body(func, body)
        body = hoist(body)


def _sink(stmt: SeqStmt, total: Counter[tirx.Var]) -> Stmt | None:
    parts = list(stmt.seq)
    for at, part in enumerate(parts):
        if (
            not isinstance(part, IfThenElse)
            or part.else_case is not None
            or has_load(part.condition)
        ):
            continue
        inside = _touches(part)
        first = at
        while first > 0 and (target := _read_target(parts[first - 1])) is not None:
            reads = _touches(parts[first - 1])[target]
            # another tasklet may need what this one reads into a shared buffer
            if total[target] != inside[target] + reads or target.scope() != SCOPE_TASKLET:
                break
            first -= 1
        if first < at:
            body = sequence([*parts[first:at], part.then_case])
            assert body is not None
            return sequence(
                [*parts[:first], IfThenElse(part.condition, body, None), *parts[at + 1 :]]
            )
    return stmt


def _read_target(stmt: Stmt) -> tirx.Var | None:
    """The WRAM buffer that a DMA read (in loops, under a length check) fills."""
    while isinstance(stmt, For) or (isinstance(stmt, IfThenElse) and stmt.else_case is None):
        stmt = stmt.body if isinstance(stmt, For) else stmt.then_case
    if isinstance(stmt, SeqStmt):
        targets = {_read_target(s) for s in stmt.seq}
        return targets.pop() if len(targets) == 1 else None
    call = stmt.value if isinstance(stmt, tirx.Evaluate) else None
    if not isinstance(call, ir.Call) or external_name(call) != READ:
        return None
    return call.args[3].args[0].source


def _touches(stmt: Stmt) -> Counter[tirx.Var]:
    """How often each buffer occurs."""
    return Counter(a.buffer for a in accesses(stmt, {}))


BOUNDARY_PASSES = (
    BoundaryPass(1, remove_copy_checks),
    BoundaryPass(5, round_guards),
    BoundaryPass(1, inject_dma),
    BoundaryPass(2, tighten_loops),
    BoundaryPass(3, hoist_branches),
    BoundaryPass(4, sink_reads),
)
