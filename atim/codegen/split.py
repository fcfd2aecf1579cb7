"""Scheduled PrimFunc -> host nests and one DPU kernel, as plain loops, guards and stores.

TVM's own passes inline block iterators and compact the buffers; then every child of the root block
that binds a blockIdx loop is a kernel and the rest runs on the host. Blocks are dissolved here: a
block's predicate becomes an `if`, its buffers move to the front, loops of one iteration vanish, and
index expressions take their linear form. Coordinates are still global (see transfer.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import tvm
import tvm_ffi
from tvm import ir, s_tir, sym, tirx
from tvm.s_tir import SBlockRealize
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.affine import affine, below_zero, coarsest, less
from atim.errors import ScheduleError, UnsupportedError
from atim.margins import is_inside, margins_of
from atim.products import product_of
from atim.target import (
    ANNOTATE_MULTIPLY,
    MULTIPLY_BYTES,
    MULTIPLY_FLOAT,
    MULTIPLY_LIBRARY,
    MULTIPLY_NARROW,
    MULTIPLY_STEPS,
    MULTIPLY_STEPS_SECOND,
    MULTIPLY_WORDS,
)

MUL_STEP, MUL_BYTES = "mul_step", "mul_bytes"
MUL_NARROW, MUL_WORDS, MUL_FLOAT = "mul_narrow", "mul_words", "mul_float"
PRODUCT_MARKS = {
    MULTIPLY_STEPS: MUL_STEP,
    MULTIPLY_STEPS_SECOND: MUL_STEP,
    MULTIPLY_BYTES: MUL_BYTES,
    MULTIPLY_NARROW: MUL_NARROW,
    MULTIPLY_WORDS: MUL_WORDS,
    MULTIPLY_FLOAT: MUL_FLOAT,
}
PRODUCTS = frozenset(PRODUCT_MARKS.values())
"""External functions of two factors; products.py and kernel_c.py give them their C."""

# a conditional that TVM's passes know nothing of
CHOOSE = "atim.choose"

FRONT_PASSES = (
    s_tir.transform.CanonicalizeLoop(),
    s_tir.transform.LowerInitBlock(),
    s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
    s_tir.transform.ConvertBlocksToOpaque(),
    s_tir.transform.CompactBufferAllocation(),
)


@dataclass(frozen=True, slots=True)
class Nest:
    """A root-level loop nest and the buffers that live inside it; `outside` gives the loop
    variables around each buffer's scope, in which it starts afresh every time."""

    body: Stmt
    buffers: tuple[tirx.Var, ...]
    outside: Mapping[tirx.Var, frozenset[tirx.Var]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Split:
    """A program cut in three: host nests before, the kernel below its blockIdx loops, host nests
    after.

    `inputs` are the function's buffers, `temporaries` those that live between the nests. Grid
    variables of extent 1 are already replaced by 0 in the kernel. `margins` are those of inputs
    that are declared larger than they are: name -> (margin in front of each axis, true shape).
    """

    inputs: tuple[tirx.Var, ...]
    temporaries: tuple[tirx.Var, ...]
    before: tuple[Nest, ...]
    kernel: Nest
    after: tuple[Nest, ...]
    grid_vars: tuple[tirx.Var, ...]
    grid: tuple[int, ...]
    margins: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)


