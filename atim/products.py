"""Sums of products `sum += a * b`, and the ways a DPU has to multiply them.

A DPU multiplies bytes in one cycle and everything wider by a routine (UPMEM user manual; Gomez-Luna
et al., "Benchmarking a New Paradigm", IEEE Access 2022). Which form is best depends on the types
and, for int32, on the values; all forms are exact for every value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import tvm_ffi
from tvm import ir, tirx
from tvm.s_tir import SBlock

from atim.target import (
    MULTIPLY_BYTES,
    MULTIPLY_FLOAT,
    MULTIPLY_LIBRARY,
    MULTIPLY_NARROW,
    MULTIPLY_STEPS,
    MULTIPLY_STEPS_SECOND,
    MULTIPLY_WORDS,
)

__all__ = ["Product", "block_forms", "product_of", "widened"]

_BYTES, _HALVES = ("int8", "uint8"), ("int16", "uint16")
_INT32_FORMS = (
    MULTIPLY_LIBRARY,
    MULTIPLY_STEPS,
    MULTIPLY_STEPS_SECOND,
    MULTIPLY_BYTES,
    MULTIPLY_NARROW,
)


@dataclass(frozen=True, slots=True)
class Product:
    """sum = sum + left * right, all of one type."""

    left: ir.Expr
    right: ir.Expr
    dtype: str

    @property
    def forms(self) -> tuple[int, ...]:
        """The values of `ANNOTATE_MULTIPLY` that make sense, MULTIPLY_LIBRARY only where no other
        form does or where values decide."""
        loads = [widened(factor) for factor in (self.left, self.right)]
        types = [str(load.ty) if isinstance(load, ir.TensorLoad) else "" for load in loads]
        if self.dtype == "float32" and types == ["float32", "float32"]:
            return (MULTIPLY_FLOAT,)
        if np.dtype(self.dtype).kind not in "iu":
            return (MULTIPLY_LIBRARY,)
        if all(t in _BYTES for t in types):
            return (MULTIPLY_WORDS,)
        if all(t in _HALVES for t in types) and np.dtype(self.dtype).itemsize <= 4:
            return (MULTIPLY_LIBRARY, MULTIPLY_WORDS)  # the compiler's code ends early for bytes
        return _INT32_FORMS if self.dtype == "int32" else (MULTIPLY_LIBRARY,)


def product_of(store: tirx.BufferStore) -> Product | None:
    """The product that the store adds to its own element, None if it does something else."""
    value = store.value
    if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
        return None
    total = value.a
    if not isinstance(total, ir.TensorLoad) or not total.source.same_as(store.buffer):
        return None
    if not tvm_ffi.structural_equal(list(total.indices), list(store.indices)):
        return None
    return Product(value.b.a, value.b.b, str(value.ty))


def widened(expr: ir.Expr) -> ir.Expr:
    """The narrow integer behind a cast that keeps its value, else the expression itself."""
    if not isinstance(expr, tirx.Cast):
        return expr
    inner, outer = (np.dtype(str(e.ty)) for e in (expr.value, expr))
    return expr.value if inner.kind in "iu" and np.can_cast(inner, outer) else expr


def block_forms(func: tirx.PrimFunc, block: str) -> tuple[int, ...]:
    """Forms of the products that a block sums up from zero; () if it does something else."""
    found: list[tuple[int, ...]] = []

    def visit(node: SBlock) -> None:
        if str(node.name_hint) == block and isinstance(node.body, tirx.BufferStore):
            product = product_of(node.body)
            if product is not None and _starts_at_zero(node.init):
                found.append(product.forms)

    tvm_ffi.structural_walk(func.body, [(SBlock, visit)])
    return found[0] if len(found) == 1 else ()


def _starts_at_zero(init: tirx.Stmt | None) -> bool:
    """Not at -0.0, which only -0.0 leaves as it is."""
    if not isinstance(init, tirx.BufferStore):
        return False
    value = init.value
    if not isinstance(value, (tirx.IntImm, tirx.FloatImm)):
        return False
    return float(value.value) == 0 and math.copysign(1, float(value.value)) > 0
