"""PyTorch, ONNX or Relax -> one Relax function, with its parameters apart and its faults reported.

`torch.export` keeps linear, matmul and attention whole: their decompositions copy weights and
caches. What the importer lacks runs through PyTorch on the host, named with its place in the model.
Updates in place, whose new values the importer drops, become inputs and outputs, which state.py
makes state of.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from atim.errors import UnsupportedError, UsageError
from atim.offload.converters import CONVERTERS, Converter, index_put
from atim.offload.imported import Imported, Place, as_array
from atim.offload.onnx_file import import_onnx
from atim.offload.state import Pairs, keep_state
from atim.offload.structure import Constant, Structure, structure_of

__all__ = ["import_model"]

Array = NDArray[Any]

KEPT_WHOLE = (
    "aten.linear.default",
    "aten.matmul.default",
    "aten.scaled_dot_product_attention.default",
)


def import_model(
    model: Any,
    examples: Sequence[Any],
    *,
    dynamic_shapes: Any | None = None,
    state: str | Pairs | None = None,
    through_torch: frozenset[str] = frozenset(),
) -> Imported:
    """A `torch.nn.Module`, an ONNX file (or model) or a Relax IRModule.

    examples: one array or tensor an input, in order; state: see `keep_state`; through_torch:
    operators that PyTorch is to run. Raises UnsupportedError with the operator and its place when
    the model can't be translated, UsageError when it is none of the three.
    """
    if isinstance(model, tvm.IRModule):
        imported = _from_relax(model, examples)
    elif isinstance(model, str | Path) or type(model).__name__ == "ModelProto":
        imported = import_onnx(model, examples)
    elif isinstance(model, type):
        name = model.__name__
        raise UsageError(f"offload: class {name} given, an object of it needed, such as {name}()")
    elif hasattr(model, "forward") and hasattr(model, "eval"):
        changes = state == "auto"
        imported = _from_torch(model, tuple(examples), dynamic_shapes, changes, through_torch)
    else:
        wanted = "torch.nn.Module, ONNX file or Relax module"
        hint = " (its code can be the forward of a Module)" if callable(model) else ""
        raise UsageError(f"offload: {wanted} needed, {type(model).__name__} given{hint}")
    return keep_state(imported, state)


def _from_relax(module: Any, examples: Sequence[Any]) -> Imported:
    if "main" not in [var.name_hint for var in module.get_global_vars()]:
        raise UsageError("offload: the Relax module has no function main")
    module = _one_function(module)
    arrays = tuple(as_array(value) for value in examples)
    wanted = len(module["main"].params)
    if len(arrays) != wanted:
        raise UsageError(f"offload: {len(arrays)} inputs given, main takes {wanted}")
    if "num_input" not in (module["main"].attrs or {}):
        module = module.clone()
        module["main"] = module["main"].with_attr("num_input", wanted)
    inputs = int(module["main"].attrs["num_input"])
    parameters = tuple(tvm.runtime.tensor(a) for a in arrays[inputs:])
    return Imported(module, parameters, arrays[:inputs], None)


def _one_function(module: Any) -> Any:
    """Relax functions that main calls become part of it."""
    functions = {v: f for v, f in module.functions.items() if isinstance(f, relax.Function)}
    if len(functions) == 1:
        return module
    module = module.clone()
    for variable, function in functions.items():
        if variable.name_hint != "main":
            module[variable] = function.without_attr("global_symbol")
    return relax.transform.InlinePrivateFunctions()(module)


def _from_torch(
    model: Any,
    examples: tuple[Any, ...],
    dynamic_shapes: Any | None,
    inputs_change: bool,
    through_torch: frozenset[str],
) -> Imported:
    import torch

    tensors = tuple(_as_tensor(torch, n, value) for n, value in enumerate(examples))
    program = _exported(torch, model, tensors, dynamic_shapes)
    changes = _changes(program, inputs_change)
    structure = _structure(torch, program)
    module, environment, fallbacks = _translated(program, through_torch)
    module, parameters = relax.frontend.detach_params(module)
    values = tuple(
        (place_of(node), environment[node], node.name)
        for node in program.graph.nodes
        if node.op == "call_function" and node in environment
    )
    stored = {**program.constants, **program.state_dict}
    given = (*(stored[name].detach().clone() for name in changes.buffers), *tensors)
    return Imported(
        module=module,
        parameters=tuple(parameters.get("main", ())),
        examples=tuple(as_array(value) for value in given),
        reference=_reference(torch, model, changes),
        fallbacks=tuple(fallbacks),
        values=values,
        trace=lambda: _trace(torch, program, given),
        updated=tuple((source, output) for output, source in enumerate(changes.inputs)),
        hidden=len(changes.buffers),
        structure=structure,
    )


def _structure(torch: Any, program: Any) -> Structure:
    """How the model arranges its outputs. Those that are no tensors leave the program."""
    signature, tree = program.graph_signature, program.call_spec.out_spec
    (end,) = (node for node in program.graph.nodes if node.op == "output")
    is_tensor = [hasattr(value, "meta") for value in end.args[0]]
    updates = len(is_tensor) - tree.num_leaves
    leaves: list[Any] = []
    for value, is_one in zip(end.args[0][updates:], is_tensor[updates:], strict=True):
        number = updates + sum(not isinstance(leaf, Constant) for leaf in leaves)
        leaves.append(number if is_one else Constant(value))
    end.args = (tuple(value for value in end.args[0] if hasattr(value, "meta")),)
    specs = zip(signature.output_specs, is_tensor, strict=True)
    signature.output_specs[:] = [spec for spec, is_one in specs if is_one]
    if not signature.output_specs:
        raise UnsupportedError("the model has no tensor among its outputs")
    try:
        return structure_of(torch.utils._pytree.tree_unflatten(leaves, tree))
    except (TypeError, ValueError):  # a class of the model's: one, or a tuple
        return None


def _as_tensor(torch: Any, number: int, value: Any) -> Any:
    """An example input as a tensor."""
    if not isinstance(value, torch.Tensor):
        try:
            value = torch.from_numpy(np.asarray(value))
        except (TypeError, ValueError) as error:
            given = type(value).__name__
            raise UsageError(f"input {number}: a tensor or array needed, {given} given") from error
    return value


def _translated(
    program: Any, through_torch: frozenset[str]
) -> tuple[Any, dict[Any, Any], list[Place]]:
    """(Relax module, values of the nodes, what runs through PyTorch).

    An operator whose translation is missing or fails runs through PyTorch; UnsupportedError names
    the one for which that fails too.
    """
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    from atim.offload.torch_operator import run_through_torch

    fallbacks: list[Place] = []

    def missing(node: Any, translator: Any) -> Any:
        fallbacks.append(place_of(node))
        return run_through_torch(node, translator)

    def write(node: Any, translator: Any) -> Any:
        rows = index_put(node, translator)
        return missing(node, translator) if rows is None else rows

    converters: dict[str, Converter] = {**CONVERTERS, "index_put.default": write}
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    known = set(ExportedProgramImporter().create_convert_map())
    for node in nodes:
        if name_of(node) in through_torch:
            converters[name_of(node)] = missing
        elif name_of(node) not in known:
            converters.setdefault(name_of(node), missing)
    while True:
        importer = ExportedProgramImporter()
        try:
            module = importer.from_exported_program(program, True, False, False, converters)
        except (AssertionError, ValueError, TypeError, KeyError, tvm.error.InternalError) as error:
            failed = next((n for n in nodes if n not in importer.env), None)
            if failed is None or converters.get(name_of(failed)) is missing:
                where = "" if failed is None else f"{place_of(failed)}: "
                raise UnsupportedError(f"import: {where}{_first_line(error)}") from error
            converters[name_of(failed)] = missing
            fallbacks.clear()
        else:
            return module, importer.env, fallbacks


def _exported(torch: Any, model: Any, tensors: tuple[Any, ...], dynamic_shapes: Any) -> Any:
    """The exported program, checked for what the importer would get wrong in silence."""
    table = torch.export.default_decompositions()
    for operator in list(table):
        if str(operator) in KEPT_WHOLE:
            table.pop(operator)
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*tensors)
    except TypeError as error:
        count = f"{len(tensors)} {'input' if len(tensors) == 1 else 'inputs'}"
        raise UsageError(f"{count} given, forward takes {signature}: {error}") from error
    for name, value in [*_inputs(tensors), *model.named_parameters(), *model.named_buffers()]:
        if not hasattr(np, str(value.dtype).removeprefix("torch.")):
            raise UnsupportedError(f"{name}: NumPy has no {value.dtype}, use float32 or float16")
    try:
        with _quiet(), evaluating(model):
            exported = torch.export.export(model, tensors, dynamic_shapes=dynamic_shapes)
            program = exported.run_decompositions(table)
    except Exception as error:  # torch.export raises dozens of types
        raise UnsupportedError(f"torch.export: {_first_line(error)}") from error
    for node in program.graph.nodes:
        tags = () if str(node.target) in KEPT_WHOLE else getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags:
            raise UnsupportedError(f"{place_of(node)}: random numbers, other ones on every call")
        for value in _tensors(node.meta.get("val")):
            if value.is_complex():
                raise UnsupportedError(f"{place_of(node)}: complex numbers")
    return program


def _inputs(tensors: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(f"input {number}", tensor) for number, tensor in enumerate(tensors)]


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Without dropout and the like; afterwards every module is in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what PyTorch has to say about itself: warnings, and tracebacks in its log."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _tensors(value: Any) -> list[Any]:
    values = list(value) if isinstance(value, tuple | list) else [value]
    return [v for v in values if hasattr(v, "is_complex")]


def name_of(node: Any) -> str:
    """Of a torch.fx node: "softmax.int"."""
    return str(getattr(node.target, "__name__", node.target))


def place_of(node: Any) -> Place:
    """Where a torch.fx node comes from."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    return Place(name_of(node), stack[-1][0] if stack else "", lines[-1].strip() if lines else "")


