"""Counters count where the kernel allows them, and say why they don't elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from atim.offload.counters import HARDWARE, SOFTWARE, Counters


def test_software_counters_count() -> None:
    counters = Counters.open(SOFTWARE)
    if counters.why_not:
        pytest.skip(counters.why_not)
    few = counters.of(lambda: None)
    many = counters.of(lambda: np.ones(1 << 22).sum())
    assert many["task clock ns"] > few["task clock ns"] >= 0
    assert many["page faults"] > few["page faults"]
    counters.close()


def test_hardware_counters_count_or_say_why_not() -> None:
    counters = Counters.open()
    found = counters.of(lambda: sum(range(100_000)))
    if counters.why_not:
        assert found == {}
        assert "perf_event_open refuses cycles" in counters.why_not or "no counters" in (
            counters.why_not
        )
    else:
        assert set(found) == set(HARDWARE)
        assert found["instructions"] > 100_000
    counters.close()


def test_an_unknown_event_is_a_reason() -> None:
    counters = Counters.open({"nothing": (1, 9999)})
    assert counters.files == {}
    assert "nothing" in counters.why_not
