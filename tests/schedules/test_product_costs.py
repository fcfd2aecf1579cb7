"""Estimates of the forms of multiplication against kernels that are built and run."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te

from atim import pipeline, runtime, toolchain
from atim.schedules import Sketch, design_space
from atim.schedules.terms import terms_of
from atim.schedules.verify import check, explain
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
from atim.workloads import get

TARGET = Target(dpus=1)
TILE = 128


def dot(dtype: str, total: str, rows: int, columns: int) -> Sketch:
    a, x = te.placeholder((rows, columns), dtype, "A"), te.placeholder((columns,), dtype, "x")
    k = te.reduce_axis((0, columns), "k")
    wide = (lambda v: v) if dtype == total else (lambda v: v.astype(total))
    y = te.compute((rows,), lambda i: te.sum(wide(a[i, k]) * wide(x[k]), axis=k), "y")
    return design_space(te.create_prim_func([a, x, y]), TARGET)[0]


@pytest.mark.parametrize(
    ("dtype", "form", "rows", "unroll"),
    [
        ("int32", MULTIPLY_STEPS, 4, 4),
        ("int32", MULTIPLY_STEPS_SECOND, 2, 4),
        ("int32", MULTIPLY_BYTES, 4, 2),
        ("int32", MULTIPLY_NARROW, 4, 8),
        ("int8", MULTIPLY_WORDS, 4, 16),
        ("int8", MULTIPLY_WORDS, 2, 4),
        ("int16", MULTIPLY_LIBRARY, 4, 8),
        ("int16", MULTIPLY_WORDS, 4, 8),
        ("float32", MULTIPLY_FLOAT, 2, 2),
    ],
)
def test_estimated_slots_and_words(dtype, form, rows, unroll, rng):
    chosen = {"row_block": rows, "unroll": unroll, "tile": TILE, "vector": 2, "multiply": form}
    slots, words, terms = measured(dtype, rows, chosen, rng)
    # what happens once a tile is not the body's: a tenth here, more around the shortest body
    assert terms["body_slots"][0] == pytest.approx(slots, rel=0.12)
    assert words <= terms["iram_words"][0]


@pytest.mark.parametrize(
    ("dtype", "form", "block", "tile"),
    [
        ("int32", MULTIPLY_NARROW, 4, 16),
        ("int8", MULTIPLY_WORDS, 4, 32),
        ("float32", MULTIPLY_FLOAT, 1, 8),
    ],
)
def test_sums_that_wait_in_wram_beside_a_tile_unrolled_whole(dtype, form, block, tile, rng):
    chosen = {"row_block": block, "unroll": tile, "tile": tile, "vector": 1, "multiply": form}
    slots, words, terms = measured(dtype, 4 * block, chosen, rng)
    again = terms_of(*candidate(dtype, 4 * block, 2 * TILE, chosen))
    estimate = (terms["instructions"][0] - again["instructions"][0]) / (2 * TILE * 4 * block)
    assert estimate == pytest.approx(slots, rel=0.1)
    assert words <= terms["iram_words"][0]


def candidate(dtype: str, rows: int, columns: int, chosen: dict[str, int]) -> tuple:
    """(sketch, row of decisions) on one DPU."""
    sketch = dot(dtype, dtype if dtype[0] == "f" else "int32", rows, columns)
    decisions = {d.name: d.values[0] for d in sketch.decisions} | chosen
    return sketch, sketch.vector(decisions)


def measured(dtype: str, rows: int, chosen: dict[str, int], rng) -> tuple:
    """(instructions a multiply-accumulate, instructions of code, terms) of a kernel that is run."""
    counts = []
    for columns in (2 * TILE, 4 * TILE):
        sketch, row = candidate(dtype, rows, columns, chosen)
        decisions = dict(zip(sketch.names, row[0].tolist(), strict=True))
        sources = pipeline.compile(sketch, decisions, TARGET)
        artifact = toolchain.build(sources, TARGET, host=False)
        arrays = {
            "A": rng.integers(0, 50, (rows, columns)).astype(dtype),
            "x": rng.integers(0, 50, columns).astype(dtype),
        }
        if dtype == "float32":
            arrays = {name: rng.random(v.shape, np.float32) for name, v in arrays.items()}
        outcome = runtime.run(artifact, arrays, representatives=True)
        counts.append(outcome.counters["instructions"])
    slots = (counts[1] - counts[0]) / (2 * TILE * rows)
    return slots, len(artifact.program.words), terms_of(sketch, row)


def test_forms_follow_the_types():
    def forms(name: str, dtype: str) -> list[tuple[int, ...]]:
        sketches = design_space(get(name, None, dtype).func, TARGET)
        return [d.values for s in sketches for d in s.decisions if d.name == "multiply"]

    assert set(forms("mtv", "int8")) == {(MULTIPLY_WORDS,)}
    assert set(forms("mtv", "float32")) == {(MULTIPLY_FLOAT,)}
    assert set(forms("mtv", "float64")) == {(MULTIPLY_LIBRARY,)}
    assert set(map(len, forms("mmtv", "int32"))) == {5}
    assert forms("va", "int32") == forms("red", "int32") == []


def test_unrolled_steps_that_do_not_fit_are_refused_before_a_build():
    sketch = design_space(get("mtv", (4096, 4096)).func, Target(dpus=64))[0]
    decisions = {d.name: d.values[-1] for d in sketch.decisions}
    decisions |= {
        "tasklets": 8,
        "row_block": 4,
        "unroll": 64,
        "tile": 64,
        "vector": 0,
        "dpus_i": 64,
    }
    reasons = {
        form: explain(sketch, decisions | {"multiply": form}, sketch.target)
        for form in (MULTIPLY_STEPS, MULTIPLY_NARROW)
    }
    assert str(reasons[MULTIPLY_STEPS]).startswith("IRAM: ")
    assert reasons[MULTIPLY_NARROW] is None
    wrong = decisions | {"multiply": MULTIPLY_FLOAT + 1}
    assert not check(sketch, sketch.vector(wrong), sketch.target)[0][0]