@dataclass(frozen=True, slots=True)
class _Changes:
    """What a program updates in place: buffers by name, which become the first inputs; for each
    such output the number of the input it replaces."""

    buffers: tuple[str, ...]
    inputs: tuple[int, ...]


def _changes(program: Any, inputs_change: bool) -> _Changes:
    """Turn updates in place into inputs and outputs of the exported program.

    Updated inputs are refused unless they are to be kept as state.
    """
    signature = program.graph_signature
    updates = [s for s in signature.output_specs if "MUTATION" in s.kind.name]
    targets = [spec.target for spec in updates]
    buffers, inputs = [], []
    for spec in signature.input_specs:
        if spec.kind.name == "BUFFER" and spec.target in targets:
            buffers.append(spec.target)
            spec.kind, spec.target = type(spec.kind).USER_INPUT, None
        elif spec.kind.name == "USER_INPUT":
            inputs.append(spec.arg.name)
    numbers = {name: n for n, name in enumerate([*buffers, *inputs])}
    for spec in updates:
        if spec.target in inputs and not inputs_change:
            raise UnsupportedError(
                f"input {spec.target} is updated in place: return its new value as an output, or"
                " keep it with state='auto'"
            )
        spec.kind = type(spec.kind).USER_OUTPUT
    return _Changes(tuple(buffers), tuple(numbers[name] for name in targets))


