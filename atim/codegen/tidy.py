"""Conditions and index arithmetic as a programmer would write them; the values stay the same."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx

from atim.codegen.affine import Ranges, affine, below_zero
from atim.codegen.kernel_func import has_load

__all__ = ["tidied"]

_SUMS = (tirx.Add, tirx.Sub, tirx.Mul)
_ORDERS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE)


def tidied(expr: Any, ranges: Ranges) -> Any:
    """`-4 * i - j < -4` as `4 * i + j >= 5`, `0 < (int)flag` as `flag`, `2 * i + 0 * 2` as `2 * i`;
    anything else as it is."""
    kind = type(expr)
    if kind in _ORDERS:
        flag = _flag(expr)
        return _positive(expr, ranges) if flag is None else flag
    if kind in _SUMS and str(expr.ty) == "int32" and _has_zero(expr) and not has_load(expr):
        linear = affine(expr, ranges)
        return expr if linear is None else linear.expr()
    return expr


def _flag(expr: Any) -> Any | None:
    """The truth value whose number is compared with 0."""
    zero, number = (expr.a, expr.b) if type(expr) is tirx.LT else (expr.b, expr.a)
    if type(expr) not in (tirx.LT, tirx.GT) or not isinstance(number, tirx.Cast):
        return None
    is_zero = isinstance(zero, tirx.IntImm) and int(zero.value) == 0
    return number.value if is_zero and str(number.value.ty) == "bool" else None


def _positive(expr: Any, ranges: Ranges) -> Any:
    """A comparison of nothing but negative terms with a constant, its sign changed. Quotients and
    remainders that are no sums count as variables."""
    parts: list[tuple[Any, Any]] = []

    def named(node: Any, mutator: tvm_ffi.StructuralMutator) -> Any:
        if affine(node, ranges) is not None:
            return mutator.default_mutate(node)
        for known, var in parts:
            if tvm_ffi.structural_equal(known, node):
                return var
        parts.append((node, tirx.Var("part", str(node.ty))))
        return parts[-1][1]

    plain = tvm_ffi.structural_mutate(expr, [(tirx.FloorDiv, named), (tirx.FloorMod, named)])
    form = below_zero(plain, ranges)
    if form is None or not form.terms or any(c > 0 for c in form.terms.values()):
        return expr
    negated = form * -1
    dtype = str(expr.a.ty)
    left = (negated - negated.const).expr(dtype)
    values = {var: node for node, var in parts}
    left = tvm_ffi.structural_mutate(left, [(tirx.Var, lambda v, _: values.get(v, v))])
    return tirx.GE(left, tirx.IntImm(dtype, 1 - negated.const))


def _has_zero(expr: Any) -> bool:
    found: list[bool] = []
    tvm_ffi.structural_walk(expr, [(tirx.IntImm, lambda i: found.append(int(i.value) == 0))])
    return any(found)