def split(func: tirx.PrimFunc) -> Split:
    """Cut a scheduled function. Raises `ScheduleError` if no loop, or more than one nest, is bound
    to DPUs."""
    margins, inside = margins_of(func), is_inside(func)
    module = tvm.IRModule({"main": _renamed(func, "if_then_else", CHOOSE) if inside else func})
    for front_pass in FRONT_PASSES:
        module = front_pass(module)
    func = _renamed(module["main"], CHOOSE, "if_then_else") if inside else module["main"]
    root = func.body.block
    children = list(root.body.seq) if isinstance(root.body, SeqStmt) else [root.body]
    kernels = [i for i, child in enumerate(children) if thread_extents(child, "blockIdx")]
    if len(kernels) != 1:
        raise ScheduleError(f"kernels: one nest must be bound to blockIdx, {len(kernels)} are")
    (at,) = kernels
    grid, body = _peel_grid(children[at])
    ranges = {var: (0, extent - 1) for var, extent in grid}
    return Split(
        inputs=tuple(p for p in func.params if tirx.is_buffer_var(p)),
        temporaries=tuple(root.alloc_buffers),
        before=tuple(dissolve(child, {}) for child in children[:at]),
        kernel=dissolve(body, ranges),
        after=tuple(dissolve(child, {}) for child in children[at + 1 :]),
        grid_vars=tuple(var for var, _ in grid),
        grid=tuple(extent for _, extent in grid),
        margins=margins,
    )


def _renamed(func: tirx.PrimFunc, old: str, new: str) -> tirx.PrimFunc:
    """Conditionals under another name: TVM cuts a region to where a condition holds, which makes
    the indices of buffers piecewise; where every read is inside there is no need to."""

    def change(call: ir.Call) -> ir.Call:
        name = operation(call)
        args = list(call.args)
        if name == "call_pure_extern":
            name, args = str(args[0].value), args[1:]
        if name != old:
            return call
        if new == CHOOSE:
            return tirx.call_pure_extern(str(call.ty), CHOOSE, *args)
        return tirx.if_then_else(*args)

    return func.with_body(tvm_ffi.structural_map(func.body, [(ir.Call, change)]))


def thread_tag(loop: For) -> str:
    """'threadIdx.x' and the like, '' for an ordinary loop."""
    return str(loop.thread_binding.thread_tag) if loop.kind == ForKind.THREAD_BINDING else ""


def thread_extents(stmt: Stmt, prefix: str) -> dict[str, int]:
    """Thread tag -> largest extent of the loops bound to tags that start with prefix."""
    found: dict[str, int] = {}

    def visit(loop: For) -> None:
        tag = thread_tag(loop)
        if tag.startswith(prefix):
            found[tag] = max(found.get(tag, 0), int(loop.extent))

    tvm_ffi.structural_walk(stmt, [(For, visit)])
    return found


def _peel_grid(stmt: Stmt) -> tuple[list[tuple[tirx.Var, int]], Stmt]:
    """The blockIdx loops from outside to inside, and what they contain."""
    grid: list[tuple[tirx.Var, int]] = []
    tags: set[str] = set()
    while thread_extents(stmt, "blockIdx"):
        if not isinstance(stmt, For):
            raise ScheduleError("kernel: blockIdx loops must be nested directly in each other")
        tag = thread_tag(stmt)
        if tag.startswith("blockIdx"):
            if tag in tags:
                raise ScheduleError(f"kernel: {tag} is bound twice in one nest")
            tags.add(tag)
            grid.append((stmt.loop_var, int(stmt.extent)))
        elif int(stmt.extent) != 1:
            raise ScheduleError(
                f"kernel: loop {stmt.loop_var.name} lies outside the blockIdx loops"
            )
        stmt = substitute(stmt.body, {} if tag else {stmt.loop_var: stmt.min})
    units = {var: tirx.IntImm("int32", 0) for var, extent in grid if extent == 1}
    return grid, substitute(stmt, units)


def substitute(stmt: Stmt, values: dict[tirx.Var, ir.Expr]) -> Stmt:
    """Replace variables in a statement."""
    if not values:
        return stmt
    return tvm_ffi.structural_map(stmt, [(tirx.Var, lambda v: values.get(v, v))])


def dissolve(stmt: Stmt, ranges: dict[tirx.Var, tuple[int, int]]) -> Nest:
    """A nest without blocks; `ranges` are those of the variables around it."""
    dissolver = _Dissolver(ranges)
    body = dissolver.stmt(stmt)
    if body is None:
        raise UnsupportedError("program: a nest without any statement")
    return Nest(body, tuple(dissolver.buffers), dissolver.outside)


