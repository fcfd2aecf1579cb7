"""Which operators TVM can't lower: each is lowered alone, once the whole model has failed."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import ir, relax

from atim.errors import UnsupportedError
from atim.offload.imported import Imported
from atim.offload.lowering import lower

__all__ = ["unlowered"]


def unlowered(imported: Imported) -> frozenset[str]:
    """Names of the PyTorch operators whose Relax fails by itself; empty when none does, or when the
    model is not PyTorch's."""
    owners = [(variable, place.operator) for place, variable, _ in imported.values]
    found = set()
    for block in imported.module["main"].body.blocks:
        waiting = []
        for binding in block.bindings:
            waiting.append(binding)
            owner = next((name for v, name in owners if v.same_as(binding.var)), None)
            if owner is None:
                continue  # a step of an operator whose last value comes later
            if not all(_lowers(b) for b in waiting):
                found.add(owner)
            waiting.clear()
    return frozenset(found)


def _lowers(binding: Any) -> bool:
    """Whether a function of this binding alone can be lowered."""
    parameters: list[tuple[Any, Any]] = []

    def parameter(variable: Any) -> Any:
        known = next((new for old, new in parameters if old.same_as(variable)), None)
        if known is None:
            known = relax.Var(f"x{len(parameters)}", variable.ty)
            parameters.append((variable, known))
        return known

    if isinstance(binding.value, ir.Var | relax.Tuple | relax.TupleGetItem):
        return True
    value = tvm_ffi.structural_map(binding.value, (ir.Var, parameter))
    builder = relax.BlockBuilder()
    try:
        with builder.function("main", [new for _, new in parameters], attrs={"num_input": 0}):
            with builder.dataflow():
                result = builder.emit_output(builder.emit(value))
            builder.emit_func_output(result)
        lower(Imported(builder.get(), (), (), None))
    except (UnsupportedError, tvm.error.InternalError, TypeError, ValueError):
        return False
    return True
