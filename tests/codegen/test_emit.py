"""Expressions mean in C what they mean in TIR; kernels read as a programmer would write them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import te_programs as programs
from native import compile_native
from tvm import tirx
from tvm.tirx import BufferLoad, BufferStore, ForKind, IntImm, decl_buffer

from atim.codegen.c_values import C_TYPES, floating, integer
from atim.codegen.emit import Emitter
from atim.codegen.names import Names, axis_of
from atim.errors import UnsupportedError
from atim.pipeline import compile_func
from atim.target import ANNOTATE_ROLLED, Target

EDGES = {
    "int8": [-128, -7, -1, 0, 1, 3, 127],
    "uint8": [0, 1, 3, 7, 200, 255],
    "int16": [-32768, -129, -1, 0, 2, 32767],
    "uint16": [0, 1, 255, 40000, 65535],
    "int32": [-(2**31), -65537, -3, -1, 0, 1, 7, 46341, 2**31 - 1],
    "int64": [-(2**63), -(2**40), -1, 0, 1, 2**33 + 5, 2**63 - 1],
    "float32": [-1.5, -0.0, 0.25, 3.0e8, 1e-3],
    "float64": [-1.5, -0.0, 0.1, 3.0e100],
}


class Plain(Emitter):
    """Arrays a, b and out in ordinary memory."""

    def element(self, buffer, indices):
        return f"{buffer.name}[{self.expr(indices[0])}]"


def evaluate(build, dtype: str, a: np.ndarray, b: np.ndarray, out_dtype: str) -> np.ndarray:
    """out[i] = build(a[i], b[i]) for all i, through the emitted C."""
    n = len(a)
    buffers = [decl_buffer((n,), t, name) for t, name in ((dtype, "a"), (dtype, "b"))]
    out = decl_buffer((n,), out_dtype, "out")
    i = tirx.Var("i", "int32")
    value = build(*[BufferLoad(x, [i]) for x in buffers])
    emitter = Plain(Names(["a", "b", "out"]), {i: (0, n - 1)})
    emitter.stmt(tirx.For(i, 0, n, ForKind.SERIAL, BufferStore(out, value, [i])))
    text = "#include <stdbool.h>\n#include <stdint.h>\n" + "".join(emitter.helpers.values())
    types = (C_TYPES[dtype], C_TYPES[out_dtype])
    text += f"void run(const {types[0]} *a, const {types[0]} *b, {types[1]} *out) {{\n"
    text += "\n".join(emitter.lines) + "\n(void)a; (void)b;\n}\n"
    # without -fwrapv: the text itself must be right
    library = compile_native(text, "expr", ("-fno-wrapv", "-O2"))
    result = np.zeros(n, out_dtype)
    library.run(*[ctypes.c_void_p(x.ctypes.data) for x in (a, b, result)])
    return result


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    values = np.array(EDGES[dtype], dtype)
    a, b = np.meshgrid(values, values)
    return np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())


@pytest.mark.parametrize("dtype", EDGES)
def test_arithmetic_wraps_and_compares_like_numpy(dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        # the maximum looks at the sum, so it must have wrapped before
        expected = np.maximum(a + b, a * b - a)
    result = evaluate(lambda x, y: tirx.max(x + y, x * y - x), dtype, a, b, dtype)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_floor_division_and_remainder_follow_the_divisor(dtype):
    a, b = pairs(dtype)
    keep = (b != 0) & ~((b == -1) & (a == np.iinfo(dtype).min) if dtype[0] == "i" else b < 0)
    a, b = a[keep], b[keep]
    for build, expected in ((tirx.FloorDiv, a // b), (tirx.FloorMod, a % b)):
        np.testing.assert_array_equal(evaluate(build, dtype, a, b, dtype), expected)


def test_a_sum_is_widened_after_it_has_wrapped():
    a, b = pairs("int32")
    with np.errstate(all="ignore"):
        expected = (a + b).astype("int64") * 2
    result = evaluate(lambda x, y: (x + y).astype("int64") * 2, "int32", a, b, "int64")
    np.testing.assert_array_equal(result, expected)


def test_conditions_selects_and_casts():
    a, b = pairs("int8")

    def build(x, y):
        both = tirx.Or(tirx.And(x < y, x != IntImm("int8", 0)), tirx.Not(y >= x))
        return tirx.Select(both, x.astype("int32") * y.astype("int32"), (x - y).astype("int32"))

    chosen = ((a < b) & (a != 0)) | ~(b >= a)
    wide = a.astype("int32") * b.astype("int32")
    with np.errstate(all="ignore"):
        expected = np.where(chosen, wide, (a - b).astype("int32"))
    np.testing.assert_array_equal(evaluate(build, "int8", a, b, "int32"), expected)


def test_subtraction_and_division_keep_their_parentheses():
    a, b = pairs("float64")
    keep = (b != 0) & (a != 0)
    a, b = a[keep], b[keep]
    result = evaluate(
        lambda x, y: x - (y - x) - (x / (y / x)) * (x * (y * x)), "float64", a, b, "float64"
    )
    with np.errstate(all="ignore"):
        expected = a - (b - a) - (a / (b / a)) * (a * (b * a))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "value", [0.0, 1.0, -2.5, 1e-30, 3.4e38, 0.1, 123456789.0, np.inf, -np.inf, np.nan]
)
def test_float_constants_read_back_exactly(dtype, value):
    text, _ = floating(float(np.dtype(dtype).type(value)), dtype)
    c = C_TYPES[dtype]
    library = compile_native(f"void run({c} *out) {{ *out = {text}; }}\n", "constant")
    result = np.zeros(1, dtype)
    library.run(ctypes.c_void_p(result.ctypes.data))
    np.testing.assert_array_equal(result, np.array([value], dtype))


def test_integer_constants_have_a_type_that_holds_them():
    assert integer(-(2**31), "int32")[0] == "INT32_MIN"
    assert integer(2**31, "uint32")[0] == "2147483648u"
    assert integer(-5, "int64")[0] == "-5LL"
    assert integer(1, "bool")[0] == "true"


def test_unknown_types_and_functions_are_refused():
    emitter = Plain(Names(), {})
    with pytest.raises(UnsupportedError, match="type float16: known are"):
        emitter.expr(tirx.Cast("float16", IntImm("int32", 1)))
    with pytest.raises(UnsupportedError, match=r"function tirx.exp: not available in the kernel"):
        emitter.expr(tirx.exp(tirx.Var("v", "float32")))


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("y.rf", "y_partial"),
        ("int", "int_"),
        ("mram_read", "mram_read_"),
        ("dpu_launch", "dpu_launch_"),
        ("barrier_wait", "barrier_wait_"),
        ("me", "me_"),
        ("NR_DPUS", "NR_DPUS_"),
        ("INT32_MIN", "INT32_MIN_"),
        ("min_int32", "min_int32_"),
        ("sqrtf", "sqrtf_"),
        ("exp_float32", "exp_float32_"),
        ("lgamma", "lgamma_"),
        ("typeof", "typeof_"),
        ("dpu", "dpu"),
        ("maximum", "maximum"),
        ("logits", "logits"),
        ("2x", "v2x"),
        ("__a", "a"),
        ("größe", "gr__e"),
        ("", "v"),
    ],
)
def test_names_are_legal_and_clear_of_keywords_and_the_sdk(wanted, name):
    assert Names().new(wanted) == name


def test_names_are_unique_until_their_scope_ends():
    names = Names(["x"])
    assert [names.new("x"), names.new("x"), names.new("x_1")] == ["x_1", "x_2", "x_1_1"]
    names.release(["x_1"])
    assert names.new("x") == "x_1"


@pytest.mark.parametrize(
    ("loop", "axis"),
    [
        ("k", "k"),
        ("k_1_0", "k"),
        ("i_3_init", "i"),
        ("k_0_k_1_1_fused_0", "k"),
        ("ax0_1", "ax0"),
        ("row_tile", "row_tile"),
    ],
)
def test_loops_are_named_after_the_axis_they_run_along(loop, axis):
    assert axis_of(loop) == axis


# whole files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "level"),
    [("va", 0), ("va", 5), ("mtv_rows", 1), ("mtv_rows", 5), ("mtv_split", 4), ("red", 4)],
)
def test_kernel_text(name, level, golden):
    funcs = {
        "va": lambda: programs.va(1021, tile=64, unroll=4),
        "mtv_rows": lambda: programs.mtv_rows(1000, 777, 16, 12, 4, 64),
        "mtv_split": lambda: programs.mtv_split(1000, 777, 16, 4, 11, 64, dtype="float32"),
        "red": lambda: programs.red(1_000_003, 64, 16, 128),
    }
    golden(compile_func(funcs[name](), Target(), level).kernel_c, ".c")


def test_host_text(golden):
    func = programs.mtv_split(1000, 777, 16, 4, 11, 64, threads=8, dtype="float32")
    golden(compile_func(func, Target()).host_c, ".c")


def test_an_annotated_loop_is_left_rolled():
    i = tirx.Var("i", "int32")
    out = decl_buffer((8,), "int32", "out")
    body = BufferStore(out, IntImm("int32", 0), [i])
    for marks, first in (
        ({ANNOTATE_ROLLED: IntImm("int32", 1)}, "#pragma nounroll"),
        ({}, "for (int32_t i = 0; i < 8; i++) {"),
    ):
        emitter = Plain(Names(["out"]), {i: (0, 7)})
        emitter.stmt(tirx.For(i, 0, 8, ForKind.SERIAL, body, None, marks))
        assert emitter.lines[0].strip() == first
