"""The rules are written for programs, not for named operators: products of matrices, broadcasts,
chains, reductions along any axis, convolutions, transposition; and what they refuse, with the
reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import serial
from tvm import te, tirx

from atim.errors import UnsupportedError, UsageError
from atim.schedules import analyse, design_space
from atim.schedules.rules import apply
from atim.schedules.verify import check
from atim.target import Target

TARGET = Target(dpus=48)
Reference = Callable[[dict[str, np.ndarray]], np.ndarray]
Made = tuple[list[te.Tensor], Reference]


def tensor(name: str, *shape: int, dtype: str = "int32") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def axis(extent: int, name: str = "k") -> tirx.IterVar:
    return te.reduce_axis((0, extent), name)


def total(
    shape: tuple[int, ...],
    value: Callable[..., tirx.PrimExpr],
    *axes: tirx.IterVar,
    name: str = "t",
) -> te.Tensor:
    return te.compute(shape, lambda *i: te.sum(value(*i), axis=list(axes)), name)


def matmul_transposed() -> Made:
    a, b, k = tensor("A", 9, 21), tensor("B", 14, 21), axis(21)
    c = total((9, 14), lambda i, j: a[i, k] * b[j, k], k)
    return [a, b, c], lambda v: v["A"] @ v["B"].T


def matmul() -> Made:
    a, b, k = tensor("A", 9, 21), tensor("B", 21, 14), axis(21)
    c = total((9, 14), lambda i, j: a[i, k] * b[k, j], k)
    return [a, b, c], lambda v: v["A"] @ v["B"]


def batched_matmul() -> Made:
    a, b, k = tensor("A", 3, 5, 11), tensor("B", 3, 11, 8), axis(11)
    c = total((3, 5, 8), lambda q, i, j: a[q, i, k] * b[q, k, j], k)
    return [a, b, c], lambda v: v["A"] @ v["B"]


def linear_relu() -> Made:
    a, w, b, k = tensor("A", 6, 21), tensor("W", 13, 21), tensor("b", 13), axis(21)
    t = total((6, 13), lambda i, j: a[i, k] * w[j, k], k)
    u = te.compute((6, 13), lambda i, j: t[i, j] + b[j], "u")
    y = te.compute((6, 13), lambda i, j: tirx.max(u[i, j], tirx.const(0, "int32")), "y")
    return [a, w, b, y], lambda v: np.maximum(v["A"] @ v["W"].T + v["b"], 0)


def centred_rows() -> Made:
    """The result is read at another shape: the host does it."""
    a, k = tensor("A", 13, 30), axis(30)
    t = total((13,), lambda i: a[i, k], k)
    y = te.compute((13, 30), lambda i, j: a[i, j] - t[i], "y")
    return [a, y], lambda v: v["A"] - v["A"].sum(1, keepdims=True, dtype=np.int32)


def bias_of_columns() -> Made:
    a, b = tensor("A", 11, 37), tensor("b", 37)
    y = te.compute((11, 37), lambda i, j: a[i, j] + b[j], "y")
    return [a, b, y], lambda v: v["A"] + v["b"]


def bias_of_rows() -> Made:
    a, b = tensor("A", 11, 37), tensor("b", 11)
    y = te.compute((11, 37), lambda i, j: a[i, j] + b[i], "y")
    return [a, b, y], lambda v: v["A"] + v["b"][:, None]


def outer_product() -> Made:
    a, b = tensor("A", 11), tensor("B", 37)
    return [a, b, te.compute((11, 37), lambda i, j: a[i] * b[j], "y")], lambda v: np.outer(
        v["A"], v["B"]
    )


def transposition() -> Made:
    a = tensor("A", 23, 38)
    return [a, te.compute((38, 23), lambda i, j: a[j, i], "y")], lambda v: v["A"].T


def one_long_column() -> Made:
    a, b = tensor("A", 29, 1), tensor("b", 29)
    y = te.compute((29, 1), lambda i, j: a[i, j] + b[i], "y")
    return [a, b, y], lambda v: v["A"] + v["b"][:, None]


def column_sums() -> Made:
    a, k = tensor("A", 31, 45), axis(31)
    s = total((45,), lambda j: a[k, j], k)
    return [a, s], lambda v: v["A"].sum(0, dtype=np.int32)


def sum_of_two_axes() -> Made:
    a, k, m = tensor("A", 12, 25), axis(12), axis(25, "m")
    s = total((1,), lambda _: a[k, m], k, m)
    return [a, s], lambda v: v["A"].sum(dtype=np.int32).reshape(1)


def row_maxima() -> Made:
    a, k = tensor("A", 19, 45), axis(45)
    y = te.compute((19,), lambda i: te.max(a[i, k], axis=k), "y")
    return [a, y], lambda v: v["A"].max(1)


def convolution() -> Made:
    a, w, r = tensor("A", 70), tensor("w", 5), axis(5, "r")
    y = total((66,), lambda i: a[i + r] * w[r], r)
    return [a, w, y], lambda v: np.correlate(v["A"], v["w"], "valid").astype(np.int32)


def five_point_stencil() -> Made:
    a = tensor("A", 22, 35)
    y = te.compute(
        (20, 33),
        lambda i, j: (
            a[i + 1, j + 1] + a[i, j + 1] + a[i + 2, j + 1] + a[i + 1, j] + a[i + 1, j + 2]
        ),
        "y",
    )
    return (
        [a, y],
        lambda v: (
            v["A"][1:-1, 1:-1]
            + v["A"][:-2, 1:-1]
            + v["A"][2:, 1:-1]
            + v["A"][1:-1, :-2]
            + v["A"][1:-1, 2:]
        ),
    )


def bytes_to_words() -> Made:
    a, x, k = tensor("A", 19, 45, dtype="int8"), tensor("x", 45, dtype="int8"), axis(45)
    y = total((19,), lambda i: a[i, k].astype("int32") * x[k].astype("int32"), k)
    return [a, x, y], lambda v: v["A"].astype(np.int32) @ v["x"].astype(np.int32)


PROGRAMS = [
    matmul_transposed,
    matmul,
    batched_matmul,
    linear_relu,
    centred_rows,
    bias_of_columns,
    bias_of_rows,
    outer_product,
    transposition,
    one_long_column,
    column_sums,
    sum_of_two_axes,
    row_maxima,
    convolution,
    five_point_stencil,
    bytes_to_words,
]


@pytest.mark.parametrize("make", PROGRAMS)
def test_every_sketch_means_the_program(make: Callable[[], Made], rng: np.random.Generator) -> None:
    args, reference = make()
    func = te.create_prim_func(args)
    arrays = {
        t.op.name: rng.integers(-50, 50, [int(n) for n in t.shape]).astype(str(t.dtype))
        for t in args[:-1]
    }
    expected = reference(arrays)
    for sketch in design_space(func, TARGET):
        matrix = np.stack([rng.choice(d.values, 400) for d in sketch.decisions], axis=1)
        matrix = matrix[check(sketch, matrix, TARGET)[0]]
        assert len(matrix), f"{sketch.name}: nothing legal in 400 draws"
        decisions = dict(zip(sketch.names, map(int, matrix[0]), strict=True))
        inputs = list(arrays.values())
        result = serial.run(apply(sketch, decisions), inputs, expected.shape, "int32")
        np.testing.assert_array_equal(result, expected, f"{sketch.name} {decisions}")


def softmax_sums() -> list[te.Tensor]:
    a, k, m = tensor("A", 8, 8), axis(8), axis(8, "m")
    s = total((8,), lambda i: a[i, k], k, name="first")
    return [a, total((8,), lambda i: a[i, m] * s[i], m, name="second")]


def gather() -> list[te.Tensor]:
    a, at = tensor("A", 8), tensor("at", 8)
    return [a, at, te.compute((8,), lambda i: a[at[i]], "y")]


def reversal() -> list[te.Tensor]:
    a = tensor("A", 8)
    return [a, te.compute((8,), lambda i: a[i] + a[7 - i], "y")]


def halves() -> list[te.Tensor]:
    a = tensor("A", 8, dtype="bfloat16")
    return [a, te.compute((8,), lambda i: a[i] + a[i], "y")]


def twins() -> list[te.Tensor]:
    a, b = tensor("A", 8), tensor("A", 8)
    return [a, b, te.compute((8,), lambda i: a[i] + b[i], "y")]


def sums_of_places() -> list[te.Tensor]:
    a, k = te.placeholder((8,), "int32", "A"), te.reduce_axis((0, 5), "k")
    return [a, te.compute((8,), lambda i: te.sum(k + i, axis=k), "y")]


def unread() -> list[te.Tensor]:
    a, b = (te.placeholder((8,), "int32", name) for name in "AB")
    return [a, b, te.compute((8,), lambda i: a[i] + 1, "y")]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (softmax_sums, "blocks first, second: one reduction at most in a kernel"),
        (gather, "block y: index at[v_i] of A is not affine"),
        (reversal, "block y: A is read at two different indices"),
        (halves, "block y: y is bfloat16, known are bool, int8"),
        (twins, "block y: two tensors are named A"),
        (sums_of_places, "block y: a reduction that reads no tensor"),
    ],
)
def test_refusals_name_the_block(make: Callable[[], list[te.Tensor]], message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        analyse(te.create_prim_func(make()))
    assert message in str(caught.value)


def test_unknown_resident_operand() -> None:
    args, _ = linear_relu()
    func = te.create_prim_func(args)
    assert design_space(func, TARGET, ("W", "b"))
    with pytest.raises(UsageError, match="resident: 'V' unknown, inputs: A, W, b"):
        design_space(func, TARGET, ("V",))
    assert design_space(te.create_prim_func(unread()), TARGET, ("B",))[0].resident == ()
    with pytest.raises(UsageError, match="resident: 'y' unknown, inputs: A, B"):
        design_space(te.create_prim_func(unread()), TARGET, ("y",))


def test_arithmetic_is_counted_without_indices() -> None:
    program = analyse(te.create_prim_func(convolution()[0]))
    assert program.operations == (("add", "int32", 1), ("mul", "int32", 1))
    (sketch, *_) = design_space(te.create_prim_func(linear_relu()[0]), TARGET)
    assert sketch.epilogue is not None
    assert sketch.epilogue.operations == (("add", "int32", 1), ("max", "int32", 1))
