"""The small functions that C lacks, against NumPy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from atim import toolchain
from atim.codegen.small_c import helper_text

C_TYPES = {"float32": "float", "float64": "double"}
SPECIAL = (0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, -np.nan, 1e-45, 1e-310, -1e-45, 3e38)


@pytest.mark.parametrize("dtype", sorted(C_TYPES))
@pytest.mark.parametrize("name", ["min", "max"])
def test_extrema_of_floats(name: str, dtype: str, rng: np.random.Generator) -> None:
    kind = C_TYPES[dtype]
    text = f"""#include <stdint.h>
{helper_text(name, dtype)}
void work(const {kind} *a, const {kind} *b, {kind} *y, int32_t n);
void work(const {kind} *a, const {kind} *b, {kind} *y, int32_t n) {{
    for (int32_t i = 0; i < n; i++) {{
        y[i] = {name}_{dtype}(a[i], b[i]);
    }}
}}
"""
    whole = f"uint{8 * np.dtype(dtype).itemsize}"
    bits = rng.integers(0, np.iinfo(whole).max, 50_000, dtype=whole, endpoint=True)
    a = np.concatenate([np.repeat(np.array(SPECIAL, dtype), len(SPECIAL)), bits.view(dtype)])
    b = np.concatenate([np.tile(np.array(SPECIAL, dtype), len(SPECIAL)), bits[::-1].view(dtype)])
    found = np.empty_like(a)
    library = ctypes.CDLL(str(toolchain.compile_host(text)))
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, found)]
    library.work(*addresses, ctypes.c_int32(len(a)))
    wanted = {"min": np.minimum, "max": np.maximum}[name](a, b)
    np.testing.assert_array_equal(found, wanted)
    zeros = (found == 0) & (a == 0) & (b == 0)
    sign = {"min": np.logical_or, "max": np.logical_and}[name](np.signbit(a), np.signbit(b))
    assert (np.signbit(found)[zeros] == sign[zeros]).all()
