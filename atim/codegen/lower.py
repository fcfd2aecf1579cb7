"""Kernel form -> what C says directly: registers, initialisations out of their loops, tasklets,
barriers."""

from __future__ import annotations

from dataclasses import dataclass

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.access import uses
from atim.codegen.affine import Affine, Ranges, below_zero
from atim.codegen.copies import READ, WRITE, in_mram
from atim.codegen.kernel_func import (
    Tiles,
    body_of,
    external_name,
    has_load,
    ranges_of,
    rewrite,
    with_kernel_body,
)
from atim.codegen.split import (
    conjunction,
    conjuncts,
    guarded,
    sequence,
    substitute,
    thread_extents,
    thread_tag,
    with_body,
)
from atim.errors import ScheduleError
from atim.target import SCOPE_SHARED

BARRIER = "barrier_wait"


def lift_inits(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """`for v: if (v == 0) init; rest` -> `init; for v: rest`, also under guards that v doesn't
    change."""
    return with_kernel_body(func, lift(body_of(func)))


def lift(body: Stmt) -> Stmt:
    """`lift_inits` on a statement."""

    def change(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, For) or stmt.kind == ForKind.THREAD_BINDING:
            return stmt
        found = _first_only(stmt.body, stmt.loop_var)
        if found is None or not isinstance(stmt.extent, tirx.IntImm):
            return stmt
        init, rest = found
        first = substitute(init, {stmt.loop_var: stmt.min})
        return sequence([first, with_body(stmt, rest)])

    return rewrite(body, change)


def _first_only(body: Stmt, var: tirx.Var) -> tuple[Stmt, Stmt] | None:
    """(what runs in the first iteration only, what runs in all) if the body begins that way."""
    if isinstance(body, IfThenElse) and body.else_case is None and not uses(body.condition, {var}):
        inner = _first_only(body.then_case, var)
        if inner is None:
            return None
        init, rest = (guarded(body.condition, part) for part in inner)
        return None if init is None or rest is None else (init, rest)
    if not isinstance(body, SeqStmt) or not isinstance(body.seq[0], IfThenElse):
        return None
    head = body.seq[0]
    if head.else_case is not None:
        return None
    parts = conjuncts(head.condition)
    first = [c for c in parts if _is_zero_test(c, var)]
    if not first:
        return None
    others = [c for c in parts if not any(c.same_as(f) for f in first)]
    init, rest = guarded(conjunction(others), head.then_case), sequence(list(body.seq)[1:])
    return None if init is None or rest is None else (init, rest)


def _is_zero_test(condition: ir.Expr, var: tirx.Var) -> bool:
    return (
        isinstance(condition, tirx.EQ)
        and condition.a.same_as(var)
        and isinstance(condition.b, tirx.IntImm)
        and int(condition.b) == 0
    )


def drop_repeated_guards(func: tirx.PrimFunc, tiles: Tiles) -> tirx.PrimFunc:
    """Conditions go that always hold, or that an `if` further out implies."""
    return with_kernel_body(func, _without(body_of(func), [], ranges_of(func)))


def _without(stmt: Stmt, known: list[ir.Expr], ranges: Ranges) -> Stmt:
    """The statement where the conditions `known` hold."""
    if isinstance(stmt, For):
        return with_body(stmt, _without(stmt.body, known, ranges))
    if isinstance(stmt, SeqStmt):
        parts = sequence([_without(part, known, ranges) for part in _gathered(stmt)])
        assert parts is not None
        return parts
    if not isinstance(stmt, IfThenElse):
        return stmt
    asked = conjuncts(stmt.condition)
    asked = [c for c in asked if not any(_implied(c, k, ranges) for k in (None, *known))]
    held = [c for c in asked if not has_load(c)]
    then = _without(stmt.then_case, [*known, *held], ranges)
    other = None if stmt.else_case is None else _without(stmt.else_case, known, ranges)
    result = guarded(conjunction(asked), then, other if asked else None)
    assert result is not None
    return result


def _gathered(stmt: SeqStmt) -> list[Stmt]:
    """The parts, where `if (a) x; if (a && b) y` is written `if (a) { x; if (b) y }`."""
    parts: list[Stmt] = []
    for part in stmt.seq:
        both = _under_one(parts[-1], part) if parts else None
        parts = [*parts, part] if both is None else [*parts[:-1], both]
    return parts


def _under_one(first: Stmt, second: Stmt) -> Stmt | None:
    """Two `if`s of one tasklet, where all conditions of one are among the other's, as one."""
    pair = (first, second)
    if not all(isinstance(s, IfThenElse) and s.else_case is None for s in pair):
        return None
    if any(has_load(s.condition) or thread_extents(s, "threadIdx") for s in pair):
        return None
    asked = [conjuncts(s.condition) for s in pair]
    shared = [c for c in asked[0] if any(tvm_ffi.structural_equal(c, d) for d in asked[1])]
    if len(shared) < min(map(len, asked)):
        return None
    rest = []
    for own, part in zip(asked, pair, strict=True):
        further = [c for c in own if not any(tvm_ffi.structural_equal(c, d) for d in shared)]
        rest.append(guarded(conjunction(further), part.then_case))
    return guarded(conjunction(shared), sequence(rest))


def _implied(condition: ir.Expr, known: ir.Expr | None, ranges: Ranges) -> bool:
    """The condition is the known one, or weaker; None: it holds anyway."""
    wanted = below_zero(condition, ranges)
    given = Affine({}, -1) if known is None else below_zero(known, ranges)
    if wanted is None or given is None:
        return known is not None and bool(tvm_ffi.structural_equal(condition, known))
    bounds = (wanted - given).bounds(ranges)
    return bounds is not None and bounds[1] <= 0


# tasklets ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """A kernel body that every tasklet runs from beginning to end. `tasklet` is its number's
    variable, `barriers` says if they ever wait for each other."""

    func: tirx.PrimFunc
    tasklet: tirx.Var
    nr_tasklets: int
    barriers: bool


def spread_tasklets(func: tirx.PrimFunc, limit: int) -> Spread:
    """Thread loops become the tasklet's own number; what lies outside of them runs on tasklet 0; a
    barrier stands between parts that depend on each other through shared memory, and only there.

    Raises `ScheduleError` when more than `limit` tasklets are asked for.
    """
    body = body_of(func)
    extents = thread_extents(body, "threadIdx")
    if thread_extents(body, "vthread"):
        raise ScheduleError("tasklets: virtual threads can't be placed on a DPU")
    order = _nesting(body, extents)
    count = 1
    for tag in order:
        count *= extents[tag]
    if count > limit:
        raise ScheduleError(f"tasklets: {count} bound, limit {limit}")
    worker = _Spreader(tirx.Var("tasklet", "int32"), order, extents, count)
    new = worker.uniform(body)
    return Spread(with_kernel_body(func, new), worker.tasklet, count, worker.barriers)


def _nesting(body: Stmt, extents: dict[str, int]) -> list[str]:
    """Thread tags from outside to inside, in the order of their first appearance."""
    tags: list[str] = []

    def visit(loop: For) -> None:
        tag = thread_tag(loop)
        if tag in extents and tag not in tags:
            tags.append(tag)

    tvm_ffi.structural_walk(body, [(For, visit)], order="pre")
    return tags


@dataclass(slots=True)
class _Part:
    """A statement of the DPU's program: who runs it, and the shared buffers it reads and writes."""

    stmt: Stmt
    alone: bool
    reads: set[tirx.Var]
    writes: set[tirx.Var]

    def conflicts(self, later: _Part) -> bool:
        if self.alone and later.alone:
            return False
        return bool(self.writes & (later.reads | later.writes) or self.reads & later.writes)

    def then(self, later: _Part) -> _Part:
        """Both, one after the other, as one part."""
        stmt = sequence([self.stmt, later.stmt])
        assert stmt is not None
        return _Part(stmt, self.alone, self.reads | later.reads, self.writes | later.writes)


class _Spreader:
    def __init__(
        self, tasklet: tirx.Var, order: list[str], extents: dict[str, int], count: int
    ) -> None:
        self.tasklet, self.order, self.extents, self.count = tasklet, order, extents, count
        self.barriers = False

    def uniform(self, stmt: Stmt) -> Stmt:
        """A statement that all tasklets reach together."""
        parts = self._parts(stmt)
        result = sequence([p.stmt for p in self._separated(parts)])
        assert result is not None
        return result

    def _parts(self, stmt: Stmt) -> list[_Part]:
        """The statement as parts, each run by all tasklets or by tasklet 0 alone."""
        if isinstance(stmt, SeqStmt):
            return [part for s in stmt.seq for part in self._parts(s)]
        reads, writes = _shared_buffers(stmt)
        if not thread_extents(stmt, "threadIdx") and self.count > 1:
            return [_Part(stmt, True, reads, writes)]
        if isinstance(stmt, For) and not thread_tag(stmt) and thread_extents(stmt, "threadIdx"):
            return [_Part(self._loop(stmt), False, reads, writes)]
        if isinstance(stmt, IfThenElse) and thread_extents(stmt, "threadIdx"):
            other = None if stmt.else_case is None else self.uniform(stmt.else_case)
            new = IfThenElse(stmt.condition, self.uniform(stmt.then_case), other)
            return [_Part(new, False, reads, writes)]
        return [_Part(self._thread(stmt), False, reads, writes)]

    def _loop(self, loop: For) -> Stmt:
        """A loop around thread loops: the end of an iteration may meet the start of the next."""
        parts = self._separated(self._parts(loop.body))
        last = max((i for i, p in enumerate(parts) if _is_barrier(p.stmt)), default=-1)
        tail = [p for p in parts[last + 1 :]]
        head = parts[: next((i for i, p in enumerate(parts) if _is_barrier(p.stmt)), len(parts))]
        if any(t.conflicts(h) for t in tail for h in head if t is not h or not t.alone):
            parts.append(self._barrier())
        body = sequence([p.stmt for p in parts])
        assert body is not None
        return with_body(loop, body)

    def _separated(self, parts: list[_Part]) -> list[_Part]:
        """Barriers where needed, as early as possible; neighbours that tasklet 0 runs alone share
        one `if`."""
        result: list[_Part] = []
        for part in parts:
            for at in range(len(result) - 1, -1, -1):
                if _is_barrier(result[at].stmt):
                    break
                if result[at].conflicts(part):
                    result.insert(at + 1, self._barrier())
                    break
            result.append(part)
        merged: list[_Part] = []
        for part in result:
            if merged and merged[-1].alone and part.alone:
                merged[-1] = merged[-1].then(part)
            else:
                merged.append(part)
        return [self._enclosed(p) for p in merged]

    def _enclosed(self, part: _Part) -> _Part:
        """The part of tasklet 0 under its condition."""
        if not part.alone or _is_barrier(part.stmt):
            return part
        condition = tirx.EQ(self.tasklet, tirx.IntImm("int32", 0))
        return _Part(IfThenElse(condition, part.stmt, None), True, part.reads, part.writes)

    def _barrier(self) -> _Part:
        self.barriers = True
        wait = tirx.Evaluate(tirx.call_extern("void", BARRIER))
        return _Part(wait, False, set(), set())

    def _thread(self, stmt: Stmt) -> Stmt:
        """Replace thread loops by the tasklet's share of them."""

        def change(loop: For, mutator: tvm_ffi.StructuralMutator) -> Stmt:
            tag = thread_tag(loop)
            if not tag:
                return mutator.default_mutate(loop)
            body = substitute(mutator.mutate(loop.body), {loop.loop_var: self._index(tag)})
            if int(loop.extent) < self.extents[tag]:
                few = tirx.LT(self._index(tag), loop.extent)
                return IfThenElse(few, body, None)
            return body

        return tvm_ffi.structural_mutate(stmt, [(For, change)])

    def _index(self, tag: str) -> ir.Expr:
        """The tasklet's position along one thread axis, the last axis changing fastest."""
        inner = 1
        for other in self.order[self.order.index(tag) + 1 :]:
            inner *= self.extents[other]
        index: ir.Expr = self.tasklet
        if inner > 1:
            index = tirx.floordiv(index, tirx.IntImm("int32", inner))
        if self.order.index(tag) > 0:
            index = tirx.floormod(index, tirx.IntImm("int32", self.extents[tag]))
        return index


def _is_barrier(stmt: Stmt) -> bool:
    return (
        isinstance(stmt, tirx.Evaluate)
        and isinstance(stmt.value, ir.Call)
        and external_name(stmt.value) == BARRIER
    )


def _shared_buffers(stmt: Stmt) -> tuple[set[tirx.Var], set[tirx.Var]]:
    """Buffers of the whole DPU (MRAM tiles, shared WRAM) that the statement (reads, writes)."""
    reads: set[tirx.Var] = set()
    writes: set[tirx.Var] = set()

    def shared(buffer: tirx.Var) -> bool:
        return in_mram(buffer) or str(buffer.scope()) == SCOPE_SHARED

    def call(node: ir.Call, visitor: tvm_ffi.StructuralVisitor) -> None:
        name = external_name(node)
        if name not in (READ, WRITE):
            visitor.default_visit(node)
            return
        source, target = node.args[1].args[0], node.args[3].args[0]
        reads.update(b for b in (source.source,) if shared(b))
        writes.update(b for b in (target.source,) if shared(b))

    def load(node: ir.TensorLoad, visitor: tvm_ffi.StructuralVisitor) -> None:
        if shared(node.source):
            reads.add(node.source)
        visitor.default_visit(node)

    def store(node: tirx.BufferStore, visitor: tvm_ffi.StructuralVisitor) -> None:
        if shared(node.buffer):
            writes.add(node.buffer)
        visitor.visit(node.value)

    rows = [(ir.Call, call), (ir.TensorLoad, load), (tirx.BufferStore, store)]
    tvm_ffi.structural_visit(stmt, rows)
    return reads, writes
