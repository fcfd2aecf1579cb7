"""Instructions an element or multiply-accumulate of the emitted inner loops, beside public ones.

Each line is a kernel of the design space on one DPU with one tasklet, at two sizes; the difference
of their instruction counts over the difference of their work is what a loop costs, everything that
happens once a tile included. Every result is compared with NumPy. int32 is shown with values 0 to
49, as in ATiM's benchmark, and with the full range of values, side by side.

Public: instructions an element that published rates imply when one issues each cycle (PrIM's
Arithmetic-Throughput and STREAM, data/arithmetic.csv; "UPMEM Unleashed", arXiv 2510.15927: speed-up
over the compiler's code), and the compiler's own loops as baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx

from atim import pipeline, runtime, toolchain
from atim.schedules import Sketch, design_space
from atim.target import (
    MULTIPLY_BYTES,
    MULTIPLY_FLOAT,
    MULTIPLY_LIBRARY,
    MULTIPLY_NARROW,
    MULTIPLY_STEPS,
    MULTIPLY_STEPS_SECOND,
    MULTIPLY_WORDS,
    Target,
)

TARGET = Target(dpus=1)
TILE_BYTES = 1024
SMALL, FULL = "0..49", "full"
Array = npt.NDArray[Any]
_FORMS = {
    MULTIPLY_LIBRARY: "compiler",
    MULTIPLY_STEPS: "mul_step, matrix",
    MULTIPLY_STEPS_SECOND: "mul_step, vector",
    MULTIPLY_BYTES: "ten byte products",
    MULTIPLY_NARROW: "bytes, proved",
    MULTIPLY_WORDS: "packed bytes",
    MULTIPLY_FLOAT: "unpacked sums",
}


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot product of `rows` matrix rows with one vector; `limits` are what it may cost, by
    data."""

    types: tuple[str, str, str]
    form: int
    rows: int
    unroll: int
    limits: dict[str, float]


@dataclass(frozen=True, slots=True)
class Map:
    """An element-wise sum or a sum of everything. MRAM-bound: the DMA engine allows `limit`
    instructions an element at most, 0.545 cycles a byte and 38 a transfer of 1 KB."""

    name: str
    dtype: str
    unroll: int
    limit: float


_I32 = ("int32",) * 3
_F32 = ("float32",) * 3
DOTS = (
    Dot(_I32, MULTIPLY_LIBRARY, 4, 4, {}),
    Dot(_I32, MULTIPLY_STEPS, 4, 4, {SMALL: 7.5}),
    Dot(_I32, MULTIPLY_STEPS, 1, 4, {}),
    Dot(_I32, MULTIPLY_STEPS_SECOND, 4, 4, {}),
    Dot(_I32, MULTIPLY_BYTES, 4, 4, {SMALL: 26, FULL: 26}),
    Dot(_I32, MULTIPLY_NARROW, 4, 8, {SMALL: 4.2, FULL: 26}),
    Dot(_I32, MULTIPLY_NARROW, 2, 8, {FULL: 28}),
    Dot(("int8", "int8", "int32"), MULTIPLY_LIBRARY, 4, 16, {}),
    Dot(("int8", "int8", "int32"), MULTIPLY_WORDS, 1, 16, {SMALL: 3.1, FULL: 3.1}),
    Dot(("int8", "int8", "int32"), MULTIPLY_WORDS, 4, 16, {SMALL: 3.0, FULL: 3.0}),
    Dot(("uint8", "int8", "int32"), MULTIPLY_WORDS, 4, 16, {SMALL: 3.0, FULL: 3.0}),
    Dot(("int16", "int16", "int32"), MULTIPLY_LIBRARY, 4, 8, {}),
    Dot(("int16", "int16", "int32"), MULTIPLY_WORDS, 4, 8, {}),
    Dot(_F32, MULTIPLY_LIBRARY, 2, 2, {}),
    Dot(_F32, MULTIPLY_FLOAT, 1, 1, {SMALL: 90, FULL: 90}),
    Dot(_F32, MULTIPLY_FLOAT, 2, 2, {SMALL: 90, FULL: 90}),
    Dot(_F32, MULTIPLY_FLOAT, 4, 1, {SMALL: 90, FULL: 90}),
)
MAPS = (
    Map("va", "int32", 8, 6.98),
    Map("va", "int64", 8, 13.96),
    Map("va", "int8", 32, 1.74),
    Map("va", "int16", 8, 3.49),
    Map("va", "float32", 4, 6.98),
    Map("red", "int64", 8, 4.65),
    Map("red", "int32", 8, 2.33),
)
QUICK = (1, 4, 5, 9, 15)


def dot_sketch(dot: Dot, columns: int) -> Sketch:
    """y[i] = sum over k of A[i, k] * x[k], widened to the type of y."""
    a = te.placeholder((dot.rows, columns), dot.types[0], "A")
    x = te.placeholder((columns,), dot.types[1], "x")
    k = te.reduce_axis((0, columns), "k")

    def wide(value: te.TensorSlice) -> tirx.PrimExpr:
        return value if str(value.dtype) == dot.types[2] else value.astype(dot.types[2])

    y = te.compute((dot.rows,), lambda i: te.sum(wide(a[i, k]) * wide(x[k]), axis=k), "y")
    return design_space(te.create_prim_func([a, x, y]), TARGET)[0]