class _Dissolver:
    """One walk over a nest; `ranges` of the loop variables grows on the way down."""

    def __init__(self, ranges: dict[tirx.Var, tuple[int, int]]) -> None:
        self.ranges = dict(ranges)
        self.units: dict[tirx.Var, ir.Expr] = {}
        self.buffers: list[tirx.Var] = []
        self.outside: dict[tirx.Var, frozenset[tirx.Var]] = {}
        self.around: list[tirx.Var] = list(ranges)
        self._analyzer: sym.Analyzer | None = None
        self._rows = (
            (tirx.Var, lambda v, mut: self.units.get(v, v)),
            (ir.TensorLoad, self._load),
            (
                (tirx.And, tirx.LT, tirx.LE, tirx.GT, tirx.GE),
                lambda e, mut: self._condition(e, mut),
            ),
        )

    def stmt(self, stmt: Stmt) -> Stmt | None:
        """The statement without blocks, None if nothing of it is left."""
        if isinstance(stmt, SBlockRealize):
            return self._block(stmt)
        if isinstance(stmt, For):
            return self._loop(stmt)
        if isinstance(stmt, SeqStmt):
            return sequence([self.stmt(s) for s in stmt.seq])
        if isinstance(stmt, IfThenElse):
            then, other = self.stmt(stmt.then_case), stmt.else_case and self.stmt(stmt.else_case)
            return guarded(self.expr(stmt.condition), then, other)
        if isinstance(stmt, tirx.BufferStore):
            indices = [self.index(i) for i in stmt.indices]
            return tirx.BufferStore(stmt.buffer, self.expr(stmt.value), indices)
        raise UnsupportedError(f"statement: {type(stmt).__name__} can't be placed on DPUs")

    def _block(self, realize: SBlockRealize) -> Stmt | None:
        block = realize.block
        if block.iter_vars or block.match_buffers or block.init is not None:
            raise UnsupportedError(f"block {block.name_hint}: match_buffer or init is left in it")
        self.buffers.extend(block.alloc_buffers)
        self.outside |= {buffer: frozenset(self.around) for buffer in block.alloc_buffers}
        body = self.stmt(block.body)
        form = int(block.annotations.get(ANNOTATE_MULTIPLY, MULTIPLY_LIBRARY))
        if form != MULTIPLY_LIBRARY:
            body = mark_products(body, form)
        return guarded(self.expr(realize.predicate), body, None)

    def _loop(self, loop: For) -> Stmt | None:
        if not isinstance(loop.extent, tirx.IntImm):
            raise UnsupportedError(
                f"loop {loop.loop_var.name}: extent {loop.extent} is not constant"
            )
        extent = int(loop.extent)
        if extent == 1:
            self.units[loop.loop_var] = self.index(loop.min)
            return self.stmt(loop.body)
        self.ranges[loop.loop_var] = (0, extent - 1)
        self.around.append(loop.loop_var)
        body = self.stmt(loop.body)
        self.around.pop()
        return None if body is None else with_body(loop, body)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        return tvm_ffi.structural_mutate(expr, list(self._rows))

    def index(self, expr: ir.Expr) -> ir.Expr:
        expr = tvm_ffi.structural_map(expr, [(tirx.Var, lambda v: self.units.get(v, v))])
        linear = affine(expr, self.ranges)
        return self.simplify(self.expr(expr)) if linear is None else linear.expr(str(expr.ty))

    def simplify(self, expr: ir.Expr) -> ir.Expr:
        """TVM's simplifier, for what is not linear: costs tens of microseconds."""
        if self._analyzer is None:
            self._analyzer = sym.Analyzer()
        for var, (low, high) in self.ranges.items():
            self._analyzer.bind(var, ir.Range(low, high + 1), allow_override=True)
        return self._analyzer.simplify(expr)

    def _load(self, load: ir.TensorLoad, _: object) -> ir.Expr:
        return tirx.BufferLoad(load.source, [self.index(i) for i in load.indices])

    def _condition(self, expr: ir.Expr, mutator: tvm_ffi.StructuralMutator) -> ir.Expr:
        """A conjunction without what always holds, comparisons in the form `terms < constant`."""
        if isinstance(expr, tirx.And):
            return conjunction([*conjuncts(self.expr(expr.a)), *conjuncts(self.expr(expr.b))])
        mapped = tvm_ffi.structural_map(expr, [(tirx.Var, lambda v: self.units.get(v, v))])
        form = below_zero(mapped, self.ranges)
        if form is None:
            return mutator.default_mutate(expr)
        bounds = form.bounds(self.ranges)
        if bounds is not None and bounds[1] < 0:
            return tirx.IntImm("bool", 1)
        if bounds is not None and bounds[0] >= 0:
            return tirx.IntImm("bool", 0)
        return less(coarsest(form, self.ranges), str(mapped.a.ty))


