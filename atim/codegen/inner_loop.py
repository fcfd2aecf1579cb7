"""Inner loops that sum up products in registers: recognised, taken apart, put together again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, Stmt

from atim.codegen.access import storage, uses
from atim.codegen.affine import Ranges, affine
from atim.codegen.copies import item_bytes
from atim.codegen.kernel_func import external_name, has_load
from atim.codegen.split import substitute, with_body
from atim.products import widened
from atim.target import DMA_ALIGN_BYTES, SCOPE_REGISTERS

__all__ = ["Loop", "Words", "match_loop", "moved", "occurs", "side_by_side", "words_of"]


@dataclass(frozen=True, slots=True)
class Loop:
    """`outer` loops and guards around `unrolled` loops around `store`, nothing beside them. The
    store is S[..] = S[..] + mark(left, right) with S in registers."""

    outer: tuple[For | IfThenElse, ...]
    unrolled: tuple[For, ...]
    store: tirx.BufferStore

    @property
    def mark(self) -> str:
        return external_name(self.store.value.b)

    @property
    def factors(self) -> list[ir.Expr]:
        return list(self.store.value.b.args[1:])

    @property
    def place(self) -> list[ir.Expr]:
        """Indices of the sum."""
        return list(self.store.indices)

    @property
    def lanes(self) -> tuple[For, ...]:
        """The unrolled loops that select a sum."""
        return tuple(p for p in self.unrolled if occurs(self.place, p.loop_var))

    def around(self, body: Stmt, unrolled: Sequence[For]) -> Stmt:
        """The same loops around another body, the unrolled ones replaced."""
        for loop in reversed(unrolled):
            body = with_body(loop, body)
        for outer in reversed(self.outer):
            if isinstance(outer, For):
                body = with_body(outer, body)
            else:
                body = IfThenElse(outer.condition, body, None)
        return body

    def each(self, body: Stmt) -> Stmt:
        """The body for every sum, in unrolled loops of their own."""
        values: dict[tirx.Var, ir.Expr] = {}
        loops = []
        for lane in self.lanes:
            var = tirx.Var(str(lane.loop_var.name), "int32")
            values[lane.loop_var] = var
            loops.append(For(var, 0, lane.extent, ForKind.UNROLLED, body))
        result = substitute(body, values)
        for new in reversed(loops):
            result = with_body(new, result)
        return result

    def with_product(self, product: ir.Expr) -> Stmt:
        """The loop with another product, rolled up again but for the lanes."""
        total = tirx.Add(self.store.value.a, product)
        store = tirx.BufferStore(self.store.buffer, total, self.place)
        lanes = {p.loop_var for p in self.lanes}
        rolled = [
            p if p.loop_var in lanes else For(p.loop_var, p.min, p.extent, ForKind.SERIAL, p.body)
            for p in self.unrolled
        ]
        return self.around(store, rolled)


@dataclass(frozen=True, slots=True)
class Words:
    """A loop whose `unrolled` loops go by words of 8 bytes; `loads` are the words' first
    elements."""

    unrolled: tuple[For, ...]
    loads: tuple[ir.TensorLoad, ...]


def _is_serial(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == ForKind.SERIAL


def match_loop(stmt: Stmt, marks: Collection[str]) -> Loop | None:
    """Loops around one product with one of these marks, and nothing else. Of those to unroll only
    loops of constant length are: the last piece of a reduction may have a shorter one."""
    outer: list[For | IfThenElse] = []
    unrolled: list[For] = []
    while True:
        copied = isinstance(stmt, For) and stmt.kind == ForKind.UNROLLED
        if copied and isinstance(stmt.extent, tirx.IntImm):
            unrolled.append(stmt)
            stmt = stmt.body
        elif (copied or _is_serial(stmt)) and not unrolled:
            outer.append(stmt)
            stmt = stmt.body
        elif isinstance(stmt, IfThenElse) and stmt.else_case is None and not unrolled:
            outer.append(stmt)
            stmt = stmt.then_case
        else:
            break
    if not isinstance(stmt, tirx.BufferStore) or not isinstance(stmt.value, tirx.Add):
        return None
    product = stmt.value.b
    if not isinstance(product, ir.Call) or external_name(product) not in marks:
        return None
    moving = [p.loop_var for p in outer if isinstance(p, For)]
    depends = any(isinstance(p, IfThenElse) and has_load(p.condition) for p in outer)
    if depends or stmt.buffer.scope() != SCOPE_REGISTERS or occurs(stmt.indices, *moving):
        return None
    return Loop(tuple(outer), tuple(unrolled), stmt)


def words_of(loop: Loop, ranges: Ranges) -> Words | None:
    """The loop in words, where both operands lie side by side along an unrolled loop and words
    start at multiples of 8 bytes."""
    loads = [widened(factor) for factor in loop.factors]
    if not all(isinstance(load, ir.TensorLoad) for load in loads):
        return None
    counts = {DMA_ALIGN_BYTES // item_bytes(load.source) for load in loads}
    if len(counts) != 1:
        return None
    (count,) = counts
    for at, copy in enumerate(loop.unrolled):
        whole = int(copy.extent) % count == 0 and not occurs(loop.place, copy.loop_var)
        if whole and all(side_by_side(load, copy.loop_var, count, ranges) for load in loads):
            return _in_words(loop, at, loads, count, ranges)
    return None


def _in_words(
    loop: Loop, at: int, loads: Sequence[ir.TensorLoad], count: int, ranges: Ranges
) -> Words:
    copy = loop.unrolled[at]
    turns = int(copy.extent) // count
    word = tirx.Var(str(copy.loop_var.name), "int32")
    first: ir.Expr = tirx.IntImm("int32", 0)
    if turns > 1:
        first = word * tirx.IntImm("int32", count)
    new = [For(word, 0, turns, ForKind.UNROLLED, copy.body)] if turns > 1 else []
    unrolled = (*loop.unrolled[:at], *new, *loop.unrolled[at + 1 :])
    return Words(unrolled, tuple(moved(load, {copy.loop_var: first}, ranges) for load in loads))


def side_by_side(load: ir.TensorLoad, var: tirx.Var, count: int, ranges: Ranges) -> bool:
    """The variable counts elements along the stored rows, everything else whole words of them."""
    sizes = [int(n) for n in load.source.shape]
    last = max((i for i, n in enumerate(sizes) if n != 1), default=0)
    item = DMA_ALIGN_BYTES // count
    if load.source.scope() == SCOPE_REGISTERS or storage(sizes, item)[last] % count:
        return False
    for axis, index in enumerate(load.indices):
        if axis != last:
            if occurs([index], var):
                return False
            continue
        linear = affine(index, ranges)
        if linear is None or linear.coefficient(var) != 1:
            return False
        if not (linear - linear.only([var])).divisible(count):
            return False
    return True


def moved(load: ir.TensorLoad, values: dict[tirx.Var, ir.Expr], ranges: Ranges) -> ir.TensorLoad:
    """The load with variables replaced in its indices."""
    indices = []
    for index in load.indices:
        new = substitute(tirx.Evaluate(index), values).value
        linear = affine(new, ranges)
        indices.append(new if linear is None else linear.expr())
    return tirx.BufferLoad(load.source, indices)


def occurs(exprs: Sequence[ir.Expr], *variables: tirx.Var) -> bool:
    """Some of the variables occurs in some of the expressions."""
    return any(uses(expr, set(variables)) for expr in exprs)
