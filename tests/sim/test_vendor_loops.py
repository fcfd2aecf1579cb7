"""What an element of each loop costs: exact counts, none above the vendor's compiler's form."""

from __future__ import annotations

import pytest

from benchmarks.vendor_loops import CASES, Case, measure

OURS = {
    "int64 sum": 5,
    "sum of two int32 arrays": 7,
    "sum of two int64 arrays": 9,
    "histogram": 20,
    "dot product": 17,
    "three int32 arrays": 9,
    "three int64 arrays": 10,
    "int32 array + scalar": 6,
    "int64 array + scalar": 7,
    "int32 array * scalar": 17,
    "int64 copy": 6,
    "lock, nop, unlock": 5,
    "64 rounds: int32 sum in place": 255 / 64,
    "64 rounds: int64 sum": 188 / 64,
    "64-bit signed x < y, branch": 2,
    "64-bit signed x <= y, branch": 2,
    "64-bit unsigned x < y, branch": 2,
    "64-bit signed x == y, branch": 2,
    "64-bit signed x == 0, branch": 1,
    "DMA of run-time size": 4,
}


def test_every_row_is_pinned() -> None:
    assert {case.name for case in CASES} == set(OURS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_loop_costs_what_it_did(case: Case) -> None:
    assert measure(case, "-O2") == OURS[case.name] <= case.vendor


def test_more_optimisation_makes_no_loop_longer() -> None:
    for case in CASES[:3]:
        assert measure(case, "-O3") <= case.vendor