def _reference(torch: Any, model: Any, changes: _Changes) -> Callable[..., list[Array]]:
    def call(*arrays: Array) -> list[Array]:
        given = [torch.from_numpy(np.array(a)) for a in arrays]
        buffers = dict(model.named_buffers())
        before = {name: buffers[name].clone() for name in changes.buffers}
        with torch.no_grad(), evaluating(model):
            for name, value in zip(changes.buffers, given, strict=False):
                buffers[name].copy_(value)
            try:
                result = model(*given[len(changes.buffers) :])
            except Exception as error:  # whatever a model raises
                reason = _first_line(error)
                raise UsageError(f"the model fails on these inputs: {reason}") from error
            now = [buffers[name].clone() for name in changes.buffers] + given[len(before) :]
            for name, value in before.items():
                buffers[name].copy_(value)
        leaves = torch.utils._pytree.tree_leaves(result)
        leaves = [value for value in leaves if isinstance(value, torch.Tensor)]
        values = [*(now[number] for number in changes.inputs), *leaves]
        return [as_array(value).copy() for value in values]

    return call


def _trace(torch: Any, program: Any, tensors: tuple[Any, ...]) -> dict[str, Array]:
    """The value of each node of the exported program, run by PyTorch node by node."""
    found: dict[str, Array] = {}
    signature = program.graph_signature
    state = {**program.state_dict, **program.constants}
    owners = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    user = iter(tensors)
    arguments = [
        state[owners[node.name]] if node.name in owners else next(user)
        for node in program.graph.nodes
        if node.op == "placeholder"
    ]

    class Recorder(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: Any) -> Any:
            value = super().run_node(node)
            if isinstance(value, torch.Tensor):
                found[node.name] = as_array(value)
            return value

    with torch.no_grad():
        Recorder(program.graph_module).run(*arguments)
    return found


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
