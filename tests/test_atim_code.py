"""ATiM's kernels as ATiM emits them: buffers from the heap, loops as shipped."""

from __future__ import annotations

import pytest

from atim import Target, pipeline
from benchmarks import atim_code, pieces, shipped
from benchmarks.atim_code import INNER, OUTER, Loops


def test_buffers_come_from_the_heap_and_sums_are_stored():
    loops = Loops(32, (16, 1, 1, 2), (2, 2, 8))
    plain = pipeline.compile_func(loops.scheduled(OUTER), Target(dpus=1), pipeline.ATIM_LEVEL)
    text = atim_code.from_heap(plain).kernel_c
    assert "int32_t (*A_wram)[16] = mem_alloc(2 * sizeof *A_wram);" in text
    assert "wram_of" not in text
    assert "wram->" not in text
    assert text.index("mem_reset") < text.index("barrier_wait") < text.index("mem_alloc")


def test_a_kernel_without_buffers_is_refused():
    plain = pipeline.compile_func(
        Loops(32, (16, 1, 1, 2), (2, 2, 8)).scheduled(OUTER), Target(dpus=1)
    )
    twice = atim_code.from_heap(plain)
    with pytest.raises(AssertionError, match="buffers"):
        atim_code.from_heap(twice)


def test_allocating_takes_what_was_counted():
    """PrIM's start, 16 tasklets and three buffers: about 9,000 cycles of 350 MHz."""
    assert atim_code.start_up(16, 3) == pytest.approx(8_700 / 350e6, rel=0.05)
    assert atim_code.start_up(8, 3) < 0.5 * atim_code.start_up(16, 3)


@pytest.mark.parametrize(
    ("case", "places"),
    [
        (("mtv", (4096, 16384)), [OUTER, INNER]),
        (("mtv", (7168, 28672)), [INNER]),  # 896 columns of two rows are more than 24 KB
        (("ttv", (512, 512, 512)), [OUTER]),  # the same tile at both
    ],
    ids=["both", "inner", "same"],
)
def test_kernels_stand_for_each_place_that_atim_allows(case, places):
    assert list(atim_code.kernels(shipped.table()[case])) == places


@pytest.mark.parametrize(
    ("case", "published_ms", "dpus"),
    [(("mtv", (16384, 4096)), 1.829, 2048), (("red", (67108864,)), 0.754, 2048)],
    ids=["mtv", "red"],
)
def test_a_shipped_schedule_is_near_silicon(case, published_ms, dpus):
    launch = pieces.TransferModel.preset(pieces.PRESET).launch(dpus)
    kernel = min(atim_code.kernels(shipped.table()[case]).values())
    assert (launch + kernel) * 1e3 == pytest.approx(published_ms, rel=0.05)


@pytest.mark.parametrize("count", [1, 4, 32])
def test_kernels_of_pieces_are_within_two_percent(count):
    """Few rows leave tasklets idle, many do not: launch and loop are told apart."""
    launch = pieces.TransferModel.preset(pieces.PRESET).launch(pieces.DPUS)
    ours = launch + atim_code.seconds(pieces.loops(count), OUTER)
    assert ours == pytest.approx(pieces.published()[count].kernel, rel=0.02)
