"""Operators that the importer lacks: called through PyTorch, on the host, inside the Relax module.

The Relax call carries a key; the packed function finds the operator and its constant arguments
under it. A module with such operators needs PyTorch and this process: it can't be saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import tvm
from tvm import relax

from atim.errors import UnsupportedError
from atim.offload.converters import dtype_of

__all__ = ["TORCH_CALL", "run_through_torch"]

TORCH_CALL = "atim.torch_operator"

_HOLE = object()  # stands for a tensor in the constant arguments
_CALLS: dict[str, tuple[Any, Any, Any, int]] = {}
_numbers = count()


def run_through_torch(node: Any, importer: Any) -> Any:
    """A converter for any operator with real tensors of fixed shape."""
    inputs: list[Any] = []

    def without_tensors(value: Any) -> Any:
        if hasattr(value, "meta") and hasattr(value, "op"):
            inputs.append(importer.env[value])
            return _HOLE
        if isinstance(value, list | tuple):
            return [without_tensors(item) for item in value]
        return value

    arguments = [without_tensors(value) for value in node.args]
    named = {name: without_tensors(value) for name, value in node.kwargs.items()}
    results = node.meta["val"]
    results = list(results) if isinstance(results, tuple | list) else [results]
    types = []
    for result in results:
        if not all(isinstance(size, int) for size in result.shape):
            raise UnsupportedError(f"{node.target}: the shape of its result depends on the data")
        types.append(relax.TensorType(list(result.shape), dtype_of(result)))
    key = f"{node.name}-{next(_numbers)}"
    _CALLS[key] = (node.target, arguments, named, len(results))
    call = relax.call_dps_packed(
        TORCH_CALL, [tvm.ir.StringImm(key), *inputs], types if len(types) > 1 else types[0]
    )
    return importer.block_builder.emit(call)


@tvm.register_global_func(TORCH_CALL)  # type: ignore[untyped-decorator]
def _call(key: Any, *tensors: Any) -> None:
    import torch

    operator, arguments, named, outputs = _CALLS[str(key)]
    given = iter([torch.from_numpy(np.array(t.numpy())) for t in tensors[: len(tensors) - outputs]])
    with torch.no_grad():
        result = operator(
            *(_filled(value, given) for value in arguments),
            **{name: _filled(value, given) for name, value in named.items()},
        )
    results = result if isinstance(result, tuple | list) else (result,)
    for target, value in zip(tensors[len(tensors) - outputs :], results, strict=True):
        target.copyfrom(np.asarray(value.numpy(), order="C"))


def _filled(value: Any, tensors: Iterator[Any]) -> Any:
    if value is _HOLE:
        return next(tensors)
    if isinstance(value, list):
        return [_filled(item, tensors) for item in value]
    return value
