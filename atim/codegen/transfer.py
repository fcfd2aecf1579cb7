"""Which box of which tensor lies in which DPU's MRAM, and how it is padded there.

A kernel sees local coordinates only: `Tile` says where its local array begins in the host tensor
(affine in the DPU's grid index) and how long it is. Every DPU gets an equally sized slice, as the
SDK's parallel transfers demand; the host clips the box to the tensor and fills the rest with zeros
(ATiM, ISCA 2025, section 5.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Stmt

from atim.codegen.access import Access, accesses, loop_ranges, storage
from atim.codegen.affine import Affine, Ranges, affine, lower_bound, upper_bound
from atim.codegen.names import Names, local_name
from atim.codegen.split import Split
from atim.errors import ScheduleError, UnsupportedError

Ints = npt.NDArray[np.int64]
Mode = Literal["in", "out", "inout"]
Role = Literal["input", "output", "intermediate"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor the host holds: `name` (unique in its plan), shape, NumPy dtype name and role."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: Role


@dataclass(frozen=True, slots=True)
class Tile:
    """The part of one tensor that one DPU holds, as a C array in MRAM.

    The DPU with grid index g holds, on each tensor axis a, the `extent[a]` elements from
    `offset_base[a] + sum_j offset_coeffs[a][j] * g[j]`, at the beginning of a row-major array of
    shape `padded` named `symbol`. What lies outside the tensor or outside `extent` is zero on the
    way in and dropped on the way out.
    """

    tensor: str
    symbol: str
    dtype: str
    mode: Mode
    host_shape: tuple[int, ...]
    extent: tuple[int, ...]
    padded: tuple[int, ...]
    offset_base: tuple[int, ...]
    offset_coeffs: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        ranks = {len(self.extent), len(self.padded), len(self.offset_base)}
        assert ranks == {len(self.host_shape)} == {len(self.offset_coeffs)}, self
        assert all(0 < e <= p for e, p in zip(self.extent, self.padded, strict=True)), self
        assert self.slice_bytes % 8 == 0, self

    @property
    def slice_bytes(self) -> int:
        """Bytes of the MRAM array, the same on every DPU and a multiple of 8."""
        return prod(self.padded) * np.dtype(self.dtype).itemsize

    @property
    def broadcast(self) -> bool:
        """Every DPU holds the same box."""
        return not any(any(row) for row in self.offset_coeffs)


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """Everything the host must know to feed a kernel and collect its results.

    `grid` is the DPU grid; DPU number = row-major index. `grid_symbol` names the kernel's `__host`
    int32 array (an even number of words, see `grid_words`) that takes the grid index, None if the
    kernel does not look at it. `prepare` and `finish` name the host functions that run before the
    transfers and after them, None if there is nothing to do; their tensors are `prepare_args` and
    `finish_args` (see `Sources` for the C signatures). `host_threads` is the extent of the
    schedule's parallel host loops: as many threads can share them. `groups` is the number of groups
    of ranks that work one after the other, each computing while the next is fed; 1: all as one.
    """

    grid: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    tiles: tuple[Tile, ...]
    grid_symbol: str | None = None
    prepare: str | None = None
    prepare_args: tuple[str, ...] = ()
    finish: str | None = None
    finish_args: tuple[str, ...] = ()
    host_threads: int = 1
    groups: int = 1

    @property
    def dpus(self) -> int:
        return prod(self.grid)

    @property
    def intermediates(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """Name -> (shape, dtype) of the partial results the host must hold."""
        return {t.name: (t.shape, t.dtype) for t in self.tensors if t.role == "intermediate"}

    def grid_index(self) -> Ints:
        """int64 [dpus, axes]: the grid index of every DPU."""
        return np.stack(np.unravel_index(np.arange(self.dpus), self.grid), axis=1).astype(np.int64)

    def grid_words(self) -> npt.NDArray[np.int32]:
        """int32 [dpus, even]: what `grid_symbol` must hold on every DPU, padded to 8 bytes."""
        index = self.grid_index().astype(np.int32)
        return np.pad(index, ((0, 0), (0, index.shape[1] % 2)))

    def boxes(self, tile: Tile) -> tuple[Ints, Ints]:
        """(start, extent), int64 [dpus, axes] each: where every DPU's box begins in the tensor
        (unclipped, may be negative), and how much of it lies inside (0: the DPU holds nothing)."""
        coeffs = np.array(tile.offset_coeffs, np.int64).reshape(len(tile.extent), len(self.grid))
        start = self.grid_index() @ coeffs.T + np.array(tile.offset_base, np.int64)
        low = np.clip(start, 0, tile.host_shape)
        high = np.clip(start + np.array(tile.extent, np.int64), 0, tile.host_shape)
        return start, high - low


SCOPE_MRAM = "shared.mram"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Placed:
    """The kernel in each DPU's own coordinates, with the plan of its transfers.

    `kernel` is a PrimFunc of the grid variables and the MRAM tiles (scope shared.mram); its root
    block owns the WRAM buffers and its attribute atim.grid holds the grid's extents. `tiles` gives
    the tile of each MRAM parameter by name; `tensors` the plan's tensor of each host buffer.
    """

    kernel: tirx.PrimFunc
    plan: TransferPlan
    tiles: Mapping[str, Tile]
    tensors: Mapping[tirx.Var, Tensor]


@dataclass(frozen=True, slots=True)
class _Span:
    """One axis of a tile: affine origin in the grid, elements that some loop may touch (`stored`),
    and those that the guards let through (`owned`)."""

    origin: Affine
    stored: int
    owned: int


def place(parts: Split) -> Placed:
    """Derive every DPU's tiles and rewrite the kernel to them.

    Raises `ScheduleError` where a written tile does not move linearly with the grid index, or where
    two DPUs would write the same element.
    """
    body = parts.kernel.body
    ranges: dict[tirx.Var, tuple[int, int]] = loop_ranges(body)
    ranges |= {v: (0, n - 1) for v, n in zip(parts.grid_vars, parts.grid, strict=True)}
    found: dict[tirx.Var, list[Access]] = {}
    for access in accesses(body, ranges):
        found.setdefault(access.buffer, []).append(access)
    tensors = _tensors(parts)
    names = Names()
    tiles: dict[tirx.Var, Tile] = {}
    moved: dict[tirx.Var, tuple[tirx.Var, tuple[Affine, ...]]] = {}
    for buffer, tensor in tensors.items():
        if buffer in found:
            declared = [_constant(n, tensor.name) for n in buffer.shape]
            spans = _spans(tensor, declared, found[buffer], parts, ranges)
            tile = _tile(tensor, names.new(tensor.name), found[buffer], spans, parts)
            shape = [span.stored for span in spans]
            mram = tirx.decl_buffer(shape, tensor.dtype, tile.symbol, scope=SCOPE_MRAM, layout=None)
            tiles[buffer], moved[buffer] = tile, (mram, tuple(span.origin for span in spans))
    for buffer in parts.kernel.buffers:
        if buffer in found:
            moved[buffer] = (_fit(buffer, found[buffer], ranges, names), ())
    plan = TransferPlan(parts.grid, tuple(tensors.values()), tuple(tiles.values()))
    kernel = _kernel(parts, _rebase(body, moved, ranges), moved)
    return Placed(kernel, plan, {t.symbol: t for t in tiles.values()}, tensors)


def _tensors(parts: Split) -> dict[tirx.Var, Tensor]:
    """Function buffers in order, then the temporaries between nests; names made unique."""
    nests = (*parts.before, parts.kernel, *parts.after)
    written = {a.buffer for nest in nests for a in accesses(nest.body, {}) if a.store}
    taken: set[str] = set()
    tensors: dict[tirx.Var, Tensor] = {}
    for buffer in (*parts.inputs, *parts.temporaries):
        name = base = str(buffer.name)
        while name in taken:
            name = f"{base}_{len(taken)}"
        taken.add(name)
        role: Role = "output" if buffer in written else "input"
        if buffer in parts.temporaries:
            role = "intermediate"
        shape = tuple(_constant(n, name) for n in buffer.shape)
        if buffer in parts.inputs and name in parts.margins:
            shape = parts.margins[name][1]
        tensors[buffer] = Tensor(name, shape, str(buffer.dtype), role)
    return tensors


def _constant(size: ir.Expr, name: str) -> int:
    if not isinstance(size, tirx.IntImm):
        raise UnsupportedError(f"tensor {name}: size {size} is not constant")
    return int(size.value)


def _spans(
    tensor: Tensor,
    declared: Sequence[int],
    found: Sequence[Access],
    parts: Split,
    ranges: Ranges,
) -> tuple[_Span, ...]:
    return tuple(
        _span(tensor, axis, size, [(a.indices[axis], a) for a in found], parts, ranges)
        for axis, size in enumerate(declared)
    )


def _span(
    tensor: Tensor,
    axis: int,
    size: int,
    found: Sequence[tuple[Affine | None, Access]],
    parts: Split,
    ranges: Ranges,
) -> _Span:
    linear = [(index, a) for index, a in found if index is not None]
    origins = [index.only(parts.grid_vars) for index, _ in linear]
    if len(linear) < len(found) or any(o.terms != origins[0].terms for o in origins):
        # an index that moves in two ways with the grid, or is data: every DPU holds the whole axis
        if any(a.store for _, a in found):
            raise ScheduleError(
                f"tile of {tensor.name}: axis {axis} is written at no affine offset"
            )
        high = [b[1] for index, _ in linear if (b := index.bounds(ranges)) is not None]
        stored = max([size, *(h + 1 for h in high)])
        return _Span(Affine({}, 0), stored, size)
    inner = [(index - origins[0], a) for index, a in linear]
    low = min(_known(i.bounds(ranges), tensor)[0] for i, _ in inner)
    last = max(_known(upper_bound(i, a.loose_guards(ranges), ranges), tensor) for i, a in inner)
    owned = max(_known(upper_bound(i, a.guards, ranges), tensor) for i, a in inner)
    if any(a.store and _known(lower_bound(i, a.guards, ranges), tensor) > low for i, a in inner):
        raise ScheduleError(f"tile of {tensor.name}: axis {axis} is not written from its beginning")
    return _Span(origins[0] + low, last - low + 1, max(owned - low + 1, 1))


def _known(value: _T | None, tensor: Tensor) -> _T:
    if value is None:
        raise ScheduleError(f"tile of {tensor.name}: a loop without constant extent sets its size")
    return value


def _tile(
    tensor: Tensor, symbol: str, found: Sequence[Access], spans: Sequence[_Span], parts: Split
) -> Tile:
    """The tile's shape, offsets and mode; a tensor that is stored before it is loaded only comes
    back."""
    stored, loaded = any(a.store for a in found), any(not a.store for a in found)
    mode: Mode = "in"
    if stored:
        mode = "inout" if loaded and not found[0].store else "out"
        if mode == "inout" and tensor.role == "output":
            raise UnsupportedError(f"tensor {tensor.name}: updated in place")
    margin, _ = parts.margins.get(tensor.name, ((0,) * len(spans), ()))
    tile = Tile(
        tensor=tensor.name,
        symbol=symbol,
        dtype=tensor.dtype,
        mode=mode,
        host_shape=tensor.shape or (1,),
        extent=tuple(s.owned for s in spans) or (1,),
        padded=storage([s.stored for s in spans], np.dtype(tensor.dtype).itemsize),
        offset_base=tuple(s.origin.const - n for s, n in zip(spans, margin, strict=True)) or (0,),
        offset_coeffs=tuple(tuple(s.origin.coefficient(v) for v in parts.grid_vars) for s in spans)
        or ((0,) * len(parts.grid),),
    )
    if stored and not _disjoint(tile, parts.grid):
        raise ScheduleError(f"tile of {tensor.name}: two DPUs write the same element")
    return tile


def _disjoint(tile: Tile, grid: Sequence[int]) -> bool:
    """No two DPUs' boxes overlap: every grid axis moves the box, and along each tensor axis a step
    of one grid axis clears all positions of the finer ones."""
    moving: set[int] = set()
    for extent, coeffs in zip(tile.extent, tile.offset_coeffs, strict=True):
        reach = extent
        for step, axis in sorted((c, j) for j, c in enumerate(coeffs) if c and grid[j] > 1):
            if step < reach:
                return False
            reach = step * (grid[axis] - 1) + reach
            moving.add(axis)
    return all(n == 1 or j in moving for j, n in enumerate(grid))


def _fit(buffer: tirx.Var, found: Sequence[Access], ranges: Ranges, names: Names) -> tirx.Var:
    """The local buffer with a short name, large enough for what its loops touch without their
    guards."""
    shape = []
    for axis, size in enumerate(buffer.shape):
        need = int(size)
        for access in found:
            index = access.indices[axis]
            bounds = index.bounds(ranges) if index is not None else (0, need - 1)
            if index is None or bounds is None:
                continue
            low = lower_bound(index, access.guards, ranges)
            if low is None or low < 0:
                raise ScheduleError(
                    f"buffer {buffer.name}: axis {axis} is read below its beginning"
                )
            high = upper_bound(index, access.loose_guards(ranges), ranges)
            need = max(need, bounds[1] + 1 if high is None else high + 1)
        shape.append(need)
    name = names.new(local_name(str(buffer.name)))
    return tirx.decl_buffer(shape, str(buffer.dtype), name, scope=buffer.scope(), layout=None)


def _rebase(
    body: Stmt, moved: Mapping[tirx.Var, tuple[tirx.Var, tuple[Affine, ...]]], ranges: Ranges
) -> Stmt:
    """Replace buffers, and global indices by local ones."""

    def local(buffer: tirx.Var, indices: Sequence[ir.Expr]) -> tuple[tirx.Var, list[ir.Expr]]:
        target, origin = moved.get(buffer, (buffer, ()))
        shifted = []
        for axis, index in enumerate(indices):
            linear = affine(index, ranges)
            if axis < len(origin) and linear is not None:
                shifted.append((linear - origin[axis]).expr(str(index.ty)))
            elif axis < len(origin) and origin[axis] != Affine({}, 0):
                shifted.append(tirx.Sub(index, origin[axis].expr(str(index.ty))))
            else:
                shifted.append(index)
        return target, shifted

    def load(node: ir.TensorLoad, mutator: tvm_ffi.StructuralMutator) -> ir.Expr:
        node = mutator.default_mutate(node) if node.source not in moved else node
        return tirx.BufferLoad(*local(node.source, [mutator.mutate(i) for i in node.indices]))

    def store(node: tirx.BufferStore, mutator: tvm_ffi.StructuralMutator) -> Stmt:
        buffer, indices = local(node.buffer, [mutator.mutate(i) for i in node.indices])
        return tirx.BufferStore(buffer, mutator.mutate(node.value), indices)

    return tvm_ffi.structural_mutate(body, [(ir.TensorLoad, load), (tirx.BufferStore, store)])


def _kernel(
    parts: Split, body: Stmt, moved: Mapping[tirx.Var, tuple[tirx.Var, tuple[Affine, ...]]]
) -> tirx.PrimFunc:
    new = [buffer for buffer, _ in moved.values()]
    mram = [b for b in new if b.scope() == SCOPE_MRAM]
    local = [b for b in new if b.scope() != SCOPE_MRAM]
    root = SBlock([], [], [], "root", body, alloc_buffers=local)
    func = tirx.PrimFunc([*parts.grid_vars, *mram], SBlockRealize([], True, root))
    attrs = {"global_symbol": "main", "s_tir": True, "atim.grid": list(parts.grid)}
    for key, value in attrs.items():
        func = func.with_attr(key, value)
    return func