def mark_products(body: Stmt | None, form: int) -> Stmt | None:
    """S[i] += a * b -> S[i] += mul_FORM(a, b) where the form fits the types."""

    def mark(store: tirx.BufferStore) -> tirx.BufferStore:
        product = product_of(store)
        if product is None or form not in product.forms:
            return store
        factors = [product.left, product.right]
        if form == MULTIPLY_STEPS_SECOND:
            factors.reverse()
        call = tirx.call_pure_extern(product.dtype, PRODUCT_MARKS[form], *factors)
        return tirx.BufferStore(store.buffer, tirx.Add(store.value.a, call), list(store.indices))

    return None if body is None else tvm_ffi.structural_map(body, [(tirx.BufferStore, mark)])


def operation(call: ir.Call) -> str:
    """A call's operation without its dialect: 'exp' for tirx.exp, 'likely' for prim.likely."""
    return str(getattr(call.op, "name", "")).rpartition(".")[2]


def conjuncts(condition: ir.Expr) -> list[ir.Expr]:
    """The parts of a conjunction; [] if it always holds."""
    if isinstance(condition, tirx.And):
        return conjuncts(condition.a) + conjuncts(condition.b)
    if isinstance(condition, ir.Call) and operation(condition) == "likely":
        return conjuncts(condition.args[0])
    if isinstance(condition, tirx.IntImm) and int(condition.value) != 0:
        return []
    return [condition]


def conjunction(parts: Sequence[ir.Expr]) -> ir.Expr:
    """The conjunction of the parts, without duplicates; true if there are none."""
    unique: list[ir.Expr] = []
    for part in parts:
        if not any(tvm_ffi.structural_equal(part, other) for other in unique):
            unique.append(part)
    if not unique:
        return tirx.IntImm("bool", 1)
    result = unique[0]
    for part in unique[1:]:
        result = tirx.And(result, part)
    return result


def sequence(stmts: Sequence[Stmt | None]) -> Stmt | None:
    """Statements in order, flat; None if there are none."""
    flat: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, SeqStmt):
            flat.extend(stmt.seq)
        elif stmt is not None:
            flat.append(stmt)
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else SeqStmt(flat)


def guarded(condition: ir.Expr, then: Stmt | None, other: Stmt | None = None) -> Stmt | None:
    """`if (condition) then else other`, folded where the condition is constant."""
    parts = conjuncts(condition)
    if not parts:
        return then
    if len(parts) == 1 and isinstance(parts[0], tirx.IntImm):
        return other
    if then is None:
        return None if other is None else IfThenElse(tirx.Not(condition), other, None)
    if other is None and isinstance(then, IfThenElse) and then.else_case is None:
        return IfThenElse(conjunction([*parts, *conjuncts(then.condition)]), then.then_case, None)
    return IfThenElse(conjunction(parts), then, other)


def with_body(loop: For, body: Stmt, extent: ir.Expr | None = None) -> For:
    """The same loop around another body, perhaps with another extent."""
    return For(
        loop.loop_var,
        loop.min,
        loop.extent if extent is None else extent,
        loop.kind,
        body,
        loop.thread_binding,
        loop.annotations,
    )
