"""Candidates: every loop nest of a lowered model with what it reads, writes and computes.

`read_graph` turns the lowered Relax function into plain values: nests in program order, and the
values between them. A nest's bytes are those of the regions it touches, not of whole buffers; its
operations are those on values, not on indices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, relax, s_tir, sym, tirx

from atim.errors import UnsupportedError
from atim.offload.imported import State
from atim.offload.split import REDUCE, root_nests
from atim.offload.state import Update, read_update
from atim.schedules import Program, analyse

__all__ = ["Features", "Graph", "Nest", "Value", "features_of", "item_bytes", "read_graph"]

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Max", "Min", "FloorDiv", "FloorMod")


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph. kind: input, parameter, state (before the call), nest (made by one) or
    host (by anything else); position: of the function's parameters."""

    name: str
    kind: str
    shape: tuple[Any, ...]
    dtype: str
    position: int = -1

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * item_bytes(self.dtype) if self.is_static else 0

    @property
    def is_static(self) -> bool:
        return all(isinstance(n, int) for n in self.shape)


@dataclass(frozen=True, slots=True)
class Features:
    """What a nest does, in all its iterations.

    kind        mtv, mmtv, gemm, reduction, elementwise, copy; what no DPU can run: indirect,
                dynamic, opaque
    spatial     iterations of parallel loops; reduced: of reductions, for each of those
    read_bytes, write_bytes  by buffer name
    operations  (kind, dtype) -> count; kinds are those of TIR in lower case
    dtype       the type most operations are in
    """

    kind: str
    spatial: int
    reduced: int
    read_bytes: Mapping[str, int]
    write_bytes: Mapping[str, int]
    operations: Mapping[tuple[str, str], int]
    dtype: str
    why_not: str = ""

    @property
    def reads(self) -> int:
        return sum(self.read_bytes.values())

    @property
    def writes(self) -> int:
        return sum(self.write_bytes.values())

    @property
    def arithmetic(self) -> int:
        return sum(self.operations.values())

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.arithmetic / max(self.reads + self.writes, 1)


@dataclass(frozen=True)
class Nest:
    """One call of a one-nest function: its values in the order of the function's parameters."""

    index: int
    name: str
    function: str
    func: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    features: Features

    @cached_property
    def key(self) -> str:
        """Equal for nests of equal structure, in every process."""
        return f"{tvm_ffi.structural_hash(self.func):016x}"

    @cached_property
    def program(self) -> Program:
        """For DPUs. Raises UnsupportedError."""
        return analyse(self.func)


@dataclass(frozen=True)
class Graph:
    """Nests in program order; `values` by name; `outputs` of the model; `others`: Relax calls that
    are no nests (views, PyTorch operators) as (name, inputs, outputs); `updates` of whole rows by
    the value they make; `after`: a state's value before the call -> after it."""

    nests: tuple[Nest, ...]
    values: Mapping[str, Value]
    outputs: tuple[str, ...]
    others: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
    updates: Mapping[str, Update] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)

    def kept(self, value: str) -> Update | None:
        """The update that made a value, if it is all that happens to a state in a call."""
        update = self.updates.get(value)
        return update if update is not None and self.after.get(update.base) == value else None

    def is_in_place(self, update: Update) -> bool:
        """Nothing but the update reads the state as it was."""
        after = self.after.get(update.base)
        if after is None or self.kept(after) != update or update.base in self.outputs:
            return False
        readers = sum(inputs.count(update.base) for _, inputs, _ in self.others)
        return not self.consumers(update.base) and readers == 1

    def consumers(self, value: str) -> list[int]:
        """Nests that read a value."""
        return [n.index for n in self.nests if value in n.inputs]

    def leaves(self, value: str) -> bool:
        """True when something besides nests needs the value."""
        return value in self.outputs or any(value in inputs for _, inputs, _ in self.others)


