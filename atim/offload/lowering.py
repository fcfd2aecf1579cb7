"""Relax -> a Relax function of `call_tir` only, each calling a PrimFunc with one root loop nest.

Passes in an order that TVM 0.27 survives: transposed weights are joined with their product before
common subexpressions go (a shared Linear fails otherwise), and large constants become parameters
first, else folding widens int8 weights. Then element-wise producers are inlined and every function
is split into its nests (split.py).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from atim.errors import UnsupportedError
from atim.offload.imported import Imported
from atim.offload.nests import item_bytes
from atim.offload.split import split_nests

__all__ = ["lower"]

# constants up to this size stay: masks, scales, positions that folding can use
SMALL_CONSTANT_BYTES = 1024
NARROW = ("int8", "uint8")


def lower(imported: Imported) -> Imported:
    """The same model with `module` lowered; `parameters` get the large constants appended.

    Raises UnsupportedError when TVM can't lower an operator.
    """
    module, constants = lift_constants(imported.module)
    module = narrow_products(module)
    try:
        try:
            module = split_nests(_passes(fuse_transposed=True)(module))
        except IndexError:  # TVM's pass fails on products of a matrix with itself, transposed
            module = split_nests(_passes(fuse_transposed=False)(module))
    except (TypeError, ValueError, AttributeError, LookupError, RuntimeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[-1] if lines else type(error).__name__
        raise UnsupportedError(f"lowering: {type(error).__name__}: {reason}") from error
    return replace(imported, module=module, parameters=(*imported.parameters, *constants))


def _passes(fuse_transposed: bool) -> Any:
    transform = relax.transform
    return tvm.transform.Sequential(
        [
            transform.DecomposeOpsForInference(),
            transform.CanonicalizeBindings(),
            *([transform.FuseTransposeMatmul()] if fuse_transposed else []),
            transform.EliminateCommonSubexpr(),
            transform.LegalizeOps(),
            transform.AnnotateTIROpPattern(),
            transform.FoldConstant(),
            transform.FuseOps(),
            transform.FuseTIR(),
            transform.DeadCodeElimination(),
        ]
    )


def _bytes(constant: Any) -> int:
    data = constant.value
    return prod([int(n) for n in data.shape]) * item_bytes(str(data.dtype))


def lift_constants(module: Any) -> tuple[Any, list[Any]]:
    """Large constants of main as further parameters: (module, their tensors in order)."""

    @mutator
    class Lift(PyExprMutator):  # type: ignore[misc]
        def __init__(self, mod: Any) -> None:
            super().__init__(mod)
            self.lifted: list[tuple[Any, Any]] = []

        def visit_generic_const_(self, constant: Any) -> Any:
            if not hasattr(constant.value, "shape") or _bytes(constant) <= SMALL_CONSTANT_BYTES:
                return constant
            for known, variable in self.lifted:
                if known.value.same_as(constant.value):
                    return variable
            shape = [int(n) for n in constant.value.shape]
            kind = relax.TensorType(shape, str(constant.value.dtype))
            variable = relax.Var(f"constant{len(self.lifted)}", kind)
            self.lifted.append((constant, variable))
            return variable

    lift = Lift(module)
    main = module["main"]
    body = lift.visit_expr(main.body)
    if not lift.lifted:
        return module, []
    parameters = [*main.params, *(variable for _, variable in lift.lifted)]
    function = relax.Function(parameters, body, main.ret_ty, main.is_pure, main.attrs)
    module = module.clone()
    module["main"] = function
    return relax.transform.Normalize()(module), [c.value for c, _ in lift.lifted]


def narrow_products(module: Any) -> Any:
    """matmul(int32(a), int32(b)) of bytes -> matmul(a, b) summed in int32: no widened copies."""
    bound: dict[Any, Any] = {}
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            if hasattr(binding, "value"):
                bound[binding.var] = binding.value

    def narrow(value: Any) -> Any | None:
        source: Any = bound.get(value)
        name = getattr(getattr(source, "op", None), "name", "")
        if name == "relax.astype" and str(source.args[0].ty.dtype) in NARROW:
            return source.args[0]
        if name == "relax.permute_dims":
            inner = narrow(source.args[0])
            return None if inner is None else relax.op.permute_dims(inner, source.attrs.axes)
        return None

    @mutator
    class Narrow(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            if getattr(call.op, "name", "") == "relax.matmul" and str(call.ty.dtype) == "int32":
                sides = [narrow(argument) for argument in call.args]
                if all(side is not None for side in sides):
                    a, b = (self.builder_.emit(self.visit_expr(side)) for side in sides)
                    return relax.op.matmul(a, b, out_dtype="int32")
            return super().visit_call_(call)

    module = module.clone()
    module["main"] = Narrow(module).visit_expr(module["main"])
    return module
