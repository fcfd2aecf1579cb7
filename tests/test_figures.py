"""The benchmarks that stand beside the figures of ATiM (ISCA 2025) give what they claim."""

from __future__ import annotations

import pytest

from atim import Target, pipeline, workloads
from atim.schedules import design_space
from benchmarks import figure9, figure12, prim_code, shipped, totals
from benchmarks.atim_code import from_heap

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


@pytest.mark.parametrize(("factor", "rows", "good"), [(1.08, 1, 1), (1.2, 1, 0), (1.2, 2, 1)])
def test_steps_are_judged_over_all_rows_and_those_of_each_case(factor, rows, good, capsys):
    """A case of which only a part was measured counts in the mean of all rows alone."""
    one = {"o0": 2.0, "o1": 1.0, "o2": 1.0, "o4": 1.0, "prim": 1.0}
    known = {figure12.Case(n, size): dict(one) for n in "ABCD" for size in range(1, rows + 1)}
    measured = {case: dict(times) for case, times in known.items() if case.length == 1}
    measured[figure12.Case("A", 1)]["o0"] *= 1.01 * factor
    assert figure12.judge(measured, known) == bool(good)
    assert f"({1.01 * factor - 1:+.0%})" in (text := capsys.readouterr().out)
    assert text.splitlines()[-1].split()[0] == "all"


@pytest.mark.parametrize(
    ("name", "level", "moved"),
    [
        ("MTV Lx256", 0, True),
        ("MTV Lx256", 1, True),
        ("MTV LxL", 1, True),
        ("MTV LxL", 2, True),
        ("MTV LxL", 4, False),  # hoisted: nothing is under a check of its own
        ("MTV 256xL", 1, False),  # the zeroing, under no check, has the address
        ("VA", 1, False),
    ],
)
def test_an_address_under_a_check_is_computed_there(name, level, moved):
    case = figure12.Case(name, 17 if name != "VA" else 1)
    sources = from_heap(pipeline.compile_func(figure12.scheduled(case, level), case.target, level))
    text = figure12.addresses_where_used(sources).kernel_c
    assert text.count("lsl_add") == text.count("*sum +=") == moved
    assert (text != sources.kernel_c) == moved


def test_the_check_of_a_row_costs_what_it_did_on_silicon():
    """Slots a product, after those of rows past the end (2 of the loop and the check)."""
    case = figure12.Case("MTV Lx256", 72)
    times, silicon = figure12.measure(case), figure12.published()[case]
    products, past = 72 * 256, (96 - 72) * 256
    ours, theirs = (((t["o1"] - t["o4"]) * 350e3 - 3 * past) / products for t in (times, silicon))
    assert ours == pytest.approx(5.0, abs=0.6)
    assert ours == pytest.approx(theirs, abs=0.6)


def test_errors_of_a_row_are_those_of_its_published_phases():
    case = figure9.Case("", "mtv", (8, 8), 4.0, None, 3.0, (0.0, 1.0, 2.0))
    places = ((0.1, 0.5, 0.8, 1.0), (0.1, 1.1, 0.8, 1.0))
    row = totals.Row(case, places, (0.0, 1.0, 1.0, 0.0), (1.0, 1.0, 1.0, 0.0))
    assert row.errors() == pytest.approx(
        {"kernel": -0.5, "after": -0.1, "total": -0.2, "PrIM-style": -0.5, "PrIM": -0.25}
    )
    assert "500.000" in totals.line(row)
    lines, good = totals.summary([row])
    assert not good
    assert "worst kernel: -50.0%" in lines[-2]
    assert "nearest" in lines[-1]
    assert "worst +10.0%" in lines[-1]


@pytest.mark.parametrize(
    ("case", "tiles"),
    [
        (("va", (16777216,)), {256}),  # 3 arrays of 512 elements for 8 tasklets are 48 KB
        (("red", (33554432,)), {128}),
        (("mtv", (7168, 28672)), {14}),
        (("mtv", (4096, 16384)), {2, 4}),
    ],
    ids=["va", "red", "mtv", "both"],
)
def test_caches_sit_where_they_fit_what_atim_allows(case, tiles):
    given = shipped.table()[case]
    sketches = design_space(workloads.get(*case).func, Target(dpus=figure9.DPUS))
    assert {d["tile"] for _, d in shipped.readings(given, sketches)} == tiles


def test_prims_code_takes_the_slots_that_were_measured_more():
    """GEMV on silicon: 24.0 cycles a product; its style as we build it: 18.7."""
    assert prim_code.silicon("mtv") == pytest.approx(24.0, abs=0.1)
    assert prim_code.slope("mtv") == pytest.approx(18.7, abs=0.3)
    assert prim_code.factor("ttv") == pytest.approx(24.0 / 18.7, abs=0.03)
    assert 1.1 < prim_code.factor("gemv") < prim_code.factor("mtv")  # a longer loop, as much more
