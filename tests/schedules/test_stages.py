"""Programs of several reductions: where they are cut, what stays on the host and why."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te, tirx, topi
from tvm.script import tirx as T

from atim.errors import UnsupportedError
from atim.evaluate import evaluate
from atim.schedules import design_space
from atim.schedules.manual import prim_of
from atim.schedules.stages import stages_of
from atim.target import Target

Cut = list[tuple[str, tuple[str, ...], tuple[str, ...], str | None]]


def cut(args: list[te.Tensor]) -> Cut:
    stages = stages_of(te.create_prim_func(args))
    return [(s.name, s.inputs, s.outputs, s.reason) for s in stages]


def matrix(dtype: str = "int32") -> te.Tensor:
    return te.placeholder((13, 45), dtype, "A")


def test_one_kernel_is_one_stage() -> None:
    a, k = matrix(), te.reduce_axis((0, 45), "k")
    y = te.compute((13,), lambda i: te.sum(a[i, k], axis=k), "y")
    assert cut([a, y]) == [("y", ("A",), ("y",), None)]


def test_two_sums_are_two_kernels_through_the_host() -> None:
    a, k, m = matrix(), te.reduce_axis((0, 45), "k"), te.reduce_axis((0, 45), "m")
    s = te.compute((13,), lambda i: te.sum(a[i, k], axis=k), "s")
    y = te.compute((13,), lambda i: te.sum(a[i, m] * s[i], axis=m), "y")
    assert cut([a, y]) == [("s", ("A",), ("s",), None), ("y", ("A", "s"), ("y",), None)]


def test_softmax_leaves_the_exponentials_to_the_host() -> None:
    a = matrix("float32")
    found = cut([a, topi.nn.softmax(a, axis=1)])
    assert [reason for *_, reason in found] == [
        None,
        "block T_softmax_exp: exp is done on the host, where its operand is",
        None,
        None,
    ]


def test_an_activation_joins_the_layer_before_it() -> None:
    w, v = te.placeholder((9, 45), "int32", "W"), te.placeholder((4, 9), "int32", "V")
    x, k = te.placeholder((45,), "int32", "x"), te.reduce_axis((0, 45), "k")
    h = te.compute((9,), lambda i: te.sum(w[i, k] * x[k], axis=k), "h")
    r = te.compute((9,), lambda i: tirx.max(h[i], tirx.const(0, "int32")), "r")
    m = te.reduce_axis((0, 9), "m")
    y = te.compute((4,), lambda i: te.sum(v[i, m] * r[m], axis=m), "y")
    assert [name for name, *_ in cut([w, v, x, y])] == ["h, r", "y"]


def test_a_place_of_a_maximum_is_two_reductions() -> None:
    a = matrix()
    names = [name for name, *_ in cut([a, topi.argmax(a, axis=1)])]
    assert names == ["A_red_temp.v1", "A_red_temp.v0, A_red"]


def test_nothing_for_dpus_is_refused_with_the_blocks_name() -> None:
    a = matrix("float64")
    y = te.compute((13, 45), lambda i, j: te.erf(a[i, j]), "y")
    with pytest.raises(UnsupportedError, match="block y: erf is done on the host"):
        cut([a, y])
    a = matrix("float32")
    y = te.compute((13, 45), lambda i, j: te.sin(a[i, j]), "y")
    with pytest.raises(UnsupportedError, match="block y: sin is done on the host"):
        cut([a, y])


def test_functions_stay_with_the_kernel_they_follow() -> None:
    a, k = matrix("float32"), te.reduce_axis((0, 45), "k")
    s = te.compute((13,), lambda i: te.sum(a[i, k], axis=k), "s")
    assert cut([a, te.compute((13,), lambda i: te.tanh(s[i]), "y")])[0][3] is None
    assert cut([a, te.compute((13, 45), lambda i, j: te.exp(a[i, j]), "y")])[0][3] is None


def test_other_blocks_of_two_results_are_refused() -> None:
    a, k = matrix(), te.reduce_axis((0, 45), "k")

    def combine(one: tuple, other: tuple) -> tuple:
        return one[0] + other[0], one[1] * other[1] + one[0]

    def start(t0: str, t1: str) -> tuple:
        return tirx.const(0, t0), tirx.const(1, t1)

    both = te.comm_reducer(combine, start, name="both")
    s, p = te.compute((13,), lambda i: both((a[i, k], a[i, k]), axis=k), name="t")
    with pytest.raises(UnsupportedError, match="block t: 2 results"):
        cut([a, s, p])


def test_two_results_that_do_not_meet_are_two_reductions() -> None:
    a = te.placeholder((2, 6, 5), "float32", "A")
    g, b = te.placeholder((6,), "float32", "g"), te.placeholder((6,), "float32", "b")
    found = cut([a, g, b, topi.nn.group_norm(a, g, b, 3, 1, [2])])
    assert sum(reason is None for *_, reason in found) >= 2


def test_squares_are_products() -> None:
    a = matrix("float32")
    y = te.compute((13, 45), lambda i, j: te.power(a[i, j], 2.0), "y")
    assert cut([a, y])[0][3] is None
    y = te.compute((13, 45), lambda i, j: te.power(a[i, j], 2.5), "y")
    with pytest.raises(UnsupportedError, match="block y: pow is done on the host"):
        cut([a, y])


def test_blocks_that_are_not_one_statement_in_their_loops_are_refused() -> None:
    a = matrix("float32")
    with pytest.raises(UnsupportedError, match="block cumsum_generic: not in loops"):
        cut([a, topi.cumsum(a, axis=0)])

    @T.prim_func(s_tir=True)
    def backwards(a: T.Buffer((7,), "int32"), y: T.Buffer((7,), "int32")) -> None:
        for i in range(7):
            with T.sblock("y"):
                v = T.axis.spatial(7, 6 - i)
                y[v] = a[v] * 2

    @T.prim_func(s_tir=True)
    def partly(a: T.Buffer((7,), "int32"), y: T.Buffer((7,), "int32")) -> None:
        for i in range(7):
            with T.sblock("y"):
                v = T.axis.spatial(7, i)
                T.where(i < 5)
                y[v] = a[v] * 2

    @T.prim_func(s_tir=True)
    def bare(a: T.Buffer((7,), "int32"), y: T.Buffer((7,), "int32")) -> None:
        for i in range(7):
            y[i] = a[i]

    for func, why in (
        (backwards, "block y: axis v is 6 - i, not a loop by itself"),
        (partly, "block y: only runs where i < 5"),
        (bare, "the program has no blocks"),
    ):
        with pytest.raises(UnsupportedError, match=why):
            stages_of(func)


def test_types_inside_of_an_expression_are_refused_by_the_block() -> None:
    a = matrix("float32")
    y = te.compute((13, 45), lambda i, j: a[i, j].astype("float16").astype("float32"), "narrowed")
    why = "block narrowed: cast gives float16, known are bool, int8"
    with pytest.raises(UnsupportedError, match=why):
        stages_of(te.create_prim_func([a, y]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_complements_are_for_dpus(dtype: str) -> None:
    a = matrix(dtype)
    func = te.create_prim_func([a, te.compute((13, 45), lambda i, j: ~a[i, j], "y")])
    (stage,) = stages_of(func)
    values = np.arange(-300, 285).reshape(13, 45).astype(dtype)
    np.testing.assert_array_equal(evaluate(stage.func, {"A": values}), ~values)


def test_a_copy_of_what_the_host_puts_in_order_stays_there() -> None:
    """Alone it is for the DPUs: they would have nothing to do."""
    a, k = te.placeholder((6, 10), "float32", "A"), te.reduce_axis((0, 15), "k")
    rows = te.compute((4, 15), lambda i, j: a[(i * 15 + j) // 10, (i * 15 + j) % 10], "rows")
    sums = te.compute((4,), lambda i: te.sum(rows[i, k] * rows[3 - i, k], axis=k), "sums")
    stages = stages_of(te.create_prim_func([a, rows, sums]))
    found = {stage.outputs[-1]: stage.reason for stage in stages}
    assert found["rows"] == "block rows: a copy is done on the host, where its operand is"
    assert found["sums"] is None
    alone = stages_of(te.create_prim_func([a, rows]))
    assert [stage.reason is None for stage in alone] == [False, True]


def test_programs_without_inputs_have_a_hand_schedule() -> None:
    y = te.compute((29,), lambda i: i * 2 + 1, "y")
    (stage,) = stages_of(te.create_prim_func([y]))
    target = Target(dpus=4)
    _, decisions = prim_of(design_space(stage.func, target), target)
    assert decisions["tile"] == 256


def test_rows_less_their_maximum_are_a_stage_of_their_own() -> None:
    """The host finishes results; what is larger than they are is no finish."""
    a, k = te.placeholder((9, 14), "int32", "A"), te.reduce_axis((0, 14), "k")
    most = te.compute((9,), lambda i: te.max(a[i, k], axis=k), "most")
    y = te.compute((9, 14), lambda i, j: a[i, j] - most[i], "y")
    found = [(stage.name, stage.reason) for stage in stages_of(te.create_prim_func([a, y]))]
    assert found == [("most", None), ("y", None)]
