"""The float32 functions of kernels against NumPy in double precision, over all kinds of numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from atim import toolchain
from atim.codegen.math_c import MATH, NEEDS
from atim.functions import KERNEL

REFERENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sigmoid": special.expit,
    "tanh": np.tanh,
    "erf": special.erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}
# units of the last place; with the smallest result that this is relative to
LIMITS = {
    **{"exp": (1.1, 0.0), "log": (1.0, 0.0), "sqrt": (0.5, 0.0), "rsqrt": (1.5, 0.0)},
    **{"sigmoid": (2.0, 0.5), "tanh": (2.0, 0.0), "erf": (3.0, 0.0)},
    **{"floor": (0.0, 0.0), "ceil": (0.0, 0.0), "trunc": (0.0, 0.0)},
}


def values(rng: np.random.Generator) -> np.ndarray:
    """Any bits, usual sizes, and the ends of the ranges."""
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32)
    usual = [rng.standard_normal(100_000), 30 * rng.standard_normal(100_000)]
    ends = [0, -0.0, np.inf, -np.inf, np.nan, 88.72, 88.73, -87.4, -103.9, -104.1, 1e-45, 2**23]
    parts = [bits.view(np.float32), *usual, ends]
    return np.concatenate([np.asarray(part, np.float32) for part in parts])


def test_every_function_is_tested() -> None:
    assert set(KERNEL) == set(REFERENCES) == set(MATH) - {"bits"}


@pytest.mark.parametrize("name", sorted(KERNEL))
def test_functions(name: str, rng: np.random.Generator) -> None:
    text = "#include <stdint.h>\n" + "\n".join(MATH[part] for part in (*NEEDS[name], name))
    text += f"""
void work(const float *a, float *y, int32_t n);
void work(const float *a, float *y, int32_t n) {{
    for (int32_t i = 0; i < n; i++) {{
        y[i] = {name}_float32(a[i]);
    }}
}}
"""
    given = values(rng)
    found = np.empty_like(given)
    work = ctypes.CDLL(str(toolchain.compile_host(text))).work
    work(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(found.ctypes.data), len(given))
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](given.astype(np.float64))
        wanted = exact.astype(np.float32)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        limit, least = LIMITS[name]
        unit = np.spacing(np.maximum(np.abs(wanted), np.float32(least))).astype(np.float64)
        usual = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~usual], wanted[~usual])
        error = np.abs(found[usual].astype(np.float64) - exact[usual]) / unit[usual]
    assert error.max() <= limit, given[usual][error.argmax()]
