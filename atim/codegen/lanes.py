"""Sums of narrow elements, 8 bytes at a time in ordinary registers.

`for u < 8 (unrolled): C[..u] = A[..u] + B[..u]` on bytes becomes `add_int8(&C, &A, &B, 0)`, which
adds all but the uppermost bits of each element, and those without a carry (Hacker's Delight, 2-18).
Of 16 bits, two in a register: the upper where nothing comes from below, then the lower over it.
Only elements in WRAM that lie side by side in whole words are handled; the values are the same. A
longer loop goes over words of the same addresses, which the compiler then adds up only once.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import ir, tirx
from tvm.tirx import For, ForKind, Stmt

from atim.codegen.affine import Ranges
from atim.codegen.copies import in_wram, item_bytes
from atim.codegen.inner_loop import moved, side_by_side
from atim.codegen.kernel_func import body_of, ranges_of, rewrite, with_kernel_body
from atim.codegen.kernel_helpers import lane_function
from atim.codegen.lower import Spread
from atim.target import DMA_ALIGN_BYTES

__all__ = ["join_lanes"]

_WORDS = {tirx.Add: "add", tirx.Sub: "sub"}


def join_lanes(spread: Spread) -> Spread:
    """Rewrite every unrolled loop of that kind."""
    tasklets = {spread.tasklet: (0, spread.nr_tasklets - 1)}
    ranges: Ranges = ranges_of(spread.func) | tasklets

    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == ForKind.UNROLLED:
            joined = _joined(stmt, ranges)
            return stmt if joined is None else joined
        return stmt

    body = rewrite(body_of(spread.func), change)
    return replace(spread, func=with_kernel_body(spread.func, body))


def _joined(loop: For, ranges: Ranges) -> Stmt | None:
    store = loop.body
    if not isinstance(store, tirx.BufferStore) or not isinstance(loop.extent, tirx.IntImm):
        return None
    dtype, value = str(store.buffer.dtype), store.value
    name = lane_function(_WORDS.get(type(value), ""), dtype)
    if name is None or str(value.ty) != dtype:
        return None
    target = tirx.BufferLoad(store.buffer, list(store.indices))
    loads = [target, value.a, value.b]
    count = DMA_ALIGN_BYTES // item_bytes(store.buffer)
    for load in loads:
        if not isinstance(load, ir.TensorLoad) or not in_wram(load.source):
            return None
        if not side_by_side(load, loop.loop_var, count, ranges):
            return None
    turns, rest = divmod(int(loop.extent), count)
    if rest:
        return None
    start = tirx.IntImm("int32", 0)
    word = tirx.Var(str(loop.loop_var.name), "int32")
    ends = [tirx.address_of(moved(load, {loop.loop_var: start}, ranges)) for load in loads]
    call = tirx.call_extern("void", name, *ends, word if turns > 1 else start)
    if turns == 1:
        return tirx.Evaluate(call)
    return For(word, 0, turns, ForKind.UNROLLED, tirx.Evaluate(call))
