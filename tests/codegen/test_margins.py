"""Inputs read outside of themselves or backwards: tiles that begin before the tensor."""

from __future__ import annotations

import numpy as np
import pytest
from native import run_native
from tvm import te, tirx

from atim import pipeline
from atim.errors import UnsupportedError
from atim.schedules import Sketch, design_space
from atim.target import Target

TARGET = Target(dpus=3)


def smallest(sketch: Sketch) -> dict[str, int]:
    return {d.name: d.values[0] for d in sketch.decisions} | {"tasklets": 2}


def run(args: list[te.Tensor], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    (sketch, *_) = design_space(te.create_prim_func(args), TARGET)
    sources = pipeline.compile(sketch, smallest(sketch), TARGET)
    a = rng.integers(-50, 50, [int(n) for n in args[0].shape]).astype("int32")
    (out,) = run_native(sources, {"A": a}).values()
    return a, out


def test_backwards(rng: np.random.Generator) -> None:
    a = te.placeholder((29,), "int32", "A")
    values, out = run([a, te.compute((29,), lambda i: a[28 - i], "y")], rng)
    np.testing.assert_array_equal(out, values[::-1])


def test_padding_keeps_the_true_shape_of_the_tensor(rng: np.random.Generator) -> None:
    a, three = te.placeholder((6, 7), "int32", "A"), tirx.const(3, "int32")

    def value(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        inside = tirx.all(i >= 1, i < 7, j >= 2, j < 9)
        return tirx.if_then_else(inside, a[i - 1, j - 2], three)

    args = [a, te.compute((9, 12), value, "y")]
    values, out = run(args, rng)
    np.testing.assert_array_equal(out, np.pad(values, ((1, 2), (2, 3)), constant_values=3))
    (sketch,) = design_space(te.create_prim_func(args), TARGET)
    (tile, _) = pipeline.compile(sketch, smallest(sketch), TARGET).plan.tiles
    assert tile.host_shape == (6, 7)
    assert tile.offset_base[0] == -1


def test_an_input_that_another_block_reads_as_well_is_refused() -> None:
    a, k = te.placeholder((8, 9), "int32", "A"), te.reduce_axis((0, 9), "k")
    t = te.compute((8,), lambda i: te.sum(a[i, 8 - k], axis=k), "t")
    y = te.compute((8, 9), lambda i, j: a[i, j] - t[i], "y")
    with pytest.raises(UnsupportedError, match="block t: A is read outside of itself"):
        design_space(te.create_prim_func([a, y]), TARGET)
