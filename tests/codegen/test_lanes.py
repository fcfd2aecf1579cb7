"""Sums of narrow elements 8 bytes at a time: exact for every value, and as few instructions."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from native import compile_native, run_native
from test_products import edges, full_range
from tvm import te
from tvm.s_tir import Schedule

from atim.codegen.kernel_helpers import helpers_for
from atim.pipeline import compile_func
from atim.runtime import run
from atim.target import Target
from atim.toolchain import build

WRAM = "local.wram"
TARGET = Target(dpus=16)


def sources_of(n, dtype, minus, dpus, tasklets, blocks, unroll):
    """A sum or difference of two tensors in tiles of `blocks` x `unroll`."""
    a, b = te.placeholder((n,), dtype, "A"), te.placeholder((n,), dtype, "B")
    c = te.compute((n,), lambda i: a[i] - b[i] if minus else a[i] + b[i], "C")
    s = Schedule(te.create_prim_func([a, b, c]))
    block = s.get_sblock("C")
    factors = [dpus, tasklets, None, blocks, unroll]
    d, t, o, _, u = s.split(s.get_loops(block)[0], factors=factors)
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    for k in range(2):
        s.compute_at(s.cache_read(block, k, WRAM), o)
    s.reverse_compute_at(s.cache_write(block, 0, WRAM), o)
    s.unroll(u)
    return compile_func(s.mod["main"], TARGET)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("minus", [False, True])
@pytest.mark.parametrize(("n", "unroll"), [(999, 8), (1000, 16), (17, 4), (1, 4), (999, 2)])
def test_narrow_elements_are_added_eight_bytes_at_a_time(dtype, minus, n, unroll, rng):
    sources = sources_of(n, dtype, minus, 3, 2, 32 // unroll, unroll)
    name = f"{'sub' if minus else 'add'}_{dtype}("
    assert (name in sources.kernel_c) == (unroll * np.dtype(dtype).itemsize % 8 == 0)
    for data in (full_range, edges):
        x, y = data(rng, (n,), dtype), data(rng, (n,), dtype)
        out = run_native(sources, {"A": x, "B": y})["C"]
        np.testing.assert_array_equal(out, x - y if minus else x + y)


ALIASED = """
void lanes(int16_t *a, int16_t *b) {
    for (int32_t word = 0; word < 16384; word++) {
        ADD(a, a, b, word);
        SUB(b, a, b, word);
    }
}
"""


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_sums_of_halves_in_place_with_every_carry_and_borrow(dtype, rng):
    """Both lanes of a register with every value of one factor; results over an operand."""
    text = "#include <stdint.h>\n" + "\n".join(
        (helpers_for(f"add_{dtype}") | helpers_for(f"sub_{dtype}")).values()
    )
    text += ALIASED.replace("int16_t", f"{dtype}_t")
    text = text.replace("ADD(", f"add_{dtype}(").replace("SUB(", f"sub_{dtype}(")
    library = compile_native(text, "lanes", ("-O2",))
    for _ in range(4):
        a = rng.permutation(2**16).astype(np.uint16).view(dtype)
        b = edges(rng, (2**16,), dtype)
        x, y = a.copy(), b.copy()
        library.lanes(x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p))
        np.testing.assert_array_equal(x, a + b)
        np.testing.assert_array_equal(y, x - b)


def test_halves_on_the_dpu(rng):
    artifact = build(sources_of(999, "int16", True, 2, 2, 4, 8), TARGET)
    x, y = full_range(rng, (999,), "int16"), edges(rng, (999,), "int16")
    np.testing.assert_array_equal(run(artifact, {"A": x, "B": y}).outputs["C"], x - y)


def test_words_of_a_longer_loop_share_their_addresses(rng):
    """Two loads, a store and twelve instructions for 8 bytes; the addresses only once a loop."""
    counts = []
    for n in (2048, 4096):
        artifact = build(sources_of(n, "int8", False, 1, 1, 32, 32), TARGET, host=False)
        arrays = {name: full_range(rng, (n,), "int8") for name in ("A", "B")}
        counts.append(run(artifact, arrays, representatives=True).counters["instructions"])
    assert (counts[1] - counts[0]) / 2048 < 17 / 8
