"""Tiles: where each DPU's box begins, how it is stored, and that boxes tile the outputs."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import te_programs as programs
from native import compile_native
from tvm import te
from tvm.s_tir import Schedule
from tvm.script import tirx as T

from atim.codegen.host_c import emit_host
from atim.codegen.split import split
from atim.codegen.transfer import Placed, Tile, TransferPlan, place
from atim.codegen.widen import widen_copies
from atim.errors import ScheduleError


def placed(func) -> Placed:
    return place(widen_copies(split(func)))


def test_offsets_are_linear_in_the_grid_index_and_extents_are_unclipped():
    plan = placed(programs.mtv_split(37, 53, dpus=2, pieces=3, tasklets=2)).plan
    tiles = {t.tensor: t for t in plan.tiles}
    assert plan.grid == (2, 3)
    a, x, y = tiles["A"], tiles["x"], tiles["y.rf"]
    assert (a.extent, a.offset_coeffs) == ((20, 24), ((20, 0), (0, 24)))
    assert (x.extent, x.offset_coeffs) == ((24,), ((0, 24),))
    assert (y.mode, y.extent, y.offset_coeffs) == ("out", (1, 20), ((0, 1), (20, 0)))
    assert (y.tensor, y.symbol) == ("y.rf", "y_partial")


@pytest.mark.parametrize("n", [1, 2, 7, 31, 64, 97, 1021])
@pytest.mark.parametrize("dpus", [1, 3, 8])
def test_every_output_element_comes_from_exactly_one_dpu(n, dpus):
    plan = placed(programs.va(n, dpus=dpus)).plan
    (out,) = [t for t in plan.tiles if t.mode == "out"]
    owners = np.zeros(n, int)
    start, extent = plan.boxes(out)
    for low, size in zip(start[:, 0], extent[:, 0], strict=True):
        owners[max(low, 0) : max(low, 0) + size] += 1
    assert np.all(owners == 1)


def test_rows_are_stored_at_multiples_of_8_bytes():
    (a,) = [t for t in placed(programs.mtv_rows(5, 13, dtype="int8")).plan.tiles if t.tensor == "A"]
    assert a.padded[-1] % 8 == 0
    assert a.slice_bytes == np.prod(a.padded)


def test_boxes_beyond_the_tensor_are_empty_and_negative_starts_clip():
    tile = Tile("A", "A", "int32", "in", (10,), (4,), (4,), (-1,), ((4,),))
    start, extent = TransferPlan((5,), (), (tile,)).boxes(tile)
    assert start[:, 0].tolist() == [-1, 3, 7, 11, 15]
    assert extent[:, 0].tolist() == [3, 4, 3, 0, 0]


def test_grid_words_are_padded_to_8_bytes():
    plan = TransferPlan((2, 3, 1), (), ())
    assert plan.grid_words().tolist()[4] == [1, 1, 0, 0]


@T.prim_func(s_tir=True)
def everyone_writes(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for _ in T.thread_binding(4, thread="blockIdx.x"):
        for i in range(8):
            with T.sblock("C"):
                v = T.axis.spatial(8, i)
                C[v] = A[v]


def test_dpus_that_write_the_same_element_are_refused():
    with pytest.raises(ScheduleError, match="C: two DPUs write the same element"):
        placed(everyone_writes)


def test_an_operand_that_moves_in_two_ways_is_held_whole():
    a = te.placeholder((64,), "int32", "A")
    s = Schedule(te.create_prim_func([a, te.compute((64,), lambda i: a[i] + a[63 - i], "B")]))
    d, _ = s.split(s.get_loops(s.get_sblock("B"))[0], [4, None])
    s.bind(d, "blockIdx.x")
    (tile,) = [t for t in placed(s.mod["main"]).plan.tiles if t.tensor == "A"]
    assert (tile.extent, tile.broadcast) == ((64,), True)


def test_updates_in_place_are_no_plain_output():
    a = te.placeholder((8,), "int32", "A")
    k = te.reduce_axis((0, 4), "k")
    s = Schedule(te.create_prim_func([a, te.compute((8,), lambda i: te.sum(a[i] * k, k), "y")]))
    block = s.get_sblock("y")
    i, r = s.get_loops(block)
    s.bind(i, "blockIdx.x")
    s.decompose_reduction(block, r)
    (tile,) = [t for t in placed(s.mod["main"]).plan.tiles if t.tensor == "y"]
    # stored before it is loaded: nothing has to go to the DPU
    assert tile.mode == "out"


COUNTED = """\
#include <pthread.h>
#include <string.h>
static int copies, forks;
int copies_made(void) { return copies; }
int forks_made(void) { return forks; }
static void *counted(void *to, const void *from, size_t bytes) {
    __atomic_fetch_add(&copies, 1, __ATOMIC_RELAXED);
    return memcpy(to, from, bytes);
}
static int counted_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *argument) {
    forks++;
    return pthread_create(thread, attr, run, argument);
}
#define memcpy counted
#define pthread_create counted_create
"""


def packed(func, name: str, array: np.ndarray, dpus: np.ndarray, threads: int):
    """(images, copies made, threads started, the tile) of packing tile `name`. Where a box lies is
    copied once for each range of its rows."""
    parts = widen_copies(split(func))
    where = place(parts)
    text = emit_host(parts, where, "a test").text.replace("#include", COUNTED + "#include", 1)
    library = compile_native(text, "host", ("-Wno-unused-function", "-D_POSIX_C_SOURCE=200809L"))
    (tile,) = [t for t in where.plan.tiles if t.tensor == name]
    images = np.full((len(dpus), tile.slice_bytes), 0xA5, np.uint8)
    pack = getattr(library, f"pack_{tile.symbol}")
    pack.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_uint32] * 2
    before = np.array([library.copies_made(), library.forks_made()])
    pack(array.ctypes.data, images.ctypes.data, dpus.ctypes.data, len(dpus), threads)
    typed = images.view(tile.dtype).reshape(len(dpus), *tile.padded)
    copies, forks = np.array([library.copies_made(), library.forks_made()]) - before
    return typed, copies, forks, tile


def test_axes_that_are_whole_in_box_tensor_and_slice_travel_as_one_run():
    func = programs.mtv_split(40, 24, dpus=2, pieces=1, tasklets=2)
    array = np.arange(40 * 24, dtype=np.int32).reshape(40, 24)
    images, copies, forks, tile = packed(func, "A", array, np.arange(2, dtype=np.uint32), 1)
    assert tile.padded == tile.extent == (20, 24)
    assert (images == array.reshape(2, 20, 24)).all()
    assert (copies, forks) == (2 + 2, 0)


def test_rows_of_a_part_of_the_columns_travel_one_by_one():
    func = programs.mtv_split(40, 32, dpus=2, pieces=2, tasklets=2)
    array = np.arange(40 * 32, dtype=np.int32).reshape(40, 32)
    images, copies, _, _ = packed(func, "A", array, np.arange(4, dtype=np.uint32), 1)
    rows, pieces = np.divmod(np.arange(4), 2)  # the grid is rows x pieces
    for image, row, piece in zip(images, rows, pieces, strict=True):
        assert (image == array[20 * row : 20 * row + 20, 16 * piece : 16 * piece + 16]).all()
    assert copies == 4 + 4 * 20


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_share_a_slice_that_all_dpus_hold(threads):
    func = programs.mtv_rows(5, 13, dtype="int8")
    array = np.arange(5 * 13, dtype=np.int8).reshape(5, 13)
    images, _, forks, tile = packed(func, "A", array, np.zeros(1, np.uint32), threads)
    rows, columns = tile.extent
    assert (images[0, :rows, :columns] == array[:rows, :columns]).all()
    assert not images[0, rows:].any()
    assert not images[0, :, columns:].any()
    assert forks == min(threads, tile.padded[0]) - 1
