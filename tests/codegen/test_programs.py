"""Whole programs on this machine's compiler: any shape, any boundary level, equal to NumPy.

DMA rules, tasklet ownership of WRAM and MRAM words, and guard bands around host tensors are checked
by the shim in native.py.
"""

from __future__ import annotations

import numpy as np
import pytest
import te_programs as programs
from native import KernelFault, run_native

from atim.codegen import Sources
from atim.errors import ScheduleError
from atim.pipeline import BOUNDARY_LEVEL, compile_func
from atim.target import Target

TARGET = Target()
# one element, odd, prime, fewer than the DPUs, whole tiles
SIZES = (1, 2, 7, 31, 48, 1021)


def inputs_of(sources: Sources, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        t.name: rng.integers(-50, 50, t.shape).astype(t.dtype)
        for t in sources.plan.tensors
        if t.role == "input"
    }


def check(func, reference, rng, level=BOUNDARY_LEVEL):
    sources = compile_func(func, TARGET, level)
    arrays = inputs_of(sources, rng)
    (out,) = run_native(sources, arrays).values()
    expected = reference(*arrays.values())
    np.testing.assert_array_equal(out, expected.astype(out.dtype))


def add(a, b):
    return a + b


def matvec(a, x):
    return a @ x


def total(a):
    return a.sum(dtype=a.dtype, keepdims=True)


@pytest.mark.parametrize("level", range(BOUNDARY_LEVEL + 1))
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_every_level_computes_the_same(level, dtype, rng):
    check(programs.va(1021, unroll=4, dtype=dtype), add, rng, level)
    check(programs.mtv_rows(37, 53, dtype=dtype), matvec, rng, level)
    check(programs.mtv_split(37, 53, dtype=dtype), matvec, rng, level)


@pytest.mark.parametrize("n", SIZES)
def test_vector_add_of_any_length(n, rng):
    tile = int(rng.choice([2, 8, 64, 600]))
    dpus, tasklets = int(rng.integers(1, 9)), int(rng.integers(1, 17))
    check(programs.va(n, dpus=dpus, tasklets=tasklets, tile=tile, unroll=2), add, rng)


@pytest.mark.parametrize("m", [1, 2, 37, 128])
@pytest.mark.parametrize("k", [1, 16, 61])
def test_matrix_vector_of_any_shape(m, k, rng):
    dpus, tasklets = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    tile = int(rng.choice([2, 8, 32]))
    rows = int(rng.choice([2, 4]))
    level = int(rng.integers(0, BOUNDARY_LEVEL + 1))
    check(programs.mtv_rows(m, k, dpus, tasklets, rows, tile), matvec, rng, level)


@pytest.mark.parametrize(("m", "k"), [(1, 1), (8, 61), (40, 3), (37, 53), (13, 191)])
def test_reduction_pieces_are_finished_on_the_host(m, k, rng):
    check(programs.mtv_split(m, k, dpus=1, pieces=3, tasklets=2), matvec, rng)


@pytest.mark.parametrize("n", [1, 5, 96, 1013])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_two_level_reduction(n, dtype, rng):
    check(programs.red(n, dtype=dtype), total, rng)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "float64"])
def test_other_types_wrap_as_numpy_does(dtype, rng):
    item = np.dtype(dtype).itemsize
    check(programs.va(333, tile=64 // item, dtype=dtype), add, rng)
    check(programs.mtv_rows(21, 50, rows=8, tile=16, dtype=dtype), matvec, rng)


def test_host_threads_change_nothing(rng):
    sources = compile_func(programs.mtv_split(97, 53, threads=7, dtype="float32"), TARGET)
    arrays = inputs_of(sources, rng)
    results = [run_native(sources, arrays, threads)["y"] for threads in (1, 2, 5, 100)]
    assert all(np.array_equal(results[0], r) for r in results[1:])


def test_a_strided_column_is_never_one_contiguous_transfer(rng):
    with pytest.raises(ScheduleError, match=r"A to A_wram: not contiguous"):
        compile_func(programs.transposed_copy(8, 8), TARGET)
    check(programs.transposed_copy(8, 8, "int64"), np.transpose, rng)
    check(programs.transposed_copy(8, 8), np.transpose, rng, level=0)


def test_rows_that_share_an_8_byte_word_are_refused():
    with pytest.raises(ScheduleError, match="not 8-byte aligned"):
        compile_func(programs.mtv_rows(100, 16, tasklets=5, rows=1), TARGET)


def test_rows_that_share_an_8_byte_word_are_right_without_bulk_dma(rng):
    check(programs.mtv_rows(100, 16, tasklets=5, rows=1), matvec, rng, level=0)


def test_lost_predicate_of_the_host_nest_is_seen_by_the_guard_bands(rng):
    """TVM 0.27 drops the row predicate when rows are split before rfactor."""
    sources = compile_func(programs.mtv_rfactor_miscompiled(37, 53), TARGET)
    with pytest.raises(KernelFault, match="guard band of y"):
        run_native(sources, inputs_of(sources, rng))


def test_lost_predicate_of_the_reduction_is_seen_in_the_numbers(rng):
    """TVM 0.27 drops the reduction's predicate in compute_at of a predicated rfactor block."""
    sources = compile_func(programs.red_compute_at_miscompiled(1013), TARGET)
    arrays = inputs_of(sources, rng)
    assert run_native(sources, arrays)["y"] != (arrays["A"] + 1).sum()


def test_too_many_tasklets_and_too_much_wram_are_refused():
    with pytest.raises(ScheduleError, match="tasklets: 25 bound, limit 24"):
        compile_func(programs.va(4096, tasklets=25), TARGET)
    with pytest.raises(ScheduleError, match=r"WRAM: buffers \d+ and stacks \d+ bytes requested"):
        compile_func(programs.va(65536, tasklets=16, tile=1024), TARGET)
