"""Products in each of the DPU's forms: exact for every value, and as few instructions as meant."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from native import compile_native, run_native
from tvm import te, tirx
from tvm.s_tir import Schedule

import upmem_sim
from atim.codegen.kernel_helpers import helpers_for
from atim.pipeline import compile_func
from atim.products import block_forms
from atim.runtime import run
from atim.target import (
    ANNOTATE_MULTIPLY,
    MULTIPLY_BYTES,
    MULTIPLY_FLOAT,
    MULTIPLY_LIBRARY,
    MULTIPLY_NARROW,
    MULTIPLY_STEPS,
    MULTIPLY_STEPS_SECOND,
    MULTIPLY_WORDS,
    Target,
)
from atim.toolchain import build

WRAM = "local.wram"
TARGET = Target(dpus=16)
INT32 = (MULTIPLY_STEPS, MULTIPLY_STEPS_SECOND, MULTIPLY_BYTES, MULTIPLY_NARROW)
Types = tuple[str, str, str]


def dot_func(m: int, k: int, types: Types) -> tirx.PrimFunc:
    """y[i] = sum over k of A[i, k] * x[k] with the types of A, x and y."""
    a, x = te.placeholder((m, k), types[0], "A"), te.placeholder((k,), types[1], "x")
    r = te.reduce_axis((0, k), "k")

    def wide(value: te.TensorSlice) -> tirx.PrimExpr:
        return value if str(value.dtype) == types[2] else value.astype(types[2])

    y = te.compute((m,), lambda i: te.sum(wide(a[i, r]) * wide(x[r]), axis=r), "y")
    return te.create_prim_func([a, x, y])


def dot(
    m: int,
    k: int,
    types: Types,
    form: int,
    rows: int = 2,
    unroll: int = 8,
    tile: int = 16,
    dpus: int = 2,
    tasklets: int = 2,
) -> tirx.PrimFunc:
    """Rows over DPUs and tasklets, `rows` of them and `unroll` columns in the inner body."""
    s = Schedule(dot_func(m, k, types))
    block = s.get_sblock("y")
    i, r = s.get_loops(block)
    d, t, g, lane = s.split(i, factors=[dpus, tasklets, None, rows])
    ko, turn, copy = s.split(r, factors=[None, tile // unroll, unroll])
    s.reorder(d, t, g, ko, turn, copy, lane)
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    a, x = s.cache_read(block, 0, WRAM), s.cache_read(block, 1, WRAM)
    write = s.cache_write(block, 0, WRAM)
    s.reverse_compute_at(s.cache_write(block, 0, "local"), g)
    s.reverse_compute_at(write, t)
    s.compute_at(a, ko)
    s.compute_at(x, ko)
    s.annotate(block, ANNOTATE_MULTIPLY, form)
    s.decompose_reduction(block, ko)
    s.unroll(copy)
    s.unroll(lane)
    return s.mod["main"]


def full_range(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def edges(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    near = [info.min, info.min + 1, -1, 0, 1, 127, 128, 255, 256, 65535, 65536, info.max]
    values = [v for v in near if info.min <= v <= info.max]
    return rng.choice(np.array(values, dtype), shape)


def small(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(0, 50, shape).astype(dtype)


def one_wide(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Bytes, and one element that is none."""
    values = rng.integers(0, 256, shape).astype(dtype)
    values.flat[rng.integers(values.size)] = rng.choice(np.array([-1, 256, -(2**31)], dtype))
    return values


def expected(a: np.ndarray, x: np.ndarray, dtype: str) -> np.ndarray:
    if np.dtype(dtype).kind != "f":
        return a.astype(dtype) @ x.astype(dtype)
    total = np.zeros(len(a), dtype)
    with np.errstate(all="ignore"):
        for column, factor in zip(a.T, x, strict=True):
            total = total + column * factor
    return total


@pytest.mark.parametrize("form", INT32)
@pytest.mark.parametrize("unroll", [1, 4])
def test_int32_is_exact_for_every_value(form, unroll, rng):
    sources = compile_func(dot(9, 37, ("int32",) * 3, form, 2, unroll), TARGET)
    for data in (full_range, edges, small, one_wide):
        a, x = data(rng, (9, 37), "int32"), data(rng, (37,), "int32")
        y = run_native(sources, {"A": a, "x": x})["y"]
        np.testing.assert_array_equal(y, expected(a, x, "int32"))


@pytest.mark.parametrize("form", INT32)
def test_int32_on_the_dpu(form, rng):
    artifact = build(compile_func(dot(8, 40, ("int32",) * 3, form, 2, 4), TARGET), TARGET)
    for data in (full_range, edges, small, one_wide):
        a, x = data(rng, (8, 40), "int32"), data(rng, (40,), "int32")
        y = run(artifact, {"A": a, "x": x}).outputs["y"]
        np.testing.assert_array_equal(y, expected(a, x, "int32"))


