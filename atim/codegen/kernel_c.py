"""The DPU dialect: kernel form -> kernel.c for the UPMEM SDK's clang.

One `__mram_noinit` array for each tile, one static WRAM struct for each tasklet (so that all of a
tasklet's buffers lie at constant distances of one pointer), no heap, barriers only where lower.py
put them. See the SDK manual, "Memory management" and mram.h, for the rules that the text obeys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.access import storage, uses
from atim.codegen.c_values import PRIMARY, UNARY, c_type
from atim.codegen.columns import MAX_COLUMNS
from atim.codegen.copies import READ, WRITE, in_mram, item_bytes
from atim.codegen.emit import Emitter, dtype_of
from atim.codegen.kernel_func import (
    Tiles,
    body_of,
    external_name,
    grid_of,
    local_buffers,
    mram_buffers,
    ranges_of,
)
from atim.codegen.kernel_helpers import FUNCTION_NAMES, helpers_for
from atim.codegen.lower import BARRIER, Spread
from atim.codegen.math_c import MATH, NEEDS
from atim.codegen.mram_words import LOAD, STORE, owns_words, sole_stores, store_helper
from atim.codegen.names import Names, axis_of, of_source
from atim.codegen.split import MUL_BYTES, MUL_STEP, operation
from atim.codegen.transfer import Tile
from atim.errors import UnsupportedError
from atim.target import SCOPE_REGISTERS, SCOPE_SHARED, SCOPE_TASKLET

GRID_SYMBOL = "grid_index"

# marked product -> function of (sum, factors)
ACCUMULATE = {MUL_STEP: "mul_step_add", MUL_BYTES: "mul_bytes_add"}


@dataclass(frozen=True, slots=True)
class KernelText:
    """kernel.c and whether it looks at its grid index."""

    text: str
    grid_symbol: str | None
    wram_bytes: int


def emit_kernel(spread: Spread, tiles: Tiles, title: str) -> KernelText:
    """Print the kernel; `title` says what it computes."""
    emitter = Dpu(spread, tiles)
    emitter.declare(body_of(spread.func))
    emitter.stmt(body_of(spread.func))
    return emitter.finish(title)


class Dpu(Emitter):
    """C as the DPU's clang takes it."""

    def __init__(self, spread: Spread, tiles: Tiles) -> None:
        func = spread.func
        ranges = ranges_of(func) | {spread.tasklet: (0, spread.nr_tasklets - 1)}
        names = Names([str(p.name) for p in mram_buffers(func)])
        super().__init__(names, ranges)
        self.spread, self.tiles = spread, tiles
        self.grid = grid_of(func)
        self.used: set[tirx.Var] = set()
        self.mutex = False
        self.sole = sole_stores(body_of(func))
        self.text[spread.tasklet] = "tasklet"
        for buffer in mram_buffers(func):
            self.text[buffer] = str(buffer.name)
        for var in self.grid:
            self.text[var] = names.new(f"{axis_of(str(var.name))}_dpu")
        self.declared: list[Stmt] = []
        self.homes: dict[Stmt, list[tirx.Var]] = {}
        for buffer in local_buffers(func):
            self.text[buffer] = names.new(str(buffer.name))
            if buffer.scope() == SCOPE_REGISTERS:
                self.homes.setdefault(smallest_scope(body_of(func), buffer), []).append(buffer)

    def variable(self, var: tirx.Var) -> str:
        self.used.add(var)
        return super().variable(var)

    def declare(self, scope: Stmt) -> None:
        for buffer in self.homes.get(scope, ()):
            sizes = "".join(f"[{n}]" for n in buffer.shape if int(n) != 1)
            # a first store under a guard: compilers can't see that the rest is never used
            unused = " = {0}" if sizes else " = 0"
            zero = "" if stored_first(scope, buffer) else unused
            declared = f"{c_type(str(buffer.dtype))} {self.text[buffer]}{sizes}"
            parts = parts_of(scope)
            first = next(s for s in parts if uses(s, {buffer}))
            if not sizes and first is parts[0] and isinstance(first, tirx.BufferStore):
                zero = f" = {self.stored(first.value, str(buffer.dtype))}"
                self.declared.append(first)
            elif clears(first, buffer):
                zero = unused
                self.declared.append(first)
            self.line(f"{declared}{zero};")

    # buffers ---------------------------------------------------------------------------------

    def element(self, buffer: tirx.Var, indices: Sequence[ir.Expr]) -> str:
        self.used.add(buffer)
        name = self.text[buffer]
        if buffer.scope() == SCOPE_TASKLET:
            name = f"wram->{name}"
        sizes = [int(n) for n in buffer.shape]
        shown = [i for i, n in zip(indices, sizes, strict=True) if n != 1]
        if not shown and buffer.scope() != SCOPE_REGISTERS:
            return f"{name}[0]"
        return name + "".join(f"[{self.expr(i)}]" for i in shown)

    def load(self, buffer: tirx.Var, indices: Sequence[ir.Expr]) -> str:
        text = self.element(buffer, indices)
        if not in_mram(buffer):
            return text
        return f"{self._word_helper('load', LOAD, buffer)}(&{text})"

    def store(self, buffer: tirx.Var, indices: Sequence[ir.Expr], value: ir.Expr) -> None:
        if not in_mram(buffer):
            if isinstance(value, tirx.Add) and is_accumulated(value.b):
                target = self.element(buffer, indices)
                self.line(f"{target} = {self._accumulated(value.b, self.expr(value.a))};")
            else:
                super().store(buffer, indices, value)
            return
        own = buffer in self.sole and owns_words(buffer, indices, self.ranges, self.spread.tasklet)
        kind, template = store_helper(own, item_bytes(buffer))
        self.mutex = self.mutex or template is STORE
        name = self._word_helper(kind, template, buffer)
        dtype = str(buffer.dtype)
        self.line(f"{name}(&{self.element(buffer, indices)}, {self.stored(value, dtype)});")

    def counter(self, loop: For) -> str:
        name = super().counter(loop)
        return "row" if name == "item" and copies_rows(loop.body) else name

    def stmt(self, stmt: Stmt) -> None:
        if not any(stmt.same_as(s) for s in self.declared):
            super().stmt(stmt)

    def _word_helper(self, kind: str, template: str, buffer: tirx.Var) -> str:
        dtype = str(buffer.dtype)
        name = f"mram_{kind}_{dtype}"
        words = 8 // item_bytes(buffer)
        self.helpers.setdefault(name, template.format(T=c_type(dtype), N=dtype, W=words))
        return name

    def _math(self, name: str) -> str:
        """The name of a function of float32; its text goes before the code."""
        for part in (*NEEDS[name], name):
            self.helpers.setdefault(f"{part}_float32", MATH[part])
        return f"{name}_float32"

    def call(self, expr: ir.Call) -> tuple[str, int]:
        name = external_name(expr)
        if name in (READ, WRITE):
            _, source, skip, target, _, size = expr.args
            ends = [self._pointer(end, skip) for end in (source, target)]
            return f"{name}({ends[0]}, {ends[1]}, {self.expr(size)})", PRIMARY
        if is_accumulated(expr):
            return self._accumulated(expr, "0"), PRIMARY
        if name in FUNCTION_NAMES:
            return f"{self._function(name)}({', '.join(map(self.expr, expr.args[1:]))})", PRIMARY
        if operation(expr) == "address_of":
            return f"&{self.expr(expr.args[0])}", UNARY
        if operation(expr) in MATH and dtype_of(expr) == "float32":
            return f"{self._math(operation(expr))}({self.expr(expr.args[0])})", PRIMARY
        if name == BARRIER:
            return f"{BARRIER}(&all_tasklets)", PRIMARY
        return super().call(expr)

    def _accumulated(self, product: ir.Call, total: str) -> str:
        name = self._function(ACCUMULATE[external_name(product)])
        return f"{name}({total}, {', '.join(map(self.expr, product.args[1:]))})"

    def _function(self, name: str) -> str:
        """A function of kernel_helpers.py, defined once with what it needs."""
        for needed, text in helpers_for(name).items():
            self.helpers.setdefault(needed, text)
        return name

    def _pointer(self, address: ir.Call, skip: ir.Expr) -> str:
        load = address.args[0]
        text = f"&{self.element(load.source, list(load.indices))}"
        if isinstance(skip, tirx.IntImm) and int(skip) == 0:
            return text
        return f"{text} + {self.expr(skip)}"

    # file ------------------------------------------------------------------------------------

    def finish(self, title: str) -> KernelText:
        used_grid = [v for v in self.grid if v in self.used]
        head = [f"/* DPU kernel of {title}", *self._header_lines(), " */"]
        code = [*self.helpers.values(), *self.lines, *self._mram_lines()]
        if re.search(r"\b(bool|true|false)\b", " ".join(code)):
            head.append("#include <stdbool.h>")
        head += ["#include <stdint.h>", "", "#include <defs.h>", "#include <mram.h>"]
        if self.spread.barriers:
            head.append("#include <barrier.h>")
        if self.mutex:
            head.append("#include <mutex.h>")
        parts = ["\n".join(head), "\n".join(self._mram_lines())]
        if used_grid:
            parts.append(self._grid_lines())
        wram, wram_bytes = self._wram_lines()
        parts += wram
        if self.spread.barriers:
            parts.append("BARRIER_INIT(all_tasklets, NR_TASKLETS);")
        if self.mutex:
            parts.append("MUTEX_INIT(mram_word);")
        parts += [text.rstrip("\n") for text in self.helpers.values()]
        parts.append(self._main(used_grid))
        symbol = GRID_SYMBOL if used_grid else None
        return KernelText("\n\n".join(parts) + "\n", symbol, wram_bytes)

    def _header_lines(self) -> list[str]:
        grid = ", ".join(f"{self.text[v]} < {n}" for v, n in self.grid.items())
        return [
            f" * One DPU for each {grid}; build with -DNR_TASKLETS={self.spread.nr_tasklets}.",
            " * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.",
        ]

    def _mram_lines(self) -> list[str]:
        lines = []
        for buffer in mram_buffers(self.spread.func):
            tile = self.tiles[str(buffer.name)]
            sizes = "".join(f"[{n}]" for n in _shown(tile.padded))
            declared = f"__mram_noinit {c_type(tile.dtype)} {tile.symbol}{sizes};"
            lines += _told(declared, f"/* {self._box(tile)} */")
        return lines

    def _box(self, tile: Tile) -> str:
        """The part of the tensor that the tile holds, as in A[64*i + 0..63, 0..127]."""
        axes = []
        for base, coeffs, extent in zip(
            tile.offset_base, tile.offset_coeffs, tile.extent, strict=True
        ):
            terms = [
                self.text[v] if c == 1 else f"{c}*{self.text[v]}"
                for v, c in zip(self.grid, coeffs, strict=True)
                if c
            ]
            span = f"{base}..{base + extent - 1}" if extent > 1 else str(base)
            span = f"({span})" if base < 0 and terms else span
            axes.append(" + ".join([*terms, span] if span != "0" or not terms else terms))
        return f"{of_source(tile.tensor)}[{', '.join(axes)}]"

    def _grid_lines(self) -> str:
        lines = ["/* this DPU's place in the grid, written by the host */", "__host struct {"]
        lines += [f"    int32_t {self.text[v]};" for v in self.grid]
        if len(self.grid) % 2:
            lines.append("    int32_t unused; /* sizes are multiples of 8 bytes */")
        return "\n".join([*lines, f"}} {GRID_SYMBOL};"])

    def _wram_lines(self) -> tuple[list[str], int]:
        """Declarations of the WRAM buffers in use, and their bytes on one DPU."""
        parts, total = [], 0
        fields = []
        for buffer in local_buffers(self.spread.func):
            if buffer not in self.used or buffer.scope() == SCOPE_REGISTERS:
                continue
            declared, size = self._declaration(buffer)
            if buffer.scope() == SCOPE_SHARED:
                shown = f"/* {_contents(buffer)}, shared by the tasklets */"
                parts.append("\n".join(_told(f"static __dma_aligned {declared};", shown)))
                total += size
            elif buffer.scope() == SCOPE_TASKLET:
                shown = f"/* {_contents(buffer)} */"
                fields += _told(f"    __dma_aligned {declared};", shown)
                total += size * self.spread.nr_tasklets
            else:
                raise UnsupportedError(f"buffer {buffer.name}: scope {buffer.scope()} unknown")
        if fields:
            body = "\n".join(fields)
            told = "/* WRAM of each tasklet */"
            parts.insert(0, f"{told}\nstatic struct {{\n{body}\n}} wram_of[NR_TASKLETS];")
        return parts, total

    def _declaration(self, buffer: tirx.Var) -> tuple[str, int]:
        sizes = storage([int(n) for n in buffer.shape], item_bytes(buffer))
        total = item_bytes(buffer)
        for n in sizes:
            total *= n
        text = "".join(f"[{n}]" for n in _shown(sizes))
        return f"{c_type(str(buffer.dtype))} {self.text[buffer]}{text}", total

    def _main(self, used_grid: list[tirx.Var]) -> str:
        lines = ["int main(void) {"]
        local = [b for b in local_buffers(self.spread.func) if b in self.used]
        tasklet_buffers = any(b.scope() == SCOPE_TASKLET for b in local)
        if self.spread.tasklet in self.used:
            lines.append("    const int32_t tasklet = (int32_t)me();")
        for var in used_grid:
            name = self.text[var]
            lines.append(f"    const int32_t {name} = {GRID_SYMBOL}.{name};")
        if tasklet_buffers:
            index = "tasklet" if self.spread.tasklet in self.used else "me()"
            lines.append(f"    __typeof__(wram_of[0]) *const wram = &wram_of[{index}];")
        if len(lines) > 1:
            lines.append("")
        lines += [*self.lines, "    return 0;", "}"]
        return "\n".join(lines)