def map_sketch(case: Map, size: int) -> Sketch:
    """C = A + B, or b = sum of A."""
    a = te.placeholder((size,), case.dtype, "A")
    if case.name == "va":
        b = te.placeholder((size,), case.dtype, "B")
        func = te.create_prim_func([a, b, te.compute((size,), lambda i: a[i] + b[i], "y")])
    else:
        k = te.reduce_axis((0, size), "k")
        func = te.create_prim_func([a, te.compute((1,), lambda i: te.sum(a[k], axis=k), "y")])
    return design_space(func, TARGET)[0]


def values(rng: np.random.Generator, data: str, shape: Sequence[int], dtype: str) -> Array:
    """0 to 49, or everything that the type holds; floats 0 to 1, or of both signs."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        drawn = rng.random(shape) if data == SMALL else rng.standard_normal(shape)
        return drawn.astype(dtype)
    if data == SMALL:
        return rng.integers(0, 50, shape, dtype=dtype)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def instructions(sketch: Sketch, decisions: dict[str, int], arrays: dict[str, Array]) -> float:
    """Instructions of one run, its result compared with NumPy."""
    chosen = {d.name: d.values[0] for d in sketch.decisions} | decisions
    chosen = {name: chosen[name] for name in sketch.names}
    artifact = toolchain.build(pipeline.compile(sketch, chosen, TARGET), TARGET)
    outcome = runtime.run(artifact, arrays)
    assert outcome.outputs is not None
    np.testing.assert_array_equal(outcome.outputs["y"], _expected(sketch, arrays))
    return outcome.counters["instructions"]


def _expected(sketch: Sketch, arrays: dict[str, Array]) -> Array:
    dtype = sketch.output.dtype
    with np.errstate(over="ignore"):
        if "B" in arrays:
            return np.add(arrays["A"], arrays["B"])
        if "x" not in arrays:
            return np.asarray(arrays["A"].sum(keepdims=True, dtype=dtype))
        a, x = arrays["A"].astype(dtype), arrays["x"].astype(dtype)
        if np.dtype(dtype).kind != "f":
            return np.asarray(a @ x)
        total: Array = np.zeros(len(a), dtype)
        for column, factor in zip(a.T, x, strict=True):
            total = total + column * factor  # in the order of the kernel
        return total


def measure_dot(dot: Dot, data: str) -> float:
    """Instructions a multiply-accumulate."""
    rng = np.random.default_rng(0)
    tile = min(TILE_BYTES // np.dtype(dot.types[0]).itemsize, 512)
    counts = []
    for tiles in (2, 4):
        columns = tile * tiles
        arrays = {
            "A": values(rng, data, (dot.rows, columns), dot.types[0]),
            "x": values(rng, data, (columns,), dot.types[1]),
        }
        decisions = {"row_block": dot.rows, "unroll": dot.unroll, "tile": tile, "vector": 2}
        decisions["multiply"] = dot.form
        counts.append(instructions(dot_sketch(dot, columns), decisions, arrays))
    return (counts[1] - counts[0]) / (2 * tile * dot.rows)


def measure_map(case: Map) -> float:
    """Instructions an element."""
    rng = np.random.default_rng(0)
    tile = TILE_BYTES // np.dtype(case.dtype).itemsize
    counts = []
    for tiles in (2, 4):
        size = tile * tiles
        names = ("A", "B") if case.name == "va" else ("A",)
        arrays = {name: values(rng, SMALL, (size,), case.dtype) for name in names}
        decisions = {"unroll": case.unroll, "tile": tile}
        counts.append(instructions(map_sketch(case, size), decisions, arrays))
    return (counts[1] - counts[0]) / (2 * tile)


def run(quick: bool = False) -> int:
    """Print both tables; 1 when a loop costs more than it may."""
    failures = 0
    print("instructions a multiply-accumulate, one DPU, tiles of 1 KB, results compared")
    print(f"{'types':22} {'form':18} rows unroll {SMALL:>7} {FULL:>7}  at most")
    for number, dot in enumerate(DOTS):
        if quick and number not in QUICK:
            continue
        found = {data: measure_dot(dot, data) for data in (SMALL, FULL)}
        failures += sum(found[data] > limit for data, limit in dot.limits.items())
        types = f"{dot.types[0]} x {dot.types[1]}"
        limits = ", ".join(f"{limit:g} ({data})" for data, limit in dot.limits.items())
        print(
            f"{types:22} {_FORMS[dot.form]:18} {dot.rows:4} {dot.unroll:6}"
            f" {found[SMALL]:7.2f} {found[FULL]:7.2f}  {limits}"
        )
    print()
    print("instructions an element, and cycles that the DMA engine needs for it")
    for case in MAPS[:1] if quick else MAPS:
        cost = measure_map(case)
        bound = "MRAM" if cost < case.limit else "instructions"
        print(f"{case.name:4} {case.dtype:8} {cost:7.2f} {case.limit:7.2f}  bound by {bound}")
    return int(failures > 0)
