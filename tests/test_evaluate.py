"""`evaluate` agrees with plain NumPy on whole programs, on boxes, and on partial reductions."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te, tirx, topi

from atim import evaluate as ev
from atim.errors import UnsupportedError
from atim.functions import HOST


def matvec(m: int, k: int, dtype: str, out: str | None = None) -> tirx.PrimFunc:
    A = te.placeholder((m, k), dtype, "A")
    x = te.placeholder((k,), dtype, "x")
    r = te.reduce_axis((0, k), "k")
    wide = out or dtype
    y = te.compute((m,), lambda i: te.sum(A[i, r].astype(wide) * x[r].astype(wide), axis=r), "y")
    return te.create_prim_func([A, x, y])


def ints(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_axes_are_named_in_te_order():
    assert ev.axes(matvec(5, 7, "int32")) == (
        ev.Axis("i", 5, False),
        ev.Axis("k", 7, True),
    )


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_matvec_wraps_as_the_c_type(rng, dtype):
    a, x = ints(rng, (13, 300), dtype), ints(rng, (300,), dtype)
    got = ev.evaluate(matvec(13, 300, dtype), {"A": a, "x": x})
    wrapped = [sum(int(p) * int(q) for p, q in zip(row, x, strict=True)) for row in a]
    bits = np.iinfo(dtype).bits
    want = [(w + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for w in wrapped]
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.array(want, dtype))


def test_small_values_take_the_exact_float64_road_and_stay_exact(rng):
    a, x = rng.integers(0, 50, (40, 999), "int32"), rng.integers(0, 50, 999, "int32")
    got = ev.evaluate(matvec(40, 999, "int32"), {"A": a, "x": x})
    np.testing.assert_array_equal(got, a @ x)


def test_widening_products_do_not_wrap_in_the_narrow_type(rng):
    a, x = ints(rng, (3, 64), "int8"), ints(rng, (64,), "int8")
    got = ev.evaluate(matvec(3, 64, "int8", "int32"), {"A": a, "x": x})
    np.testing.assert_array_equal(got, a.astype("int32") @ x.astype("int32"))


def test_partial_boxes_add_up_to_the_whole(rng, monkeypatch):
    monkeypatch.setattr(ev, "CHUNK_ELEMENTS", 100)
    func = matvec(20, 77, "int32")
    arrays = {"A": ints(rng, (20, 77), "int32"), "x": ints(rng, (77,), "int32")}
    whole = ev.evaluate(func, arrays)
    parts = [ev.evaluate(func, arrays, [(5, 9), (lo, hi)]) for lo, hi in ((0, 32), (32, 77))]
    np.testing.assert_array_equal(parts[0] + parts[1], whole[5:9])
    np.testing.assert_array_equal(
        parts[0], (arrays["A"][5:9, :32] * arrays["x"][:32]).sum(axis=1, dtype="int32")
    )


def test_an_empty_reduction_range_gives_the_initial_value(rng):
    arrays = {"A": ints(rng, (4, 8), "int32"), "x": ints(rng, (8,), "int32")}
    got = ev.evaluate(matvec(4, 8, "int32"), arrays, [(0, 4), (8, 8)])
    np.testing.assert_array_equal(got, np.zeros(4, "int32"))


def test_float_sums_are_rounded_once(rng):
    a, x = rng.random((6, 5000), "float32"), rng.random(5000, "float32")
    got = ev.evaluate(matvec(6, 5000, "float32"), {"A": a, "x": x})
    want = (a.astype("float64") @ x.astype("float64")).astype("float32")
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)


def test_an_output_is_no_intermediate_of_the_same_name(rng):
    a, g = te.placeholder((7, 5), "float32", "A"), te.placeholder((5,), "float32", "g")
    y = topi.nn.rms_norm(a, g, [1])
    func = te.create_prim_func([a, g, y])
    assert ev.written(func).count(y.op.name) > 1
    x, factors = rng.random((7, 5), "float32"), rng.random(5, "float32")
    size = np.sqrt((x * x).mean(1, keepdims=True) + np.float32(1e-5))
    found = ev.evaluate(func, {"A": x, "g": factors}, output=y.op.name)
    np.testing.assert_allclose(found, x / size * factors, rtol=1e-5)


def test_batched_and_three_factor_products(rng):
    A = te.placeholder((4, 5, 6), "int32", "A")
    B = te.placeholder((4, 6), "int32", "B")
    c = te.placeholder((5,), "int32", "c")
    k = te.reduce_axis((0, 6), "k")
    y = te.compute((4, 5), lambda i, j: te.sum(A[i, j, k] * B[i, k] * c[j], axis=k), "y")
    func = te.create_prim_func([A, B, c, y])
    arrays = {n: ints(rng, s, "int32") for n, s in (("A", (4, 5, 6)), ("B", (4, 6)), ("c", (5,)))}
    want = np.einsum("ijk,ik,j->ij", arrays["A"], arrays["B"], arrays["c"])
    np.testing.assert_array_equal(ev.evaluate(func, arrays), want)
    np.testing.assert_array_equal(
        ev.evaluate(func, arrays, [(1, 3), (2, 3), (0, 6)]), want[1:3, 2:3]
    )


def test_a_reduced_axis_no_factor_uses_multiplies():
    A = te.placeholder((4,), "int32", "A")
    k = te.reduce_axis((0, 6), "k")
    func = te.create_prim_func([A, te.compute((4,), lambda i: te.sum(A[i] * A[i], axis=k), "y")])
    a = np.arange(4, dtype="int32")
    np.testing.assert_array_equal(ev.evaluate(func, {"A": a}), 6 * a * a)


def test_max_reduction_and_scalar_output(rng):
    A = te.placeholder((9, 11), "float32", "A")
    i, k = te.reduce_axis((0, 9), "i"), te.reduce_axis((0, 11), "k")
    func = te.create_prim_func([A, te.compute((), lambda: te.max(A[i, k], axis=[i, k]), "y")])
    a = rng.standard_normal((9, 11)).astype("float32")
    assert ev.evaluate(func, {"A": a})[()] == a.max()
    assert ev.evaluate(func, {"A": a}, [(2, 4), (0, 11)])[()] == a[2:4].max()


def test_blocks_in_sequence_are_evaluated_only_where_needed(rng):
    A = te.placeholder((64, 32), "int32", "A")
    s = te.compute((64, 32), lambda i, j: A[i, j] * 3 + i, "s")
    k = te.reduce_axis((0, 32), "k")
    r = te.compute((64,), lambda i: te.sum(s[i, k], axis=k), "r")
    y = te.compute((62,), lambda i: r[i] + r[i + 2], "y")
    func = te.create_prim_func([A, y])
    a = ints(rng, (64, 32), "int32")
    sums = (a * 3 + np.arange(64, dtype="int32")[:, None]).sum(axis=1, dtype="int32")
    want = sums[:-2] + sums[2:]
    np.testing.assert_array_equal(ev.evaluate(func, {"A": a}), want)
    # Rows the box does not need may hold anything: they are not read.
    poisoned = a.copy()
    poisoned[:10] = 0
    poisoned[22:] = 0
    got = ev.evaluate(func, {"A": poisoned}, [(10, 20)])
    np.testing.assert_array_equal(got, want[10:20])
    np.testing.assert_array_equal(ev.evaluate(func, {"A": a}, output="r"), sums)


def test_guards_protect_reads_outside_a_tensor(rng):
    A = te.placeholder((10,), "int32", "A")
    inside = lambda i: tirx.all(i > 0, i < 11)  # noqa: E731
    y = te.compute((12,), lambda i: te.if_then_else(inside(i), A[i - 1], -5), "y")
    a = ints(rng, (10,), "int32")
    want = np.concatenate([[-5], a, [-5]])
    np.testing.assert_array_equal(ev.evaluate(te.create_prim_func([A, y]), {"A": a}), want)


def test_integer_division_follows_c_and_floor_rules():
    A = te.placeholder((6,), "int32", "A")
    y = te.compute(
        (6,),
        lambda i: tirx.truncdiv(A[i], 4) * 1000 + tirx.truncmod(A[i], 4) * 100 + A[i] // 4,
        "y",
    )
    a = np.array([-7, -4, -1, 1, 4, 7], "int32")
    want = [int(v / 4) * 1000 + (int(v) - 4 * int(v / 4)) * 100 + v // 4 for v in a]
    np.testing.assert_array_equal(ev.evaluate(te.create_prim_func([A, y]), {"A": a}), want)


def test_scalar_parameters_and_intrinsics(rng):
    A = te.placeholder((5,), "float32", "A")
    scale = te.var("scale", "float32")
    y = te.compute((5,), lambda i: te.exp(A[i]) * scale, "y")
    a = rng.random(5, "float32")
    got = ev.evaluate(te.create_prim_func([A, scale, y]), {"A": a, "scale": np.float32(2)})
    np.testing.assert_allclose(got, np.exp(a) * np.float32(2), rtol=1e-6)


def test_errors_say_what_was_asked():
    func = matvec(4, 8, "int32")
    arrays = {"A": np.zeros((4, 8), "int32"), "x": np.zeros(8, "int32")}
    with pytest.raises(ValueError, match=r"range 0\.\.9 of k, 0\.\.8"):
        ev.evaluate(func, arrays, [(0, 4), (0, 9)])
    with pytest.raises(ValueError, match="box has 1 ranges, 2 axes"):
        ev.evaluate(func, arrays, [(0, 4)])
    with pytest.raises(UnsupportedError, match="nothing writes z"):
        ev.evaluate(func, arrays, output="z")
    with pytest.raises(UnsupportedError, match="no array given for x"):
        ev.evaluate(func, {"A": arrays["A"]})


def test_every_function_of_host_code_has_a_rule() -> None:
    unary = [name for name in HOST if name not in ("pow", "atan2", "fmod")]
    a = te.placeholder((5,), "float64", "A")
    values = np.array([0.1, 0.5, 0.9, 0.25, 0.75])
    for name in unary:
        function = getattr(tirx, name)
        y = te.compute((5,), lambda i: function(a[i]), "y")  # noqa: B023 (called at once)
        found = ev.evaluate(te.create_prim_func([a, y]), {"A": values})
        assert np.isfinite(found).all(), name


def test_halves_are_rounded_away_from_zero() -> None:
    a = te.placeholder((6,), "float32", "A")
    y = te.compute((6,), lambda i: te.round(a[i]), "y")
    values = np.array([0.5, 1.5, -0.5, -2.5, 0.49999997, 2.4], "float32")
    found = ev.evaluate(te.create_prim_func([a, y]), {"A": values})
    np.testing.assert_array_equal(found, np.array([1, 2, -1, -3, 0, 2], "float32"))


def test_any_and_all() -> None:
    a = te.placeholder((3, 2), "bool", "A")
    values = np.array([[True, False], [True, True], [False, False]])
    for name in ("any", "all"):
        func = te.create_prim_func([a, getattr(topi, name)(a, axis=1)])
        np.testing.assert_array_equal(
            ev.evaluate(func, {"A": values}), getattr(np, name)(values, 1)
        )
