"""The benchmarks that stand beside the figures of ATiM (ISCA 2025) give what they claim."""

from __future__ import annotations

import pytest

from benchmarks import figure12

SMALL = figure12.Case("MTV 256xL", 72)


@pytest.mark.parametrize("case", [figure12.Case("VA", 1), SMALL], ids=["VA", "MTV"])
def test_a_row_of_the_boundary_study_is_near_silicon_and_in_order(case):
    times, silicon = figure12.measure(case), figure12.published()[case]
    assert figure12.in_order(times)
    for level, expected in silicon.items():
        assert times[level] == pytest.approx(expected, rel=0.12), level


def test_tightening_pays_where_tiles_divide_the_whole_but_not_a_share():
    """200,000 elements are 3,125 tiles of 64; the 6,250 of one of 32 DPUs are none."""
    times = figure12.measure(figure12.Case("VA", 2))
    assert times["o1"] > 1.25 * times["o2"] == pytest.approx(1.25 * times["o4"])
