"""PrIM-like schedules: right, legal, and of the published structure."""

from __future__ import annotations

import numpy as np
import pytest
import serial

from atim.errors import UsageError
from atim.schedules import design_space
from atim.schedules.manual import prim_choices, prim_pieces, prim_style
from atim.schedules.rules import apply
from atim.schedules.terms import terms_of
from atim.schedules.verify import explain
from atim.target import Target
from atim.workloads import WORKLOADS, get

TARGET = Target(dpus=64)
NAMES = list(WORKLOADS)


@pytest.mark.parametrize("name", NAMES)
def test_right_numbers(name: str, rng: np.random.Generator) -> None:
    workload = get(name, {1: (5001,), 2: (67, 530), 3: (5, 23, 300)}[len(WORKLOADS[name].sizes)])
    arrays = workload.inputs(rng)
    expected = workload.reference(arrays)
    sketch, decisions = prim_style(workload, TARGET)
    result = serial.run(
        apply(sketch, decisions), list(arrays.values()), expected.shape, workload.dtype
    )
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", NAMES)
def test_legal_at_the_usual_shapes(name: str) -> None:
    target = Target(dpus=2048)
    for shape in WORKLOADS[name].shapes:
        sketch, decisions = prim_style(get(name, shape), target)
        assert explain(sketch, decisions, target) is None, (shape, decisions)
        assert sketch.split_reduction == (name == "red")


def test_mtv_structure() -> None:
    sketch, decisions = prim_style(get("mtv", (8192, 8192)), Target(dpus=2048), dpus=256)
    terms = {k: v[0] for k, v in terms_of(sketch, sketch.vector(decisions)).items()}
    assert terms["dpus"] == 256
    assert terms["tasklets"] == 16
    assert terms["tile_bytes"] == 1024
    assert terms["row_block"] == 1
    # the vector is read as often as the matrix
    assert terms["read_bytes"] == 2 * 2 * 8192 * 4
    assert terms["h2d_bytes"] == 8192 * 4


def test_va_blocks_are_dealt_in_turn() -> None:
    sketch, decisions = prim_style(get("va", (1 << 20,)), Target(dpus=64))
    text = apply(sketch, decisions).mod["main"].script()
    assert "i_1_0 * 4096 + i_1_1 * 256" in text


@pytest.mark.parametrize("pieces", [1, 2, 32, 1024])
def test_pieces_divide_the_dpus(pieces: int) -> None:
    target = Target(dpus=2048)
    sketch, decisions = prim_pieces(get("mtv", (8192, 8192)), target, pieces)
    terms = {k: v[0] for k, v in terms_of(sketch, sketch.vector(decisions)).items()}
    assert explain(sketch, decisions, target) is None
    assert terms["dpus"] == 2048
    assert terms["pieces"] == pieces
    assert terms["tile"] == min(256, 8192 // pieces)
    assert terms["h2d_bytes"] == 8192 // pieces * 4


def test_bad_use() -> None:
    with pytest.raises(UsageError, match="pieces: 3 requested, a divisor of 2048 DPUs needed"):
        prim_pieces(get("mtv"), Target(dpus=2048), 3)
    with pytest.raises(UsageError, match="DPUs: 100 requested, limit 64"):
        prim_style(get("mtv"), TARGET, dpus=100)


def test_choices_are_those_of_the_evaluation() -> None:
    target = Target(dpus=2048)
    sketches = design_space(get("mtv", (4096, 4096)).func, target, ("A",))
    assert [dpus for dpus, _, _ in prim_choices(sketches, target)] == [256, 512, 1024, 2048]
    few = design_space(get("mtv", (300, 64)).func, target, ("A",))
    # more DPUs than rows change nothing
    assert [dpus for dpus, _, _ in prim_choices(few, target)] == [256, 512]
    small = Target(dpus=64)
    assert [dpus for dpus, _, _ in prim_choices(few, small)] == [64]
