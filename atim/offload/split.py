"""PrimFuncs of several loop nests -> PrimFuncs of one root nest each; their Relax calls likewise.

First element-wise producers are inlined where that repeats no costly work. Then the root's children
become functions of their own; children that write the same buffer stay together. Buffers between
nests become Relax values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, relax, s_tir, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

__all__ = ["inline_elementwise", "root_nests", "split_function", "split_nests"]

REDUCE = 2  # IterVar kind of TVM
COSTLY = ("exp", "tanh", "erf", "pow", "log", "sqrt", "rsqrt", "sigmoid", "sin", "cos")
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Max", "Min")


def root_nests(func: Any) -> list[Any]:
    """The children of the root block, none when the function has no blocks."""
    if not isinstance(func.body, s_tir.SBlockRealize):
        return []
    body = func.body.block.body
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def _element_wise(block: Any) -> bool:
    return block.init is None and all(int(iv.iter_type) != REDUCE for iv in block.iter_vars)


def _work(block: Any) -> tuple[int, int]:
    """(arithmetic operations on values, calls of costly functions) of one iteration."""
    counts = [0, 0]

    def visit(node: Any) -> None:
        if isinstance(node, ir.Call):
            name = str(getattr(node.op, "name", "")).rsplit(".", 1)[-1]
            counts[1] += name in COSTLY
        elif type(node).__name__ in ARITHMETIC:
            counts[0] += str(node.ty).startswith(("float", "bfloat"))

    tvm_ffi.structural_walk(block.body, (ir.Expr, visit), order="pre")
    return counts[0], counts[1]


def _iterations(block: Any) -> float:
    sizes = [iv.dom.extent for iv in block.iter_vars]
    return float(prod(int(n) if isinstance(n, tirx.IntImm) else 1 for n in sizes))


def _may_inline(block: Any, consumers: list[Any]) -> bool:
    arithmetic, costly = _work(block)
    if costly and (len(consumers) != 1 or not _element_wise(consumers[0])):
        return False
    reductions = [c for c in consumers if not _element_wise(c)]
    repeated = any(_iterations(c) > _iterations(block) for c in reductions)
    return bool(consumers) and not (arithmetic and repeated)


def inline_elementwise(func: Any) -> Any:
    """Inline element-wise blocks into their consumers, unless that repeats work worth a buffer."""
    schedule = s_tir.Schedule(func, debug_mask="none", error_render_level="none")
    refused: set[str] = set()
    while True:
        handle = _next_inline(schedule, refused)
        if handle is None:
            return schedule.mod["main"]
        try:
            schedule.compute_inline(handle)
        except tvm.s_tir.ScheduleError:
            refused.add(str(schedule.get(handle).name_hint))


def _next_inline(schedule: Any, refused: set[str]) -> Any | None:
    handles = schedule.get_child_blocks(schedule.get_sblock("root"))
    blocks = [schedule.get(handle) for handle in handles]
    parameters = schedule.mod["main"].params
    for handle, block in zip(handles, blocks, strict=True):
        if str(block.name_hint) in refused or not _element_wise(block) or len(block.writes) != 1:
            continue
        buffer = block.writes[0].source
        if any(buffer.same_as(p) for p in parameters):
            continue
        consumers = [
            other
            for other in blocks
            if not other.same_as(block) and any(r.source.same_as(buffer) for r in other.reads)
        ]
        if _may_inline(block, consumers):
            return handle
    return None


@dataclass
class _Part:
    """Nests that become one function: what they read and write."""

    nests: list[Any]
    reads: list[Any]
    writes: list[Any]

    def absorb(self, other: _Part) -> None:
        self.nests += other.nests
        self.reads += [b for b in other.reads if not _holds(self.reads, b)]
        self.writes += [b for b in other.writes if not _holds(self.writes, b)]


def _holds(buffers: Any, wanted: Any) -> bool:
    """By identity: names of buffers repeat."""
    return any(buffer.same_as(wanted) for buffer in buffers)


def _accesses(nest: Any) -> _Part:
    part, own = _Part([nest], [], []), []

    def read(load: Any) -> None:
        if not _holds(part.reads, load.source):
            part.reads.append(load.source)

    def write(store: Any) -> None:
        if not _holds(part.writes, store.buffer):
            part.writes.append(store.buffer)

    tvm_ffi.structural_walk(
        nest,
        [
            (s_tir.SBlock, lambda block: own.extend(block.alloc_buffers)),
            (ir.TensorLoad, read),
            (tirx.BufferStore, write),
        ],
        order="pre",
    )
    part.reads = [b for b in part.reads if not _holds(own, b)]
    part.writes = [b for b in part.writes if not _holds(own, b)]
    return part


def _parts(func: Any) -> list[_Part]:
    """Nests in order; one that writes what an earlier one writes joins it, with all in between."""
    parts: list[_Part] = []
    for nest in root_nests(func):
        part = _accesses(nest)
        hits = [n for n, p in enumerate(parts) if any(_holds(p.writes, w) for w in part.writes)]
        if hits:
            for later in [*parts[hits[0] + 1 :], part]:
                parts[hits[0]].absorb(later)
            del parts[hits[0] + 1 :]
        else:
            parts.append(part)
    return parts


def split_function(func: Any) -> list[tuple[Any, list[Any], list[Any]]]:
    """(function, its inputs, its outputs as buffers of `func`) for each nest, in order."""
    parts = _parts(func)
    scalars = [p for p in func.params if not tirx.is_buffer_var(p)]
    result = []
    for number, part in enumerate(parts):
        later = [b for other in parts[number + 1 :] for b in other.reads]
        outputs = [w for w in part.writes if _holds(func.params, w) or _holds(later, w)]
        if not outputs:
            continue  # nobody reads what it makes
        private = [w for w in part.writes if not _holds(outputs, w)]
        inputs = [r for r in part.reads if not _holds(part.writes, r)] + scalars
        body = tirx.SeqStmt(part.nests) if len(part.nests) > 1 else part.nests[0]
        block = s_tir.SBlock([], [], [], "root", body, alloc_buffers=private)
        realize = s_tir.SBlockRealize([], True, block)
        piece = tirx.PrimFunc([*inputs, *outputs], realize, attrs=func.attrs)
        result.append((s_tir.renew_defs(piece), inputs, outputs))
    return result


@mutator
class _Splitter(PyExprMutator):  # type: ignore[misc]
    """Replaces each call of a function with several nests by one call a nest."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.module = module
        self.known: dict[str, list[tuple[Any, list[Any], list[Any]]]] = {}
        self.functions: dict[str, Any] = {}

    def pieces(self, var: Any) -> list[tuple[Any, list[Any], list[Any]]]:
        """(new global variable, inputs, outputs) of each nest of a function."""
        name = str(var.name_hint)
        if name not in self.known:
            func = self.module[var]
            nests = root_nests(func)
            if len(nests) > 1:
                func = inline_elementwise(func)
            found = split_function(func) if len(root_nests(func)) > 1 else []
            self.functions[name] = func
            self.known[name] = [
                (self.add(piece, f"{name[:40]}_{number}"), inputs, outputs)
                for number, (piece, inputs, outputs) in enumerate(found)
            ]
            if not found and len(nests) > 1:
                params, outputs = list(func.params), _outputs(func)
                inputs = [p for p in params if not _holds(outputs, p)]
                self.known[name] = [(self.add(func, f"{name[:40]}_0"), inputs, outputs)]
        return self.known[name]

    def add(self, func: Any, name: str) -> Any:
        func = func.without_attr("global_symbol").with_attr("tirx.noalias", True)
        return self.builder_.add_func(func, name)

    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") != "relax.call_tir" or len(call.args) > 2:
            return call
        pieces = self.pieces(call.args[0])
        if not pieces:
            return call
        parameters = list(self.functions[str(call.args[0].name_hint)].params)
        given = list(call.args[1].fields)
        values = list(zip(parameters, given, strict=False))
        for var, inputs, outputs in pieces:
            types = [_type(buffer, values) for buffer in outputs]
            arguments = relax.Tuple([_value(values, b) for b in inputs])
            result = relax.call_tir(var, arguments, types if len(types) > 1 else types[0])
            result = self.builder_.emit(result)
            if len(types) == 1:
                values.append((outputs[0], result))
            for position, buffer in enumerate(outputs if len(types) > 1 else ()):
                item = self.builder_.emit(relax.TupleGetItem(result, position))
                values.append((buffer, item))
        results = [_value(values, b) for b in parameters[len(given) :]]
        return results[0] if len(results) == 1 else relax.Tuple(results)


