"""What DPUs computed is compared with the part of the program that the decisions give them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm import te, tirx

from atim import workloads
from atim.errors import MismatchError
from atim.runtime import Piece
from atim.schedules import design_space
from atim.schedules.shapes import shape_of
from atim.target import Target
from atim.tuner.compare import check_outputs, check_piece
from atim.tuner.measure import Problem, run_task, sample_inputs
from atim.tuner.trial import Task


def problem(name: str = "mtv", shape: tuple[int, ...] = (30, 100), dtype: str = "int32") -> Problem:
    workload = workloads.get(name, shape, dtype)
    return Problem.of(workload.func, Target(dpus=64), workload.resident)


def sketch_of(job: Problem, split: bool):
    sketch = next(s for s in job.sketches() if s.split_reduction is split)
    return sketch, {d.name: d.values[0] for d in sketch.decisions}


def test_inputs_are_the_same_every_time_and_named():
    first, second = problem().inputs(), problem().inputs()
    assert list(first) == ["A", "x"]
    assert first["A"].shape == (30, 100)
    assert first["A"].max() == 49
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def quotient(offset):
    a, b = (te.placeholder((100,), "int32", name=name) for name in "AB")

    def element(i):
        return tirx.truncmod(a[i], b[i] - offset if offset else b[i])

    return te.create_prim_func([a, b, te.compute((100,), element, name="C")])


def test_numbers_to_divide_by_are_not_zero():
    inputs = sample_inputs(quotient(0))
    assert (inputs["A"] == 0).any()
    assert inputs["B"].min() == 1


def test_a_division_by_zero_is_told_as_one_of_the_test_data():
    func, target = quotient(3), Target(dpus=4)
    sketch = design_space(func, target)[0]
    task = Task(sketch.name, {d.name: min(d.values) for d in sketch.decisions})
    measured = run_task(func, sketch, task, sample_inputs(func))
    assert measured.reason == "fault"
    assert measured.message.startswith(
        "a divisor is 0 in the test data (integers 0 to 49): program"
    )


def test_rows_of_an_output_are_checked_exactly():
    job = problem()
    sketch, decisions = sketch_of(job, split=False)
    arrays = job.inputs()
    right = Piece("y", 3, (10,), (arrays["A"] @ arrays["x"])[10:20])
    check_piece(sketch, decisions, arrays, right)
    values = right.values.copy()
    values[4] += 1
    with pytest.raises(
        MismatchError, match=rf"DPU 3: y\[4\] is {values[4]}, should be .* \(1 of 10"
    ):
        check_piece(sketch, decisions, arrays, replace(right, values=values))


def test_a_partial_result_is_checked_over_its_piece_alone():
    job = problem()
    sketch, decisions = sketch_of(job, split=True)
    decisions |= {"pieces": 3, "tile": 8}
    columns = sketch.columns(sketch.vector(decisions))
    span = int(shape_of(sketch, columns).dpu[sketch.roles.piece][0])
    arrays = job.inputs()
    for piece in range(3):
        cut = slice(piece * span, min((piece + 1) * span, 100))
        values = arrays["A"][4:8, cut] @ arrays["x"][cut]
        partial = Piece("y_rf", 0, (piece, 4), values[None])
        check_piece(sketch, decisions, arrays, partial)
        with pytest.raises(MismatchError):
            check_piece(sketch, decisions, arrays, replace(partial, start=((piece + 1) % 3, 4)))


def test_what_lies_past_the_last_row_is_ignored():
    job = problem()
    sketch, decisions = sketch_of(job, split=False)
    arrays = job.inputs()
    values = np.concatenate([(arrays["A"] @ arrays["x"])[28:], np.array([7, 7], "int32")])
    check_piece(sketch, decisions, arrays, Piece("y", 0, (28,), values))


def test_floats_may_differ_by_rounding_and_no_more():
    job = problem(dtype="float32")
    sketch, decisions = sketch_of(job, split=False)
    arrays = job.inputs()
    exact = (arrays["A"].astype("float64") @ arrays["x"].astype("float64")).astype("float32")
    check_piece(sketch, decisions, arrays, Piece("y", 0, (0,), np.nextafter(exact, np.float32(0))))
    for wrong in (exact * np.float32(1.001), np.where(exact == exact[3], np.nan, exact)):
        with pytest.raises(MismatchError, match="should be"):
            check_piece(sketch, decisions, arrays, Piece("y", 0, (0,), wrong.astype(np.float32)))


def test_nan_and_infinities_are_where_numpy_has_them():
    a = te.placeholder((4,), "float32", "A")
    y = te.compute((4,), lambda i: a[i], "y")
    func = te.create_prim_func([a, y])
    wanted = np.array([np.nan, np.inf, -np.inf, 1.5], "float32")
    check_outputs(func, {"A": wanted}, {"y": wanted.copy()})
    for at, value in ((0, 0.0), (1, -np.inf), (1, np.nan), (2, -1e38), (3, 1.6), (3, np.nan)):
        wrong = wanted.copy()
        wrong[at] = value
        with pytest.raises(MismatchError, match=rf"y\[{at}\] is .*1 of 4 wrong"):
            check_outputs(func, {"A": wanted}, {"y": wrong})


def test_a_wrong_dtype_is_a_mismatch():
    job = problem()
    sketch, decisions = sketch_of(job, split=False)
    arrays = job.inputs()
    values = (arrays["A"] @ arrays["x"]).astype("int64")
    with pytest.raises(MismatchError, match=r"y is int64\[30\], should be int32\[30\]"):
        check_piece(sketch, decisions, arrays, Piece("y", 0, (0,), values))


def test_complete_outputs_include_what_the_host_adds():
    job = problem("gemv")
    arrays = job.inputs()
    right = workloads.get("gemv", (30, 100)).reference(arrays)
    check_outputs(job.func(), arrays, {"y": right})
    with pytest.raises(MismatchError, match=r"y\[0\] is"):
        check_outputs(job.func(), arrays, {"y": right + 1})