NARROW_TYPES = [
    ("int8", "int8", "int32"),
    ("uint8", "int8", "int32"),
    ("int8", "uint8", "int32"),
    ("uint8", "uint8", "int32"),
    ("int8", "int8", "int64"),
    ("uint8", "uint8", "int64"),
    ("int8", "int8", "int8"),
    ("int8", "int8", "int16"),
    ("int16", "int16", "int32"),
    ("uint16", "int16", "int32"),
    ("int16", "uint16", "int32"),
    ("uint16", "uint16", "int32"),
    ("int16", "int16", "int16"),
]


@pytest.mark.parametrize("types", NARROW_TYPES)
def test_packed_words_are_exact_for_every_value(types, rng):
    sources = compile_func(dot(17, 45, types, MULTIPLY_WORDS, 8, 8), TARGET)
    assert f"dot_{types[0]}_{types[1]}(" in sources.kernel_c
    for data in (full_range, edges):
        a, x = data(rng, (17, 45), types[0]), data(rng, (45,), types[1])
        y = run_native(sources, {"A": a, "x": x})["y"]
        np.testing.assert_array_equal(y, expected(a, x, types[2]))


@pytest.mark.parametrize("types", [NARROW_TYPES[1], NARROW_TYPES[4], NARROW_TYPES[9]])
def test_packed_words_on_the_dpu(types, rng):
    sources = compile_func(dot(16, 48, types, MULTIPLY_WORDS, 4, 16), TARGET)
    a, x = edges(rng, (16, 48), types[0]), full_range(rng, (48,), types[1])
    y = run(build(sources, TARGET), {"A": a, "x": x}).outputs["y"]
    np.testing.assert_array_equal(y, expected(a, x, types[2]))


@pytest.mark.parametrize(
    ("types", "form", "unroll"),
    [
        (("int8", "int8", "int32"), MULTIPLY_WORDS, 4),  # half a word
        (("int8", "int8", "int32"), MULTIPLY_STEPS, 8),  # a form of another type
        (("float32",) * 3, MULTIPLY_NARROW, 4),
        (("int64",) * 3, MULTIPLY_BYTES, 4),
    ],
)
def test_what_a_form_does_not_fit_is_left_to_the_compiler(types, form, unroll):
    text = compile_func(dot(8, 32, types, form, 2, unroll), TARGET).kernel_c
    plain = compile_func(dot(8, 32, types, MULTIPLY_LIBRARY, 2, unroll), TARGET).kernel_c
    assert text == plain


@pytest.mark.parametrize(
    ("name", "types", "form"),
    [
        ("narrow", ("int32",) * 3, MULTIPLY_NARROW),
        ("words", ("uint8", "int8", "int32"), MULTIPLY_WORDS),
        ("float", ("float32",) * 3, MULTIPLY_FLOAT),
    ],
)
def test_kernel_text(name, types, form, golden):
    func = dot(100, 200, types, form, 4, 16, 64)
    golden(compile_func(func, TARGET).kernel_c, ".c")


def test_a_sum_that_does_not_start_at_zero_has_no_forms():
    assert block_forms(dot_func(8, 8, ("int32",) * 3), "y") == (MULTIPLY_LIBRARY, *INT32)
    assert block_forms(dot_func(8, 8, ("float32",) * 3), "y") == (MULTIPLY_FLOAT,)
    assert block_forms(dot_func(8, 8, ("float64",) * 3), "y") == (MULTIPLY_LIBRARY,)
    a, k = te.placeholder((8, 8), "int32", "A"), te.reduce_axis((0, 8), "k")
    total = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), "y")
    assert block_forms(te.create_prim_func([a, total]), "y") == ()


# float32 -----------------------------------------------------------------------------------------


