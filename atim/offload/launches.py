"""What can run on DPUs as one launch: a nest, an anchor with its epilogue, or GEMVs stacked.

A `Launch` is a tensor program for the tuner with the graph's values bound to its tensors. Products
of a matrix and a vector become the table's `mtv`, whatever unit dimensions or transposed weights
the model has, so that equal ones are tuned once. Weights (parameters) are resident.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import s_tir, tirx

from atim import workloads
from atim.errors import UnsupportedError
from atim.offload.nests import Graph, Nest, Value
from atim.offload.split import root_nests
from atim.offload.state import Kept
from atim.schedules import analyse
from atim.schedules.normal import normal

__all__ = ["BETWEEN", "RESULT", "Launch", "Operand", "Part", "launches_of"]

Array = NDArray[Any]

# a launch costs more than a host call: nests with fewer iterations are no candidates
LEAST_ITERATIONS = 4096
# what the table's mtv sums in (workloads.py)
MTV_SUMS = {"int8": "int32", "int32": "int32", "float32": "float32"}


# what a chain calls the value that stays, and what it makes
BETWEEN, RESULT = "between", "result"


@dataclass(frozen=True, slots=True)
class Operand:
    """An input tensor of the program: the values that make it (stacked along the first axis),
    turned first if they hold the transposed matrix. kept: a state in MRAM, of which a call sends
    the rows that it writes."""

    tensor: str
    shape: tuple[int, ...]
    values: tuple[str, ...]
    resident: bool
    transposed: bool = False
    kept: Kept | None = None

    @property
    def sent(self) -> tuple[str, ...]:
        """Values that a call hands over."""
        if self.kept is not None:
            return self.kept.update.sent
        return () if self.resident else self.values

    def gather(self, arrays: list[Array]) -> Array:
        """The tensor of its values."""
        parts = [a.reshape(a.shape[-2:]).T if self.transposed else a for a in arrays]
        if len(parts) > 1:
            parts = [p.reshape(-1, self.shape[-1]) for p in parts]
            return np.ascontiguousarray(np.concatenate(parts).reshape(self.shape))
        return np.ascontiguousarray(parts[0].reshape(self.shape))


@dataclass(frozen=True)
class Part:
    """A kernel of a chain. values: its tensors -> names in the chain; resident: its tensors that
    lie in MRAM when it starts."""

    func: Any
    values: Mapping[str, str]
    resident: tuple[str, ...]


@dataclass(frozen=True)
class Launch:
    """One kernel, or two in turn. members: nests by index; outputs: values that its result holds,
    one after the other; form: "nest", "epilogue", "stack", or "chain": two kernels of one program,
    `parts` (then `func` is None), the second reads `stays` where the first left it."""

    form: str
    members: tuple[int, ...]
    func: Any
    operands: tuple[Operand, ...]
    outputs: tuple[str, ...]
    parts: tuple[Part, ...] = ()
    stays: str = ""

    @property
    def resident(self) -> tuple[str, ...]:
        return tuple(o.tensor for o in self.operands if o.resident)

    @cached_property
    def key(self) -> str:
        """Equal for equal programs with equal residents, in every process."""
        if self.parts:
            texts = [
                f"{tvm_ffi.structural_hash(p.func):016x} {p.values} resident {p.resident}"
                for p in self.parts
            ]
            return "\n".join(texts)
        names = ",".join(str(p.name) for p in self.func.params)
        digest = tvm_ffi.structural_hash(self.func)
        kept = [(o.tensor, o.kept) for o in self.operands if o.kept is not None]
        rows = "".join(f" {t} {k.rows} rows of {k.shape} axis {k.update.axis}" for t, k in kept)
        return f"{digest:016x} {names} resident {','.join(self.resident)}{rows}"


def launches_of(graph: Graph) -> tuple[Launch, ...]:
    """Every launch that placement may choose."""
    singles = {}
    for nest in graph.nests:
        launch = _single(graph, nest)
        if launch is not None:
            singles[nest.index] = launch
    epilogues = [_with_epilogue(graph, graph.nests[i]) for i in singles]
    found = [*singles.values(), *(e for e in epilogues if e is not None)]
    return (*found, *_stacks(graph, singles), *_chains(graph, found))


def why_not(graph: Graph, nest: Nest) -> str:
    """Why a nest is no candidate, empty when it is one."""
    f = nest.features
    if f.why_not:
        return f.why_not
    if f.spatial * f.reduced < LEAST_ITERATIONS:
        return f"{f.spatial * f.reduced:,} iterations, at least {LEAST_ITERATIONS:,} needed"
    if len(nest.outputs) != 1:
        return "several results"
    types = {graph.values[v].dtype for v in (*nest.inputs, *nest.outputs)}
    odd = sorted(t for t in types if t in ("bool", "float16", "bfloat16"))
    return f"{odd[0]} is not supported on DPUs" if odd else ""


def _single(graph: Graph, nest: Nest) -> Launch | None:
    if why_not(graph, nest):
        return None
    if nest.features.kind == "mtv":
        launch = _matrix_vector(graph, nest)
        if launch is not None:
            return launch
    return _as_written(graph, nest)


def _as_written(graph: Graph, nest: Nest) -> Launch:
    func = _canonical(nest.func)
    values = [graph.values[v] for v in nest.inputs]
    operands = tuple(_plain(graph, p, v) for p, v in zip(func.params, values, strict=False))
    return Launch("nest", (nest.index,), func, operands, nest.outputs)


def _plain(graph: Graph, parameter: Any, value: Value) -> Operand:
    return _operand(graph, str(parameter.name), tuple(int(n) for n in parameter.shape), value)


def _operand(graph: Graph, tensor: str, shape: tuple[int, ...], value: Value) -> Operand:
    """Weights and kept states are resident."""
    update = graph.kept(value.name)
    if update is None:
        return Operand(tensor, shape, (value.name,), value.kind == "parameter")
    rows = int(graph.values[update.rows].shape[update.axis])
    kept = Kept(update, tuple(int(n) for n in value.shape), rows)
    return Operand(tensor, shape, (value.name,), True, kept=kept)


def _matrix_vector(graph: Graph, nest: Nest) -> Launch | None:
    """y = A x as the table has it, if that is all the nest does."""
    program = nest.program
    result = program.output
    long = [a for a in program.spatial if program.axes[a].extent > 1]
    plain = {op for op, _, _ in program.operations} <= {"add", "mul", "cast"}
    if len(long) > 1 or len(program.reduction) != 1 or program.epilogue or not plain:
        return None
    row, column = (long or [program.spatial[-1]])[0], program.reduction[0]
    matrix = [o for o in program.inputs if o.uses(row)]
    vector = [o for o in program.inputs if not o.uses(row)]
    if len(matrix) != 1 or len(vector) != 1 or matrix[0].dtype != vector[0].dtype:
        return None
    rows, columns = program.axes[row].extent, program.axes[column].extent
    if MTV_SUMS.get(matrix[0].dtype) != result.dtype or any(matrix[0].offset):
        return None
    if prod(matrix[0].shape) != rows * columns or prod(vector[0].shape) != columns:
        return None
    used = [next((a for a in (row, column) if index[a]), -1) for index in matrix[0].index]
    order = [a for a, size in zip(used, matrix[0].shape, strict=True) if size > 1]
    transposed = order == [column, row]
    if not transposed and order not in ([row, column], [row], [column]):
        return None
    names = [str(p.name) for p in nest.func.params]
    a, x = (graph.values[nest.inputs[names.index(o.name)]] for o in (matrix[0], vector[0]))
    if transposed and a.kind != "parameter":
        return None  # turning it on every call would cost more than the product
    func = workloads.get("mtv", (rows, columns), matrix[0].dtype).func
    matrix_operand = _operand(graph, "A", (rows, columns), a)
    operands = (
        replace(matrix_operand, transposed=transposed),
        _operand(graph, "x", (columns,), x),
    )
    return Launch("nest", (nest.index,), func, operands, nest.outputs)


def _stacks(graph: Graph, singles: dict[int, Launch]) -> list[Launch]:
    """All GEMVs with resident weights that read one vector, as one with their rows stacked."""
    groups: dict[tuple[str, str, int], list[Launch]] = {}
    for launch in singles.values():
        tensors = [o.tensor for o in launch.operands]
        a, x = launch.operands if tensors == ["A", "x"] else (None, None)
        if a is not None and x is not None and a.resident and a.kept is None:
            dtype = graph.values[a.values[0]].dtype
            groups.setdefault((x.values[0], dtype, a.shape[1]), []).append(launch)
    found = []
    for (vector, dtype, columns), members in groups.items():
        if len(members) < 2:
            continue
        rows = sum(m.operands[0].shape[0] for m in members)
        matrices = tuple(m.operands[0].values[0] for m in members)
        if len({m.operands[0].transposed for m in members}) > 1:
            continue
        a = Operand("A", (rows, columns), matrices, True, members[0].operands[0].transposed)
        x = Operand("x", (columns,), (vector,), False)
        func = workloads.get("mtv", (rows, columns), dtype).func
        indices = tuple(m.members[0] for m in members)
        outputs = tuple(m.outputs[0] for m in members)
        found.append(Launch("stack", indices, func, (a, x), outputs))
    return found


def _with_epilogue(graph: Graph, nest: Nest) -> Launch | None:
    """A sum and the element-wise nest that alone reads its result, in one kernel."""
    result = nest.outputs[0]
    users = graph.consumers(result)
    if not nest.program.reduction or len(users) != 1 or graph.leaves(result):
        return None
    after = graph.nests[users[0]]
    if after.features.kind != "elementwise" or after.features.why_not or len(after.outputs) != 1:
        return None
    func = _canonical(_joined(nest, after, result))
    try:
        epilogue = analyse(func).epilogue
    except UnsupportedError:
        return None
    if epilogue is None or not epilogue.fused:
        return None
    inputs = dict.fromkeys(nest.inputs) | dict.fromkeys(v for v in after.inputs if v != result)
    values = [graph.values[v] for v in inputs]
    operands = tuple(_plain(graph, p, v) for p, v in zip(func.params, values, strict=False))
    return Launch("epilogue", (nest.index, after.index), func, operands, after.outputs)


def _chains(graph: Graph, launches: list[Launch]) -> list[Launch]:
    """Pairs of which the second alone reads what the first makes."""
    together = {x.members for x in launches}
    found = []
    for first in launches:
        (value,) = first.outputs
        readers = set(graph.consumers(value))
        if not readers or graph.leaves(value):
            continue
        for second in launches:
            if readers <= set(second.members) and (*first.members, *second.members) not in together:
                chain = _chain(graph, first, second, value)
                found += [chain] if chain is not None else []
    return found


def _chain(graph: Graph, first: Launch, second: Launch, value: str) -> Launch | None:
    """Both in one program, in forms that give the value between them one shape."""
    if set(first.members) & set(second.members):
        return None
    if any(o.kept for o in (*first.operands, *second.operands)):
        return None
    pairs = [(a, b) for a in _forms(graph, first) for b in _forms(graph, second)]
    for a, b in pairs:
        shape = tuple(int(n) for n in a.func.params[-1].shape)
        reads = [o for o in b.operands if value in o.values]
        if len(reads) != 1 or reads[0].shape != shape or reads[0].values != (value,):
            continue
        operands: list[Operand] = []
        parts: list[Part] = []
        for launch in (a, b):
            names = {str(launch.func.params[-1].name): BETWEEN if launch is a else RESULT}
            for operand in launch.operands:
                if operand is reads[0]:
                    names[operand.tensor] = BETWEEN
                    continue
                names[operand.tensor] = f"v{len(operands)}"
                operands.append(replace(operand, tensor=names[operand.tensor]))
            there = (*launch.resident, *([reads[0].tensor] if launch is b else []))
            parts.append(Part(launch.func, names, there))
        members = (*first.members, *second.members)
        return Launch("chain", members, None, tuple(operands), b.outputs, tuple(parts), value)
    return None


def _forms(graph: Graph, launch: Launch) -> list[Launch]:
    """The launch, and for a nest the same with the shapes that the model has."""
    nests = [graph.nests[i] for i in launch.members] if launch.form == "nest" else []
    return [launch, *(_as_written(graph, nest) for nest in nests)]


def _joined(nest: Nest, after: Nest, result: str) -> Any:
    """One function that runs both, the value between them private."""
    bound: dict[str, Any] = dict(zip(nest.inputs, nest.func.params, strict=False))
    between = nest.func.params[-1]
    bound[result] = between
    renamed: list[tuple[Any, Any]] = []
    extra = []
    for parameter, value in zip(after.func.params, after.inputs, strict=False):
        if value in bound:
            renamed.append((parameter, bound[value]))
        else:
            bound[value] = parameter
            extra.append(parameter)
    second = [_replaced(n, renamed) for n in root_nests(after.func)]
    body = tirx.SeqStmt([*root_nests(nest.func), *second])
    block = s_tir.SBlock([], [], [], "root", body, alloc_buffers=[between])
    parameters = [*nest.func.params[:-1], *extra, after.func.params[-1]]
    func = tirx.PrimFunc(parameters, s_tir.SBlockRealize([], True, block))
    return s_tir.renew_defs(func)


def _replaced(node: Any, pairs: list[tuple[Any, Any]]) -> Any:
    def other(variable: Any) -> Any:
        return next((new for old, new in pairs if old.same_as(variable)), variable)

    return tvm_ffi.structural_map(node, (tvm.ir.Var, other))


def _canonical(func: Any) -> Any:
    """The function with its tensors called in0, in1, ..., out and 32-bit indices: equal nests of
    different layers are one program to the tuner."""
    fresh = s_tir.renew_defs(func)
    count = len(fresh.params)
    pairs = []
    for number, parameter in enumerate(fresh.params):
        name = "out" if number == count - 1 else f"in{number}"
        shape = [int(n) for n in parameter.shape]
        pairs.append((parameter, tirx.decl_buffer(shape, str(parameter.dtype), name)))
    body = _replaced(fresh.body, pairs)
    func = tirx.PrimFunc([new for _, new in pairs], body).with_attr("global_symbol", "main")
    try:
        return normal(func)
    except UnsupportedError:
        return func  # its price gives the reason
