"""Inputs that are read outside of themselves: under a guard (padding), or backwards.

A schedule copies boxes, and boxes are cut at a tensor's ends; a box that begins before the tensor
has no simple form there. So such an input is declared larger, with a margin in front of its first
element, and all indices move by the margin. Nothing is copied for it: `codegen.transfer` takes the
margin off again, and the host fills what lies outside of the tensor with zeros as it always does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import ir, tirx

from atim.target import ATTRIBUTE_MARGINS

__all__ = ["BACKWARDS_MARGIN", "Grown", "is_inside", "margins_of", "with_margins"]

# elements in front of an axis that is read backwards: more than any box reaches beyond its end
BACKWARDS_MARGIN = 1 << 17

# TVM's nodes have no Python types worth naming
Node = Any


@dataclass(frozen=True, slots=True)
class Grown:
    """An input declared larger: for each axis the margin in front and the size; `region` is
    (first index, number) of what one execution of the block reads, with the margin."""

    margin: tuple[int, ...]
    sizes: tuple[int, ...]
    region: tuple[tuple[Node, int], ...]


def with_margins(func: tirx.PrimFunc, grown: Mapping[str, Grown]) -> tirx.PrimFunc:
    """The program with these inputs (by name) declared larger; as it is where there are none and no
    condition depends on it that reads are inside (`is_inside`)."""
    if not grown and not _has_conditions(func):
        return func
    moved: dict[Node, tuple[Node, Grown]] = {}
    attribute: dict[str, Sequence[int]] = {}
    for param in func.params:
        name = str(param.name)
        if name in grown:
            new = tirx.decl_buffer(list(grown[name].sizes), str(param.dtype), name)
            moved[param] = (new, grown[name])
            attribute[name] = [*grown[name].margin, *(int(n) for n in param.shape)]

    def load(node: ir.TensorLoad, mutator: tvm_ffi.StructuralMutator) -> ir.Expr:
        indices = [mutator.mutate(i) for i in node.indices]
        if node.source not in moved:
            return tirx.BufferLoad(node.source, indices)
        new, change = moved[node.source]
        shifted = [i + n if n else i for i, n in zip(indices, change.margin, strict=True)]
        return tirx.BufferLoad(new, shifted)

    def region(node: ir.TensorRegion, mutator: tvm_ffi.StructuralMutator) -> Node:
        if node.source not in moved:
            return mutator.default_mutate(node)
        new, change = moved[node.source]
        return tirx.BufferRegion(new, [ir.Range.from_min_extent(a, n) for a, n in change.region])

    rows = [(ir.TensorLoad, load), (ir.TensorRegion, region)]
    body = tvm_ffi.structural_mutate(func.body, rows)
    params = [moved[p][0] if p in moved else p for p in func.params]
    result = tirx.PrimFunc(params, body, func.ret_type, attrs=func.attrs)
    return result.with_attr(ATTRIBUTE_MARGINS, attribute)


def _has_conditions(func: tirx.PrimFunc) -> bool:
    found: list[Node] = []
    tvm_ffi.structural_walk(func.body, [(ir.Call, lambda call: found.append(call.op))])
    return any(str(getattr(op, "name", "")).endswith(".if_then_else") for op in found)


def is_inside(func: tirx.PrimFunc) -> bool:
    """No tensor of the program is read outside of itself, whatever its conditions say."""
    return ATTRIBUTE_MARGINS in dict(func.attrs or {})


def margins_of(func: tirx.PrimFunc) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """For each input that was declared larger: its margins in front, and its own shape."""
    attributes = dict(func.attrs or {})
    margins = {}
    for name, numbers in attributes.get(ATTRIBUTE_MARGINS, {}).items():
        values = tuple(int(n) for n in numbers)
        half = len(values) // 2
        margins[str(name)] = (values[:half], values[half:])
    return margins
