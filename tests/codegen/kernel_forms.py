"""Comparison of kernels before and after a pass, and tiles for kernels written by hand."""

from __future__ import annotations

import tvm
from tvm import tirx

from atim.codegen.transfer import Tile


def vector_tile(name: str, mode: str, n: int, extent: int, step: int) -> Tile:
    """A one-axis tile of `extent` elements at step * grid index."""
    return Tile(name, name, "int32", mode, (n,), (extent,), (extent,), (0,), ((step,),))


def assert_same(after: tirx.PrimFunc, expected: tirx.PrimFunc) -> None:
    """Equal but for names."""
    plain = [f.without_attr("global_symbol") for f in (after, expected)]
    tvm.ir.assert_structural_equal(*plain, map_free_vars=True)


# 50 elements over four DPUs, 24 each
TILES = {
    "A": vector_tile("A", "in", 50, 24, 24),
    "C": vector_tile("C", "out", 50, 24, 24),
}
