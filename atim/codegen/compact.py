"""WRAM buffers cut to what is alive at once, where TVM leaves them whole.

TVM compacts a buffer to the region that one execution of its scope touches, but over-estimates or
gives up on some regions (a window under a guard of several loops). Here the part of an index that
only changes outside of the scope is taken off, and the size becomes what accesses reach, which is
exact: a buffer holds nothing from one execution of its scope to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import tvm_ffi
from tvm import ir, tirx

from atim.codegen.access import Access, accesses, loop_ranges
from atim.codegen.affine import Affine, Ranges, affine, lower_bound, upper_bound
from atim.codegen.split import Split
from atim.target import SCOPE_TASKLET

Origins = Mapping[tirx.Var, tuple[tirx.Var, tuple[Affine, ...]]]


def compact_buffers(parts: Split) -> Split:
    """Every tasklet's buffer from its own first element on, no longer than its scope needs."""
    body = parts.kernel.body
    ranges: dict[tirx.Var, tuple[int, int]] = loop_ranges(body)
    ranges |= {v: (0, n - 1) for v, n in zip(parts.grid_vars, parts.grid, strict=True)}
    found: dict[tirx.Var, list[Access]] = {}
    for access in accesses(body, ranges):
        found.setdefault(access.buffer, []).append(access)
    moved: dict[tirx.Var, tuple[tirx.Var, tuple[Affine, ...]]] = {}
    for buffer, outside in parts.kernel.outside.items():
        if buffer in found and str(buffer.scope()) == SCOPE_TASKLET:
            spans = _spans(buffer, found[buffer], outside, ranges)
            if spans is not None:
                shape = [length for _, length in spans]
                name, dtype = str(buffer.name), str(buffer.dtype)
                new = tirx.decl_buffer(shape, dtype, name, scope=buffer.scope(), layout=None)
                moved[buffer] = (new, tuple(origin for origin, _ in spans))
    if not moved:
        return parts
    buffers = tuple(moved[b][0] if b in moved else b for b in parts.kernel.buffers)
    kernel = replace(parts.kernel, body=_moved(body, moved, ranges), buffers=buffers)
    return replace(parts, kernel=kernel)


def _spans(
    buffer: tirx.Var, found: Sequence[Access], outside: frozenset[tirx.Var], ranges: Ranges
) -> list[tuple[Affine, int]] | None:
    """(origin, elements) of each axis; None where there is nothing to take off, or no proof."""
    spans, changes = [], False
    for axis in range(len(buffer.shape)):
        indices = [a.indices[axis] for a in found]
        linear = [index for index in indices if index is not None]
        if len(linear) < len(indices):
            return None
        origin = linear[0].only(outside)
        if any(index.only(outside).terms != origin.terms for index in linear):
            return None
        low, last = 0, 0
        for at, access in enumerate(found):
            inner = linear[at] - origin
            least = lower_bound(inner, access.guards, ranges)
            most = upper_bound(inner, access.guards, ranges)
            if least is None or most is None:
                return None
            low = least if at == 0 else min(low, least)
            last = max(last, most)
        changes = changes or bool(origin.terms) or last - low + 1 < int(buffer.shape[axis])
        spans.append((origin + low, last - low + 1))
    return spans if changes else None


def _moved(body: tirx.Stmt, moved: Origins, ranges: Ranges) -> tirx.Stmt:
    def local(buffer: tirx.Var, indices: Sequence[ir.Expr]) -> tuple[tirx.Var, list[ir.Expr]]:
        if buffer not in moved:
            return buffer, list(indices)
        new, origins = moved[buffer]
        shifted = []
        for index, origin in zip(indices, origins, strict=True):
            linear = affine(index, ranges)
            assert linear is not None, index
            shifted.append((linear - origin).expr(str(index.ty)))
        return new, shifted

    def load(node: ir.TensorLoad, mutator: tvm_ffi.StructuralMutator) -> ir.Expr:
        return tirx.BufferLoad(*local(node.source, [mutator.mutate(i) for i in node.indices]))

    def store(node: tirx.BufferStore, mutator: tvm_ffi.StructuralMutator) -> tirx.Stmt:
        buffer, indices = local(node.buffer, [mutator.mutate(i) for i in node.indices])
        return tirx.BufferStore(buffer, mutator.mutate(node.value), indices)

    return tvm_ffi.structural_mutate(body, [(ir.TensorLoad, load), (tirx.BufferStore, store)])