def item_bytes(dtype: str) -> int:
    """Bytes of an element; booleans take one."""
    return max(int(tvm.DataType(dtype).bits) // 8, 1)


def read_graph(module: Any, states: Sequence[State] = ()) -> Graph:
    """The graph of a lowered module's main function."""
    return _Reader(module, states).read()


class _Reader:
    """Follows the bindings; names are those of the Relax variables, made unique by position."""

    def __init__(self, module: Any, states: Sequence[State]) -> None:
        self.module, self.states = module, states
        self.updates: dict[str, Update] = {}
        self.names: dict[Any, tuple[str, ...]] = {}
        self.values: dict[str, Value] = {}
        self.nests: list[Nest] = []
        self.others: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
        self.features: dict[str, Features] = {}

    def read(self) -> Graph:
        main = self.module["main"]
        inputs = int((main.attrs or {}).get("num_input", len(main.params)))
        kept = {inputs + s.parameter for s in self.states}
        for position, parameter in enumerate(main.params):
            kind = "input" if position < inputs else "parameter"
            self.define(parameter, "state" if position in kept else kind, position)
        for block in main.body.blocks:
            for binding in block.bindings:
                self.bind(binding.var, binding.value)
        outputs = self.of(main.body.body)
        after = {
            self.names[main.params[inputs + s.parameter]][0]: outputs[s.output]
            for s in self.states
            if s.output < len(outputs)
        }
        others = tuple(self.others)
        return Graph(tuple(self.nests), self.values, outputs, others, self.updates, after)

    def define(self, variable: Any, kind: str, position: int = -1) -> tuple[str, ...]:
        """Names of the tensors of a variable (several for a tuple)."""
        kinds = variable.ty.fields if hasattr(variable.ty, "fields") else [variable.ty]
        stem = f"{len(self.names)}:{variable.name}"
        names = []
        for number, ty in enumerate(kinds):
            name = stem if len(kinds) == 1 else f"{stem}.{number}"
            sizes = [int(n) if isinstance(n, tirx.IntImm) else str(n) for n in _sizes(ty)]
            dtype = str(getattr(ty, "dtype", None) or "int64")
            self.values[name] = Value(name, kind, tuple(sizes), dtype, position)
            names.append(name)
        self.names[variable] = tuple(names)
        return tuple(names)

    def of(self, expr: Any) -> tuple[str, ...]:
        """Names of the values in an expression."""
        if isinstance(expr, relax.Tuple):
            return tuple(name for item in expr.fields for name in self.of(item))
        return self.names.get(expr, ()) if isinstance(expr, ir.Var) else ()

    def bind(self, variable: Any, value: Any) -> None:
        if isinstance(value, relax.TupleGetItem):
            self.names[variable] = (self.of(value.tuple_value)[int(value.index)],)
        elif isinstance(value, ir.Var | relax.Tuple):
            self.names[variable] = self.of(value)
        elif getattr(getattr(value, "op", None), "name", "") == "relax.call_tir":
            self.add_nest(variable, value)
        else:
            inputs = tuple(n for a in getattr(value, "args", ()) for n in self.of(a))
            name = str(getattr(getattr(value, "op", None), "name", type(value).__name__))
            update = read_update(value, self.of)
            outputs = self.define(variable, "host")
            self.others.append((name, inputs, outputs))
            if update is not None:
                self.updates[outputs[0]] = update

    def add_nest(self, variable: Any, call: Any) -> None:
        function = str(call.args[0].name_hint)
        func = self.module[call.args[0]]
        inputs = self.of(call.args[1])
        outputs = self.define(variable, "nest")
        if function not in self.features:
            self.features[function] = features_of(func)
        features = self.features[function]
        if len(inputs) != len(call.args[1].fields) and not features.why_not:
            features = replace(features, why_not="an operand is a constant of the program")
        index = len(self.nests)
        name = f"{index} {function}"
        nest = Nest(index, name, function, func, inputs, outputs, features)
        self.nests.append(nest)


def _sizes(ty: Any) -> list[Any]:
    shape = getattr(ty, "shape", None)
    return list(shape) if shape is not None else []


def features_of(func: Any) -> Features:
    """Counts of a one-nest function; a nest that can't be counted is opaque or dynamic."""
    nests = root_nests(func)
    blocks: list[Any] = []
    for nest in nests:
        tvm_ffi.structural_walk(nest, (s_tir.SBlock, blocks.append), order="pre")
    blocks = [b for b in blocks if len(b.iter_vars) or len(b.writes)]
    if not blocks:
        return Features("opaque", 1, 1, {}, {}, {}, "", "no blocks")
    sizes = [iv.dom.extent for b in blocks for iv in b.iter_vars]
    shapes = [n for p in func.params if tirx.is_buffer_var(p) for n in p.shape]
    if not all(isinstance(n, tirx.IntImm) for n in [*sizes, *shapes]):
        return Features("dynamic", 1, 1, {}, {}, {}, "", "sizes known only when it runs")
    reads, writes = _regions(func, nests)
    operations: Counter[tuple[str, str]] = Counter()
    indirect, spatial, reduced = False, 1, 1
    for block in blocks:
        extents = [(int(iv.iter_type) == REDUCE, int(iv.dom.extent)) for iv in block.iter_vars]
        times = prod(n for _, n in extents)
        spatial = max(spatial, prod(n for is_reduced, n in extents if not is_reduced))
        reduced = max(reduced, prod(n for is_reduced, n in extents if is_reduced))
        found, looks_up = _operations(block)
        indirect |= looks_up
        for operation, count in found.items():
            operations[operation] += count * times
    if indirect:  # rows of a table: no more than the elements that are stored
        reads = {n: min(b, spatial * reduced * 8) for n, b in reads.items()}
    kind, why = _kind(func, indirect, len(blocks))
    dtypes: Counter[str] = Counter()
    for (_, dtype), count in operations.items():
        dtypes[dtype] += count
    dtype = dtypes.most_common(1)[0][0] if dtypes else str(func.params[-1].dtype)
    if kind == "elementwise" and not operations:
        kind = "copy"
    return Features(kind, spatial, reduced, reads, writes, dict(operations), dtype, why)


def _regions(func: Any, nests: list[Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of the parts of each buffer that are read and written."""
    analyzer = sym.Analyzer()
    buffers = {p: p for p in func.params if tirx.is_buffer_var(p)}
    found: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for nest in nests:
        wrapped = s_tir.SBlock([], [], [], "all", nest)
        regions = s_tir.analysis.get_sblock_access_region(wrapped, buffers)
        for result, side in zip(found, regions, strict=False):
            for region in side:
                source = region.source
                whole = prod(int(n) for n in source.shape)
                extents = [analyzer.simplify(r.extent) for r in region.region]
                known = [int(n) if isinstance(n, tirx.IntImm) else whole for n in extents]
                nbytes = min(prod(known), whole) * item_bytes(str(source.dtype))
                result[str(source.name)] = max(result.get(str(source.name), 0), nbytes)
    return found


def _operations(block: Any) -> tuple[Counter[tuple[str, str]], bool]:
    """Operations on values in one iteration, and whether an index is itself looked up."""
    counts: Counter[tuple[str, str]] = Counter()
    looks_up = [False]

    def visit(expr: Any) -> None:
        if isinstance(expr, ir.TensorLoad):
            for index in expr.indices:
                tvm_ffi.structural_walk(
                    index,
                    (ir.TensorLoad, lambda _: looks_up.__setitem__(0, True)),
                    order="pre",
                )
            return
        name = type(expr).__name__
        children = [getattr(expr, a) for a in ("a", "b", "value") if hasattr(expr, a)]
        if name in ARITHMETIC:
            counts[name.lower(), str(expr.ty)] += 1
        elif isinstance(expr, ir.Call):
            label = str(getattr(expr.op, "name", "call")).rsplit(".", 1)[-1]
            children = list(expr.args)
            if label == "if_then_else":
                children = children[1:]
            else:
                counts[label, str(expr.ty)] += 1
        elif isinstance(expr, tirx.Select):
            children = [expr.true_value, expr.false_value]
        elif isinstance(expr, tirx.IntImm | tirx.FloatImm):
            children = []
        for child in children:
            if isinstance(child, ir.Expr):
                visit(child)

    stores: list[Any] = []
    tvm_ffi.structural_walk(block.body, (tirx.BufferStore, stores.append), order="pre")
    for store in stores:
        visit(store.value)
    return counts, looks_up[0]


def _kind(func: Any, indirect: bool, blocks: int) -> tuple[str, str]:
    """(kind, why DPUs can't run it)."""
    if indirect:
        return "indirect", "positions are looked up in a tensor"
    try:
        program = analyse(func)
    except UnsupportedError as error:
        return ("elementwise" if blocks == 1 else "opaque"), str(error)
    scalars = [p.name for p in func.params if tirx.is_buffer_var(p) and len(p.shape) == 0]
    why = f"{scalars[0]} is a scalar" if scalars else ""
    if not program.spatial:
        why = "one result only"
    if not program.reduction:
        return "elementwise", why
    if len(program.inputs) != 2:
        return "reduction", why
    long = [a for a in program.spatial if program.axes[a].extent > 1]
    shared = [a for a in long if all(o.uses(a) for o in program.inputs)]
    own = [[a for a in long if o.uses(a) and a not in shared] for o in program.inputs]
    if all(own):
        return "gemm", why
    return ("mmtv" if shared else "mtv"), why
