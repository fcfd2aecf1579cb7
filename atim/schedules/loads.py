"""What an expression of a block reads, and the arithmetic it does."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from atim.errors import UnsupportedError

__all__ = ["calls_of", "loads_of"]

# TVM's nodes have no Python types worth naming
Node = Any

_LEAVES = (tirx.IntImm, tirx.FloatImm, tvm.ir.Var, tvm.ir.StringImm)


def loads_of(expr: Node, operations: dict[tuple[str, str], int]) -> list[Node]:
    """Loads of an expression in order; counts its operations (indices are not arithmetic of it)."""
    if isinstance(expr, tvm.ir.TensorLoad):
        return [expr]
    children: list[Node] = []
    if isinstance(expr, tvm.ir.Call):
        children = list(expr.args)
        label = str(getattr(expr.op, "name", "call")).rsplit(".", 1)[-1]
    elif isinstance(expr, tirx.Cast):
        children, label = [expr.value], "cast"
    elif isinstance(expr, tirx.Select):
        children, label = [expr.condition, expr.true_value, expr.false_value], "select"
    elif isinstance(expr, tirx.Not):
        children, label = [expr.a], "not"
    elif hasattr(expr, "a") and hasattr(expr, "b"):
        children, label = [expr.a, expr.b], type(expr).__name__.lower()
        if label == "mul" and any(isinstance(child, tirx.IntImm) for child in children):
            label = "scale"  # by a constant: shifts and adds
    elif isinstance(expr, _LEAVES):
        return []
    else:
        raise UnsupportedError(f"expression {type(expr).__name__}: not known: {expr}")
    key = (label, str(expr.ty))
    operations[key] = operations.get(key, 0) + 1
    return [load for child in children for load in loads_of(child, operations)]


def calls_of(value: Node) -> list[tuple[str, str]]:
    """(name, type) of the functions that an expression calls."""
    found: list[tuple[str, str]] = []

    def visit(call: tvm.ir.Call) -> None:
        found.append((str(getattr(call.op, "name", "call")).rpartition(".")[2], str(call.ty)))

    tvm_ffi.structural_walk(value, [(tvm.ir.Call, visit)])
    return found