def _told(declared: str, comment: str) -> list[str]:
    """A declaration with its comment, which stands before it where the line would be too long."""
    if len(declared) + len(comment) < MAX_COLUMNS:
        return [f"{declared} {comment}"]
    indent = declared[: len(declared) - len(declared.lstrip())]
    return [indent + comment, declared]


def _shown(sizes: Sequence[int]) -> list[int]:
    """Axes of length 1 are not written; one is left if all are."""
    return [n for n in sizes if n != 1] or [1]


def _contents(buffer: tirx.Var) -> str:
    """What a WRAM buffer holds: "4 x 64 of A"."""
    sizes = " x ".join(map(str, _shown([int(n) for n in buffer.shape])))
    return f"{sizes} of {re.sub(r'_(wram|shared|sum)(_[0-9]+)?$', '', str(buffer.name))}"


def copies_rows(stmt: Stmt) -> bool:
    """DMA transfers, one an iteration."""
    while isinstance(stmt, For | IfThenElse):
        stmt = stmt.body if isinstance(stmt, For) else stmt.then_case
    call = stmt.value if isinstance(stmt, tirx.Evaluate) else None
    return isinstance(call, ir.Call) and external_name(call) in (READ, WRITE)


def parts_of(scope: Stmt) -> list[Stmt]:
    return list(scope.seq) if isinstance(scope, SeqStmt) else [scope]