def float_values(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """any: all bit patterns; edge: around the limits of exponent and mantissa; near: close
    exponents and short mantissas, so that sums cancel and round at ties."""
    draw = rng.integers
    if kind == "any":
        return draw(0, 2**32, shape, dtype=np.uint32).view(np.float32)
    if kind == "near":
        exponent = draw(120, 134, shape, dtype=np.uint32)
        mantissa = draw(0, 2**23, shape, dtype=np.uint32)
        mantissa &= np.uint32(2**32 - 1) << draw(0, 24, shape, dtype=np.uint32)
    else:
        exponent = rng.choice(np.array([0, 1, 2, 127, 128, 251, 253, 254, 255], np.uint32), shape)
        mantissa = rng.choice(np.array([0, 1, 2, 2**22 - 1, 2**22, 2**23 - 1], np.uint32), shape)
    mantissa &= np.uint32(2**23 - 1)
    return (draw(0, 2, shape, dtype=np.uint32) << 31 | exponent << 23 | mantissa).view(np.float32)


FUZZ = """
int32_t fuzz(const float *sum, const float *a, const float *x, float *out, int32_t count) {
    int32_t plain = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t odd = float_is_odd(sum[i]);
        int32_t mantissa = float_mantissa(sum[i]), scale = float_scale(sum[i]);
        float_mac(&mantissa, &scale, &odd, a[i], x[i]);
        out[i] = odd ? sum[i] + a[i] * x[i] : float_packed(mantissa, scale);
        plain += !odd;
    }
    return plain;
}
"""


@pytest.mark.parametrize("kind", ["any", "near", "edge"])
@pytest.mark.parametrize("sums", ["any", "near", "edge"])
def test_float_steps_round_like_ieee(kind, sums, rng):
    count = 250_000
    texts = helpers_for("float_mac") | helpers_for("float_is_odd")
    text = "#include <stdint.h>\n" + "\n".join(texts.values()) + FUZZ
    library = compile_native(text, "float", ("-O2", "-ffp-contract=off"))
    a, x = float_values(rng, (count,), kind), float_values(rng, (count,), kind)
    total = float_values(rng, (count,), sums)
    total[total == 0] = 0  # sums start at +0
    out = np.empty(count, np.float32)
    pointers = [ctypes.c_void_p(v.ctypes.data) for v in (total, a, x, out)]
    plain = library.fuzz(*pointers, count)
    assert plain > count // 4  # most of what is normal takes the fast way
    with np.errstate(all="ignore"):
        right = total + a * x
    both = np.isnan(out) & np.isnan(right)
    wrong = (out.view(np.uint32) != right.view(np.uint32)) & ~both
    assert not wrong.any(), (total[wrong][:3], a[wrong][:3], x[wrong][:3], out[wrong][:3])


@pytest.mark.parametrize("rows", [1, 4])
def test_float_sums_on_the_dpu(rows, rng):
    func = dot(8, 40, ("float32",) * 3, MULTIPLY_FLOAT, max(rows, 2), 2)
    artifact = build(compile_func(func, TARGET), TARGET)
    assert "float_mac(" in artifact.sources.kernel_c
    for kind in ("normal", "zeros", "near", "edge"):
        a, x = (rng.standard_normal(s).astype(np.float32) for s in ((8, 40), (40,)))
        if kind == "zeros":
            a[rng.random(a.shape) < 0.5] = 0
            x[rng.random(x.shape) < 0.5] = -0.0
        elif kind != "normal":
            a, x = float_values(rng, (8, 40), kind), float_values(rng, (40,), kind)
        y = run(artifact, {"A": a, "x": x}).outputs["y"]
        np.testing.assert_array_equal(y, expected(a, x, "float32"))


# cost --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "form", "unroll", "data", "limit"),
    [
        (("int8", "int8", "int32"), MULTIPLY_WORDS, 16, full_range, 3.0),
        (("int32",) * 3, MULTIPLY_STEPS, 4, small, 7.5),
        (("int32",) * 3, MULTIPLY_BYTES, 4, full_range, 26.0),
        (("int32",) * 3, MULTIPLY_NARROW, 8, small, 5.0),
        (("int32",) * 3, MULTIPLY_NARROW, 8, full_range, 27.0),
    ],
)
def test_instructions_of_a_multiply_accumulate(types, form, unroll, data, limit, rng):
    counts = []
    for k in (256, 512):
        func = dot(4, k, types, form, 4, unroll, 128, dpus=1, tasklets=1)
        artifact = build(compile_func(func, TARGET), TARGET, host=False)
        arrays = {"A": data(rng, (4, k), types[0]), "x": data(rng, (k,), types[1])}
        outcome = run(artifact, arrays, representatives=True)
        counts.append(outcome.counters["instructions"])
    assert (counts[1] - counts[0]) / (4 * 256) < limit


def test_the_sdk_gets_the_same_text():
    """Pairs of registers have another constraint there; nothing else depends on the compiler."""
    names = (
        "mul_step_add",
        "mul_bytes_add",
        "dot_narrow",
        "any_bits",
        "float_mac",
        "dot_int8_int8",
    )
    for name in names:
        text = "\n".join(helpers_for(name).values())
        assert "built_ins" not in text
        assert text.count("__riscv") == (1 if name == "mul_step_add" else 0)
    main = """
#include <defs.h>
int main(void) {
    int32_t mantissa = 0, scale = 0, odd = 0;
    float_mac(&mantissa, &scale, &odd, (float)me(), 2.0f);
    return mantissa + scale + odd;
}
"""
    text = "#include <stdint.h>\n" + "\n".join(helpers_for("float_mac").values())
    assert upmem_sim.compile_c(text + main, werror=True).symbols
