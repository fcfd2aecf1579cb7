"""Stores of single elements: which of them other tasklets can't disturb."""

from __future__ import annotations

import pytest
from tvm import tirx

from atim.codegen.mram_words import owns_words, store_helper

TASKLET, STEP, LANE = (tirx.Var(name, "int32") for name in ("tasklet", "step", "lane"))
RANGES = {TASKLET: (0, 15), STEP: (0, 3), LANE: (0, 63)}


def owned(index: tirx.PrimExpr, dtype: str = "int32", ranges: dict = RANGES) -> bool:
    buffer = tirx.decl_buffer([8192], dtype, "C", scope="shared.mram")
    return owns_words(buffer, [index], ranges, TASKLET)


def test_blocks_of_whole_words_belong_to_one_tasklet() -> None:
    assert owned(TASKLET * 256 + STEP * 64 + LANE)
    assert owned(STEP * 1024 + TASKLET * 64 + LANE)
    assert owned(TASKLET * 256 + STEP * 64 + LANE, "int8")


@pytest.mark.parametrize(
    ("index", "dtype"),
    [
        (TASKLET + STEP * 16, "int32"),  # neighbours share a word
        (TASKLET * 63 + LANE, "int32"),  # blocks overlap
        (TASKLET * 65 + LANE, "int32"),  # blocks begin inside of a word
        (TASKLET * 64 + LANE + 1, "int32"),  # so does the first
        (STEP * 64 + LANE, "int32"),  # all tasklets store everything
        (TASKLET * 4 + STEP, "int8"),  # half words
    ],
)
def test_others_take_the_lock(index: tirx.PrimExpr, dtype: str) -> None:
    assert not owned(index, dtype)


def test_a_single_tasklet_owns_everything() -> None:
    assert owned(STEP * 3 + 1, ranges=RANGES | {TASKLET: (0, 0)})


def test_elements_of_8_bytes_need_no_lock() -> None:
    assert store_helper(False, 8)[0] == store_helper(True, 4)[0] == "store_own"
    assert store_helper(False, 4)[0] == "store"