def clears(stmt: Stmt, buffer: tirx.Var) -> bool:
    """All that the statement does is to store zeros to the buffer."""
    while not isinstance(stmt, tirx.BufferStore):
        if isinstance(stmt, For):
            stmt = stmt.body
        elif isinstance(stmt, IfThenElse) and stmt.else_case is None:
            stmt = stmt.then_case
        else:
            return False
    value = stmt.value
    zero = isinstance(value, tirx.IntImm | tirx.FloatImm) and str(value.value) in ("0", "0.0")
    return zero and stmt.buffer.same_as(buffer)


def is_accumulated(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and external_name(expr) in ACCUMULATE


def smallest_scope(body: Stmt, buffer: tirx.Var) -> Stmt:
    """The innermost body of a loop or `if` that holds every access to the buffer."""
    scope = stmt = body
    while True:
        if isinstance(stmt, SeqStmt):
            parts = [s for s in stmt.seq if uses(s, {buffer})]
            if len(parts) != 1:
                return scope
            stmt = parts[0]
        elif isinstance(stmt, For) and stmt.kind != ForKind.UNROLLED:
            scope = stmt = stmt.body
        elif isinstance(stmt, IfThenElse) and stmt.else_case is None:
            scope = stmt = stmt.then_case
        else:
            return scope


def stored_first(stmt: Stmt, buffer: tirx.Var) -> bool:
    """The first statement that touches the buffer stores to it on every path."""
    while True:
        if isinstance(stmt, SeqStmt):
            stmt = next(s for s in stmt.seq if uses(s, {buffer}))
        elif isinstance(stmt, For) and isinstance(stmt.extent, tirx.IntImm):
            stmt = stmt.body
        else:
            return isinstance(stmt, tirx.BufferStore) and stmt.buffer.same_as(buffer)
