"""The transfer models stay within the errors that are claimed for them."""

from __future__ import annotations

import pytest

from benchmarks.transfers import Group, groups

FOUND = groups()


@pytest.mark.parametrize("group", FOUND, ids=lambda group: group.name)
def test_within_its_limit(group: Group) -> None:
    assert not group.failed, f"{group.mean:.1%} on average"


def test_nothing_published_is_left_out() -> None:
    assert [len(group.rows) for group in FOUND[:3]] == [95, 67, 14]
    assert sum(len(group.rows) for group in FOUND[3:7]) == 202
