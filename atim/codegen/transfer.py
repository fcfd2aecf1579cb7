"""Which box of which tensor lies in which DPU's MRAM, and how it is padded there.

A kernel sees local coordinates only: `Tile` says where its local array begins in the host tensor
(affine in the DPU's grid index) and how long it is. Every DPU gets an equally sized slice, as the
SDK's parallel transfers demand; the host clips the box to the tensor and fills the rest with zeros
(ATiM, ISCA 2025, section 5.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

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
    `finish_args` (see `Sources` for the C signatures).
    """

    grid: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    tiles: tuple[Tile, ...]
    grid_symbol: str | None = None
    prepare: str | None = None
    prepare_args: tuple[str, ...] = ()
    finish: str | None = None
    finish_args: tuple[str, ...] = ()

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
