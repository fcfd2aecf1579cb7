"""ONNX -> Relax, and ONNX's own reference evaluator as the original to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from atim.errors import UnsupportedError, UsageError
from atim.offload.imported import Imported, as_array

__all__ = ["import_onnx"]

Array = NDArray[Any]


def import_onnx(model: Any, examples: Sequence[Any]) -> Imported:
    """A file or a ModelProto. Raises UsageError for a file that is none, UnsupportedError with the
    operators that TVM's importer lacks."""
    try:
        import onnx
        from onnx.reference import ReferenceEvaluator
    except ImportError as error:
        raise UsageError("ONNX models need the package onnx: pip install onnx") from error
    from tvm.relax.frontend.onnx import from_onnx

    if isinstance(model, str | Path):
        try:
            model = onnx.load(str(model))
        except Exception as error:
            raise UsageError(f"{model} can't be read as ONNX: {error}") from error
    arrays = tuple(as_array(value) for value in examples)
    constants = {tensor.name for tensor in model.graph.initializer}
    given = [value for value in model.graph.input if value.name not in constants]
    if len(given) < len(model.graph.input):  # old files list initialisers, which TVM defines twice
        shortened = onnx.ModelProto()
        shortened.CopyFrom(model)
        del shortened.graph.input[:]
        shortened.graph.input.extend(given)
        model = shortened
    names = [value.name for value in given]
    if len(names) != len(arrays):
        raise UsageError(f"{len(arrays)} inputs given, the model takes {', '.join(names)}")
    for value, array in zip(given, arrays, strict=True):
        _check_shape(value, array)
    shapes = {name: list(array.shape) for name, array in zip(names, arrays, strict=True)}
    try:
        module = from_onnx(model, shape_dict=shapes, keep_params_in_input=True)
    except (tvm.error.OpNotImplemented, ValueError, AttributeError) as error:
        raise UnsupportedError(f"import: {error}") from error
    module, parameters = relax.frontend.detach_params(module)
    evaluator = ReferenceEvaluator(model)

    def reference(*inputs: Array) -> list[Array]:
        return [np.asarray(v) for v in evaluator.run(None, dict(zip(names, inputs, strict=True)))]

    return Imported(module, tuple(parameters.get("main", ())), arrays, reference)


def _check_shape(value: Any, array: Array) -> None:
    """UsageError when an example is not of the shape that the file declares."""
    if not value.type.tensor_type.HasField("shape"):
        return
    declared = [d.dim_value or d.dim_param or "?" for d in value.type.tensor_type.shape.dim]
    fits = len(declared) == array.ndim and all(
        not isinstance(n, int) or n == size for n, size in zip(declared, array.shape, strict=False)
    )
    if not fits:
        wanted = "x".join(str(n) for n in declared)
        given = "x".join(str(n) for n in array.shape)
        raise UsageError(f"input {value.name}: {given} given, the model takes {wanted}")
