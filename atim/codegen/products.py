"""Inner loops of products in the forms that suit a DPU.

Once the tasklets are spread, an inner loop is `for ..: for u (unrolled): S[..] += mul_FORM(a, b)`
with S in registers. Here it becomes

    mul_words   `S = dot_int8_int8(S, &a, &b)`, 8 bytes of each operand at a time
    mul_narrow  one byte product for each pair of factors and the bits of all factors beside it; a
                bit above the lowest eight makes this tasklet redo the loop, and do all later ones,
                with products of all bytes
    mul_float   `float_mac` on unpacked sums; a factor or a sum that isn't normal makes the loop be
                redone with the compiler's operators

Loops of any other shape get the compiler's product, or mul_bytes for mul_narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.access import storage
from atim.codegen.affine import Ranges, affine
from atim.codegen.copies import item_bytes
from atim.codegen.kernel_func import (
    body_of,
    external_name,
    has_load,
    local_buffers,
    ranges_of,
    with_kernel_body,
)
from atim.codegen.kernel_helpers import word_function
from atim.codegen.lower import Spread
from atim.codegen.split import (
    MUL_BYTES,
    MUL_FLOAT,
    MUL_NARROW,
    MUL_WORDS,
    sequence,
    substitute,
    with_body,
)
from atim.products import widened
from atim.target import DMA_ALIGN_BYTES, SCOPE_REGISTERS

__all__ = ["form_products"]

_BYTE = 255


def form_products(spread: Spread) -> Spread:
    """Rewrite every marked product of a kernel."""
    former = _Former(spread)
    body = _plain(former.stmt(body_of(spread.func)))
    if former.wide is not None:
        body = _sequence([_set(former.wide, _int(0, "uint32")), body])
    return replace(spread, func=with_kernel_body(spread.func, body, former.buffers))


@dataclass(frozen=True, slots=True)
class _Loop:
    """`outer` loops and guards around `unrolled` loops around `store`, nothing beside them."""

    outer: tuple[For | IfThenElse, ...]
    unrolled: tuple[For, ...]
    store: tirx.BufferStore

    @property
    def factors(self) -> list[ir.Expr]:
        return list(self.store.value.b.args[1:])

    @property
    def lanes(self) -> tuple[For, ...]:
        """The unrolled loops that select a sum."""
        return tuple(p for p in self.unrolled if _uses(self.store.indices, p.loop_var))

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


@dataclass(frozen=True, slots=True)
class _Words:
    """The loop with one of its unrolled loops cut into words of 8 bytes; `loads` are the first
    elements of each word."""

    unrolled: tuple[For, ...]
    loads: tuple[ir.TensorLoad, ...]
    total: ir.TensorLoad


class _Former:
    def __init__(self, spread: Spread) -> None:
        self.ranges: Ranges = ranges_of(spread.func) | {
            spread.tasklet: (0, spread.nr_tasklets - 1)
        }
        self.buffers = local_buffers(spread.func)
        self.wide: tirx.Var | None = None

    def stmt(self, stmt: Stmt) -> Stmt:
        loop = _match(stmt)
        if loop is not None:
            formed = self._FORMS[external_name(loop.store.value.b)](self, loop)
            return stmt if formed is None else formed
        if isinstance(stmt, For):
            return with_body(stmt, self.stmt(stmt.body))
        if isinstance(stmt, SeqStmt):
            return _sequence([self.stmt(s) for s in stmt.seq])
        if isinstance(stmt, IfThenElse):
            other = None if stmt.else_case is None else self.stmt(stmt.else_case)
            return IfThenElse(stmt.condition, self.stmt(stmt.then_case), other)
        return stmt

    # forms -----------------------------------------------------------------------------------

    def _packed(self, loop: _Loop) -> Stmt | None:
        words = self._words(loop)
        if words is None:
            return None
        name = word_function(*(str(load.ty) for load in words.loads))
        total = words.total
        dtype = str(total.ty)
        narrow = dtype == "int32"
        # a sum of 64 bits takes the sum of a word, which 32 bits hold
        start = total if narrow else _int(0) if dtype.endswith("64") else _cast("int32", total)
        dot = tirx.call_pure_extern("int32", name, start, *map(tirx.address_of, words.loads))
        value = dot if narrow else _cast(dtype, dot)
        if dtype.endswith("64"):
            value = tirx.Add(total, value)
        store = tirx.BufferStore(total.source, value, list(total.indices))
        return loop.around(store, words.unrolled)

    def _narrow(self, loop: _Loop) -> Stmt | None:
        if not all(isinstance(factor, ir.TensorLoad) for factor in loop.factors):
            return None
        if self.wide is None:
            self.wide = self._register("wide", [1], "uint32")
        wide, words = self.wide, self._words(loop)
        part = self._like(loop, "part", "uint32")
        unrolled = loop.unrolled if words is None else words.unrolled
        place = list((loop.store if words is None else words.total).indices)
        loads: Sequence[ir.Expr] = loop.factors if words is None else words.loads
        total = tirx.BufferLoad(part, self._place(loop, place))
        if words is None:
            factors = [_cast("uint32", load) for load in loads]
            value = tirx.Add(total, tirx.call_pure_extern("uint32", "mul_ul_ul", *factors))
            bits = factors
        else:
            ends = [tirx.address_of(load) for load in loads]
            value = tirx.call_pure_extern("uint32", "dot_narrow", total, *ends)
            bits = [tirx.call_pure_extern("uint32", "any_bits", end) for end in ends]
        multiply = tirx.BufferStore(part, value, self._place(loop, place))
        own = [p.loop_var for p in unrolled if _uses(place, p.loop_var)]
        shared = [b for b in bits if not _uses([b], *own)]
        each = [b for b in bits if _uses([b], *own)]
        body = _sequence([*(_collect(wide, b) for b in each), multiply])
        attempt = self._split_shared(loop, unrolled, own, [_collect(wide, b) for b in shared], body)
        narrow = tirx.LE(_load(wide), _int(_BYTE, "uint32"))
        sums = tirx.BufferLoad(loop.store.buffer, list(loop.store.indices))
        parts = _cast("int32", tirx.BufferLoad(part, self._place(loop, loop.store.indices)))
        add = tirx.BufferStore(
            loop.store.buffer, tirx.Add(sums, parts), list(loop.store.indices)
        )
        return _sequence(
            [
                self._each(loop, tirx.BufferStore(part, _int(0, "uint32"), self._place(loop))),
                IfThenElse(narrow, attempt, None),
                IfThenElse(narrow, self._each(loop, add), self._redone(loop, MUL_BYTES)),
            ]
        )

    def _float(self, loop: _Loop) -> Stmt | None:
        mantissa, scale = self._like(loop, "mantissa"), self._like(loop, "scale")
        odd = self._register("odd", [1], "int32")
        place = self._place(loop)
        sums = tirx.BufferLoad(loop.store.buffer, list(loop.store.indices))

        def opened(name: str) -> ir.Expr:
            return tirx.call_pure_extern("int32", name, sums)

        head = _sequence(
            [
                _collect(odd, opened("float_is_odd")),
                tirx.BufferStore(mantissa, opened("float_mantissa"), place),
                tirx.BufferStore(scale, opened("float_scale"), place),
            ]
        )
        ends = [
            tirx.address_of(tirx.BufferLoad(buffer, where))
            for buffer, where in ((mantissa, place), (scale, place), (odd, [_int(0)]))
        ]
        step = tirx.Evaluate(tirx.call_extern("void", "float_mac", *ends, *loop.factors))
        parts = [tirx.BufferLoad(buffer, place) for buffer in (mantissa, scale)]
        packed = tirx.call_pure_extern("float32", "float_packed", *parts)
        close = tirx.BufferStore(loop.store.buffer, packed, list(loop.store.indices))
        return _sequence(
            [
                _set(odd, _int(0)),
                self._each(loop, head),
                loop.around(step, loop.unrolled),
                IfThenElse(
                    tirx.EQ(_load(odd), _int(0)),
                    self._each(loop, close),
                    self._redone(loop, None),
                ),
            ]
        )

    _FORMS: dict[str, Callable[[_Former, _Loop], Stmt | None]] = {
        MUL_WORDS: _packed,
        MUL_NARROW: _narrow,
        MUL_FLOAT: _float,
    }

    # parts -----------------------------------------------------------------------------------

    def _split_shared(
        self,
        loop: _Loop,
        unrolled: Sequence[For],
        lanes: Sequence[tirx.Var],
        shared: list[Stmt],
        body: Stmt,
    ) -> Stmt:
        """What all lanes share stands before the loops over lanes, which are the innermost."""
        first = next((i for i, p in enumerate(unrolled) if p.loop_var in lanes), len(unrolled))
        if any(p.loop_var not in lanes for p in unrolled[first:]):
            return loop.around(_sequence([*shared, body]), unrolled)
        for lane in reversed(unrolled[first:]):
            body = with_body(lane, body)
        return loop.around(_sequence([*shared, body]), unrolled[:first])

    def _redone(self, loop: _Loop, name: str | None) -> Stmt:
        """The loop once more with another product, rolled up again but for the lanes."""
        value = loop.store.value
        left, right = loop.factors
        product = (
            tirx.Mul(left, right)
            if name is None
            else tirx.call_pure_extern(str(value.ty), name, left, right)
        )
        store = tirx.BufferStore(
            loop.store.buffer, tirx.Add(value.a, product), list(loop.store.indices)
        )
        lanes = {p.loop_var for p in loop.lanes}
        rolled = [
            p if p.loop_var in lanes else For(p.loop_var, p.min, p.extent, ForKind.SERIAL, p.body)
            for p in loop.unrolled
        ]
        return loop.around(store, rolled)

    def _words(self, loop: _Loop) -> _Words | None:
        """The loop in words, where both operands lie side by side and words start at multiples of
        8 bytes."""
        loads = [widened(factor) for factor in loop.factors]
        if not all(isinstance(load, ir.TensorLoad) for load in loads):
            return None
        counts = {DMA_ALIGN_BYTES // item_bytes(load.source) for load in loads}
        if len(counts) != 1:
            return None
        (count,) = counts
        for i, copy in enumerate(loop.unrolled):
            fits = int(copy.extent) % count == 0 and not _uses(loop.store.indices, copy.loop_var)
            if fits and all(self._contiguous(load, copy.loop_var, count) for load in loads):
                break
        else:
            return None
        turns = int(copy.extent) // count
        word = tirx.Var(str(copy.loop_var.name), "int32")
        first: ir.Expr = _int(0) if turns == 1 else word * _int(count)
        new = For(word, 0, turns, ForKind.UNROLLED, copy.body)
        unrolled = [*loop.unrolled[:i], *([new] if turns > 1 else []), *loop.unrolled[i + 1 :]]
        moved = [self._moved(load, {copy.loop_var: first}) for load in loads]
        return _Words(tuple(unrolled), tuple(moved), loop.store.value.a)

    def _contiguous(self, load: ir.TensorLoad, var: tirx.Var, count: int) -> bool:
        """The variable counts elements along the stored rows, the rest by whole words."""
        sizes = [int(n) for n in load.source.shape]
        last = max((i for i, n in enumerate(sizes) if n != 1), default=0)
        if str(load.source.scope()) == SCOPE_REGISTERS or storage(sizes, 1)[last] < count:
            return False
        for axis, index in enumerate(load.indices):
            linear = affine(index, self.ranges)
            if linear is None or (axis != last and linear.coefficient(var)):
                return False
            if axis == last:
                rest = linear - linear.only([var])
                if linear.coefficient(var) != 1 or not rest.divisible(count):
                    return False
        return True

    def _moved(self, load: ir.TensorLoad, values: dict[tirx.Var, ir.Expr]) -> ir.TensorLoad:
        indices = []
        for index in load.indices:
            new = substitute(tirx.Evaluate(index), values).value
            linear = affine(new, self.ranges)
            indices.append(new if linear is None else linear.expr())
        return tirx.BufferLoad(load.source, indices)

    def _register(self, name: str, shape: list[int], dtype: str) -> tirx.Var:
        buffer = tirx.decl_buffer(shape, dtype, name, scope=SCOPE_REGISTERS, layout=None)
        self.buffers.append(buffer)
        return buffer

    def _like(self, loop: _Loop, suffix: str, dtype: str = "int32") -> tirx.Var:
        """Registers for each sum of the loop."""
        stem = str(loop.store.buffer.name).removesuffix("_sum")
        shape = [int(n) for n in loop.store.buffer.shape]
        return self._register(f"{stem}_{suffix}", shape, dtype)

    def _place(self, loop: _Loop, indices: Sequence[ir.Expr] | None = None) -> list[ir.Expr]:
        return list(loop.store.indices if indices is None else indices)

    def _each(self, loop: _Loop, body: Stmt) -> Stmt:
        """For every sum, in unrolled loops of their own."""
        values: dict[tirx.Var, ir.Expr] = {}
        loops = []
        for lane in loop.lanes:
            var = tirx.Var(str(lane.loop_var.name), "int32")
            values[lane.loop_var] = var
            loops.append(For(var, 0, lane.extent, ForKind.UNROLLED, body))
        result = substitute(body, values)
        for new in reversed(loops):
            result = with_body(new, result)
        return result


def _match(stmt: Stmt) -> _Loop | None:
    """Loops around one marked product and nothing else."""
    outer: list[For | IfThenElse] = []
    unrolled: list[For] = []
    while True:
        if isinstance(stmt, For) and stmt.kind == ForKind.UNROLLED:
            unrolled.append(stmt)
            stmt = stmt.body
        elif isinstance(stmt, For) and stmt.kind == ForKind.SERIAL and not unrolled:
            outer.append(stmt)
            stmt = stmt.body
        elif isinstance(stmt, IfThenElse) and not unrolled:
            if stmt.else_case is not None or has_load(stmt.condition):
                return None
            outer.append(stmt)
            stmt = stmt.then_case
        else:
            break
    if not isinstance(stmt, tirx.BufferStore) or not isinstance(stmt.value, tirx.Add):
        return None
    call, registers = stmt.value.b, stmt.buffer.scope() == SCOPE_REGISTERS
    if not registers or not isinstance(call, ir.Call) or external_name(call) not in _Former._FORMS:
        return None
    moving = [p.loop_var for p in outer if isinstance(p, For)]
    if any(_uses(stmt.indices, var) for var in moving):
        return None
    return _Loop(tuple(outer), tuple(unrolled), stmt)


def _plain(body: Stmt) -> Stmt:
    """Products that kept their mark, as the compiler multiplies or byte by byte."""

    def change(call: ir.Call, mutator: tvm_ffi.StructuralMutator) -> ir.Expr:
        name = external_name(call)
        if name in (MUL_WORDS, MUL_FLOAT):
            return tirx.Mul(*call.args[1:])
        if name == MUL_NARROW:
            return tirx.call_pure_extern(str(call.ty), MUL_BYTES, *call.args[1:])
        return mutator.default_mutate(call)

    return tvm_ffi.structural_mutate(body, [(ir.Call, change)])


def _uses(exprs: Sequence[ir.Expr], *variables: tirx.Var) -> bool:
    from atim.codegen.access import uses

    return any(uses(expr, set(variables)) for expr in exprs)


def _sequence(stmts: list[Stmt]) -> Stmt:
    result = sequence(stmts)
    assert result is not None
    return result


def _int(value: int, dtype: str = "int32") -> ir.Expr:
    return tirx.IntImm(dtype, value)


def _cast(dtype: str, value: ir.Expr) -> ir.Expr:
    return tirx.Cast(dtype, value)


def _load(register: tirx.Var) -> ir.Expr:
    return tirx.BufferLoad(register, [_int(0)])


def _set(register: tirx.Var, value: ir.Expr) -> Stmt:
    return tirx.BufferStore(register, value, [_int(0)])


def _collect(register: tirx.Var, bits: ir.Expr) -> Stmt:
    return _set(register, tirx.BitwiseOr(_load(register), bits))