def _outputs(func: Any) -> list[Any]:
    written = [w for part in _parts(func) for w in part.writes]
    return [p for p in func.params if _holds(written, p)]


def _value(values: list[tuple[Any, Any]], buffer: Any) -> Any:
    return next(value for known, value in values if known.same_as(buffer))


def _type(buffer: Any, values: list[tuple[Any, Any]]) -> Any:
    """The Relax type of a buffer whose sizes may be those of other values, or scalars."""

    sizes: list[tuple[Any, Any]] = []
    for known, value in values:
        if not tirx.is_buffer_var(known):
            sizes.append((known, value))
        elif hasattr(value.ty, "shape") and value.ty.shape is not None:
            pairs = zip(known.shape, value.ty.shape, strict=True)
            sizes += [(own, given) for own, given in pairs if isinstance(own, tirx.Var)]

    def size(expr: Any) -> Any:
        if isinstance(expr, tirx.IntImm):
            return int(expr)

        def known_value(variable: Any) -> Any:
            return next((given for own, given in sizes if own.same_as(variable)), variable)

        return tvm_ffi.structural_map(expr, (tirx.Var, known_value))

    return relax.TensorType([size(n) for n in buffer.shape], str(buffer.dtype))


def split_nests(module: Any) -> Any:
    """Every `call_tir` of the module calls a function of one root nest afterwards."""
    splitter = _Splitter(module)
    for var, func in list(module.functions.items()):
        if isinstance(func, relax.Function):
            splitter.builder_.update_func(var, splitter.visit_expr(func))
    return relax.transform.DeadCodeElimination()(splitter.builder_.get())
