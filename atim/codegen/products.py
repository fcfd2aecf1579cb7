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

from collections.abc import Sequence
from dataclasses import replace

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, IfThenElse, SeqStmt, Stmt

from atim.codegen.affine import Ranges
from atim.codegen.inner_loop import Loop, match_loop, occurs, words_of
from atim.codegen.kernel_func import (
    body_of,
    external_name,
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
    with_body,
)
from atim.target import SCOPE_REGISTERS

__all__ = ["form_products"]

_LARGEST_BYTE = 255


def form_products(spread: Spread) -> Spread:
    """Rewrite every marked product of a kernel."""
    former = _Former(spread)
    body = _plain(former.stmt(body_of(spread.func)))
    if former.wide is not None:
        body = _sequence(_set(former.wide, _int(0, "uint32")), body)
    return replace(spread, func=with_kernel_body(spread.func, body, former.buffers))


class _Former:
    """One walk over a kernel. `wide` collects the bits of a tasklet's factors, of all loops."""

    def __init__(self, spread: Spread) -> None:
        tasklets = {spread.tasklet: (0, spread.nr_tasklets - 1)}
        self.ranges: Ranges = ranges_of(spread.func) | tasklets
        self.buffers = local_buffers(spread.func)
        self.wide: tirx.Var | None = None
        self.forms = {MUL_WORDS: self._words, MUL_NARROW: self._narrow, MUL_FLOAT: self._float}

    def stmt(self, stmt: Stmt) -> Stmt:
        loop = match_loop(stmt, self.forms)
        if loop is not None:
            formed = self.forms[loop.mark](loop)
            return stmt if formed is None else formed
        if isinstance(stmt, For):
            return with_body(stmt, self.stmt(stmt.body))
        if isinstance(stmt, SeqStmt):
            return _sequence(*(self.stmt(s) for s in stmt.seq))
        if isinstance(stmt, IfThenElse):
            other = None if stmt.else_case is None else self.stmt(stmt.else_case)
            return IfThenElse(stmt.condition, self.stmt(stmt.then_case), other)
        return stmt

    # words -----------------------------------------------------------------------------------

    def _words(self, loop: Loop) -> Stmt | None:
        words = words_of(loop, self.ranges)
        if words is None:
            return None
        name = word_function(*(str(load.ty) for load in words.loads))
        total = loop.store.value.a
        dtype = str(total.ty)
        ends = [tirx.address_of(load) for load in words.loads]
        if dtype.endswith("64"):
            # a word's own sum fits in 32 bits
            dot = tirx.call_pure_extern("int32", name, _int(0), *ends)
            value = tirx.Add(total, tirx.Cast(dtype, dot))
        else:
            start = total if dtype == "int32" else tirx.Cast("int32", total)
            dot = tirx.call_pure_extern("int32", name, start, *ends)
            value = dot if dtype == "int32" else tirx.Cast(dtype, dot)
        return loop.around(tirx.BufferStore(total.source, value, loop.place), words.unrolled)

    # narrow products -------------------------------------------------------------------------

    def _narrow(self, loop: Loop) -> Stmt | None:
        if self.wide is None:
            self.wide = self._register("wide", [1], "uint32")
        part = self._like(loop, "part", "uint32")
        own = tirx.BufferLoad(part, loop.place)
        start = tirx.BufferStore(part, _int(0, "uint32"), loop.place)
        # the parts are complete when the attempt ends
        formed = tirx.call_pure_extern("uint32", "formed", own)
        attempt = _sequence(
            self._attempt(loop, self.wide, own),
            loop.each(tirx.BufferStore(part, formed, loop.place)),
        )
        sums = tirx.BufferLoad(loop.store.buffer, loop.place)
        added = tirx.Add(sums, tirx.Cast("int32", own))
        add = tirx.BufferStore(loop.store.buffer, added, loop.place)
        narrow = tirx.LE(_load(self.wide), _int(_LARGEST_BYTE, "uint32"))
        product = tirx.call_pure_extern("int32", MUL_BYTES, *loop.factors)
        return _sequence(
            loop.each(start),
            IfThenElse(narrow, attempt, None),
            IfThenElse(narrow, loop.each(add), loop.with_product(product)),
        )

    def _attempt(self, loop: Loop, wide: tirx.Var, part: ir.TensorLoad) -> Stmt:
        """The loop on bytes; what all lanes share stands before the lanes' loops, if those are the
        innermost."""
        words = words_of(loop, self.ranges)
        if words is None:
            unrolled = loop.unrolled
            ends = [tirx.Cast("uint32", load) for load in loop.factors]
            value = tirx.Add(part, tirx.call_pure_extern("uint32", "mul_ul_ul", *ends))
            bits = [tirx.BitwiseOr(_load(wide), end) for end in ends]
        else:
            unrolled = words.unrolled
            ends = [tirx.address_of(load) for load in words.loads]
            value = tirx.call_pure_extern("uint32", "dot_narrow", part, *ends)
            bits = [tirx.call_pure_extern("uint32", "any_bits", _load(wide), end) for end in ends]
        lanes = [p.loop_var for p in loop.lanes]
        first = next((i for i, p in enumerate(unrolled) if p.loop_var in lanes), len(unrolled))
        if any(p.loop_var not in lanes for p in unrolled[first:]):
            first = len(unrolled)
        shared = [_set(wide, b) for b in bits if not occurs([b], *lanes)]
        each = [_set(wide, b) for b in bits if occurs([b], *lanes)]
        body = _sequence(*each, tirx.BufferStore(part.source, value, loop.place))
        for lane in reversed(unrolled[first:]):
            body = with_body(lane, body)
        return loop.around(_sequence(*shared, body), unrolled[:first])

    # float -----------------------------------------------------------------------------------

    def _float(self, loop: Loop) -> Stmt:
        mantissa, scale = self._like(loop, "mantissa"), self._like(loop, "scale")
        odd = self._register("odd", [1], "int32")
        sums = tirx.BufferLoad(loop.store.buffer, loop.place)

        def opened(name: str) -> ir.Expr:
            return tirx.call_pure_extern("int32", name, sums)

        head = _sequence(
            _set(odd, tirx.BitwiseOr(_load(odd), opened("float_is_odd"))),
            tirx.BufferStore(mantissa, opened("float_mantissa"), loop.place),
            tirx.BufferStore(scale, opened("float_scale"), loop.place),
        )
        parts = [tirx.BufferLoad(buffer, loop.place) for buffer in (mantissa, scale)]
        ends = [tirx.address_of(register) for register in (*parts, _load(odd))]
        step = tirx.Evaluate(tirx.call_extern("void", "float_mac", *ends, *loop.factors))
        packed = tirx.call_pure_extern("float32", "float_packed", *parts)
        close = tirx.BufferStore(loop.store.buffer, packed, loop.place)
        again = loop.with_product(tirx.Mul(*loop.factors))
        return _sequence(
            _set(odd, _int(0)),
            loop.each(head),
            loop.around(step, loop.unrolled),
            IfThenElse(tirx.EQ(_load(odd), _int(0)), loop.each(close), again),
        )

    # registers -------------------------------------------------------------------------------

    def _register(self, name: str, shape: Sequence[int], dtype: str) -> tirx.Var:
        buffer = tirx.decl_buffer(shape, dtype, name, scope=SCOPE_REGISTERS, layout=None)
        self.buffers.append(buffer)
        return buffer

    def _like(self, loop: Loop, suffix: str, dtype: str = "int32") -> tirx.Var:
        """Registers beside the loop's sums."""
        stem = str(loop.store.buffer.name).removesuffix("_sum")
        shape = [int(n) for n in loop.store.buffer.shape]
        return self._register(f"{stem}_{suffix}", shape, dtype)


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


def _sequence(*stmts: Stmt) -> Stmt:
    result = sequence(stmts)
    assert result is not None
    return result


def _int(value: int, dtype: str = "int32") -> ir.Expr:
    return tirx.IntImm(dtype, value)


def _load(register: tirx.Var) -> ir.Expr:
    return tirx.BufferLoad(register, [_int(0)])


def _set(register: tirx.Var, value: ir.Expr) -> Stmt:
    return tirx.BufferStore(register, value, [_int(0)])
