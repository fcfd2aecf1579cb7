"""The suite of tuned kernels says by how much each takes longer than its bound."""

from __future__ import annotations

import pytest

from benchmarks import winners
from benchmarks.inner_loops import FULL, SMALL

CASE = winners.Case("mmtv", (4, 8, 16), "int8")


def test_a_ratio_is_that_to_the_larger_bound():
    bounds = {SMALL: {"issue slots": 80.0, "MRAM": 50.0}, FULL: {"issue slots": 90.0, "MRAM": 50.0}}
    row = winners.Row(CASE, 1e-3, "rows tile=4", {SMALL: 100.0, FULL: 99.0}, bounds)
    assert row.ratio(SMALL) == pytest.approx(1.25)
    assert row.ratio(FULL) == pytest.approx(1.1)
    assert winners.line(row).split()[:2] == ["mmtv", "4x8x16"]


def test_a_kernel_beyond_the_limit_fails(monkeypatch, capsys):
    bounds = {data: {"issue slots": 80.0, "MRAM": 50.0} for data in (SMALL, FULL)}

    def measured(cycles):
        return lambda case: winners.Row(case, 1e-3, "rows", dict.fromkeys(bounds, cycles), bounds)

    monkeypatch.setattr(winners, "measure", measured(100.0))
    assert winners.run(quick=True) == 0
    monkeypatch.setattr(winners, "measure", measured(101.0))
    assert winners.run(quick=True) == 1
    assert "at most 1.262 times the bound" in capsys.readouterr().out
