"""PyTorch, ONNX or Relax -> one Relax function, with its parameters apart and its faults reported.

`torch.export` keeps linear, matmul and attention whole: their decompositions copy weights and
caches. What the importer lacks runs through PyTorch on the host, named with its place in the model;
what would be wrong without a word (updates in place, whose new values it drops) is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from atim.errors import UnsupportedError, UsageError
from atim.offload.converters import CONVERTERS, Converter
from atim.offload.imported import Imported, Place, as_array
from atim.offload.onnx_file import import_onnx

__all__ = ["import_model"]

Array = NDArray[Any]

KEPT_WHOLE = (
    "aten.linear.default",
    "aten.matmul.default",
    "aten.scaled_dot_product_attention.default",
)


def import_model(
    model: Any, examples: Sequence[Any], *, dynamic_shapes: Any | None = None
) -> Imported:
    """A `torch.nn.Module`, an ONNX file (or model) or a Relax IRModule.

    examples: one array or tensor an input, in order. Raises UnsupportedError with the operator and
    its place when the model can't be translated, UsageError when it is none of the three.
    """
    if isinstance(model, tvm.IRModule):
        return _from_relax(model, examples)
    if isinstance(model, str | Path) or type(model).__name__ == "ModelProto":
        return import_onnx(model, examples)
    if not (hasattr(model, "forward") and hasattr(model, "eval")):
        wanted = "torch.nn.Module, ONNX file or Relax module"
        raise UsageError(f"offload: {wanted} needed, {type(model).__name__} given")
    return _from_torch(model, tuple(examples), dynamic_shapes)


def _from_relax(module: Any, examples: Sequence[Any]) -> Imported:
    if "main" not in [var.name_hint for var in module.get_global_vars()]:
        raise UsageError("offload: the Relax module has no function main")
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


def _from_torch(model: Any, examples: tuple[Any, ...], dynamic_shapes: Any | None) -> Imported:
    import torch
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    from atim.offload.torch_operator import run_through_torch

    tensors = tuple(
        value if isinstance(value, torch.Tensor) else torch.from_numpy(np.asarray(value))
        for value in examples
    )
    program = _exported(torch, model, tensors, dynamic_shapes)
    importer = ExportedProgramImporter()
    known = set(importer.create_convert_map())
    converters: dict[str, Converter] = dict(CONVERTERS)
    fallbacks = []
    for node in program.graph.nodes:
        name = getattr(node.target, "__name__", str(node.target))
        if node.op == "call_function" and name not in known and name not in converters:
            fallbacks.append(place_of(node))
        if node.op == "call_function" and name not in known:
            converters.setdefault(name, run_through_torch)
    try:
        module = importer.from_exported_program(program, True, False, False, converters)
    except (AssertionError, ValueError, TypeError, KeyError, tvm.error.InternalError) as error:
        raise UnsupportedError(f"import: {_first_line(error)}") from error
    module, parameters = relax.frontend.detach_params(module)
    values = tuple(
        (place_of(node), importer.env[node], node.name)
        for node in program.graph.nodes
        if node.op == "call_function" and node in importer.env
    )
    return Imported(
        module=module,
        parameters=tuple(parameters.get("main", ())),
        examples=tuple(as_array(value) for value in tensors),
        reference=_reference(torch, model),
        fallbacks=tuple(fallbacks),
        values=values,
        trace=lambda: _trace(torch, program, tensors),
    )


def _exported(torch: Any, model: Any, tensors: tuple[Any, ...], dynamic_shapes: Any) -> Any:
    """The exported program, checked for what the importer would get wrong in silence."""
    table = torch.export.default_decompositions()
    for operator in list(table):
        if str(operator) in KEPT_WHOLE:
            table.pop(operator)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of PyTorch about itself
            exported = torch.export.export(model.eval(), tensors, dynamic_shapes=dynamic_shapes)
            program = exported.run_decompositions(table)
    except Exception as error:  # torch.export raises dozens of types
        raise UnsupportedError(f"torch.export: {_first_line(error)}") from error
    for spec in program.graph_signature.output_specs:
        if "MUTATION" in spec.kind.name:
            raise UnsupportedError(
                f"{spec.target} is updated in place: return its new value as an output instead"
            )
    for node in program.graph.nodes:
        for value in _tensors(node.meta.get("val")):
            if value.is_complex():
                raise UnsupportedError(f"{place_of(node)}: complex numbers")
    return program


def _tensors(value: Any) -> list[Any]:
    values = list(value) if isinstance(value, tuple | list) else [value]
    return [v for v in values if hasattr(v, "is_complex")]


def place_of(node: Any) -> Place:
    """Where a torch.fx node comes from."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    name = getattr(node.target, "__name__", str(node.target))
    return Place(name, stack[-1][0] if stack else "", lines[-1].strip() if lines else "")


def _reference(torch: Any, model: Any) -> Callable[..., list[Array]]:
    def call(*arrays: Array) -> list[Array]:
        with torch.no_grad():
            result = model(*(torch.from_numpy(np.array(a)) for a in arrays))
        return [as_array(value).copy() for value in _flat(result)]

    return call


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


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
