"""Random C programs give on the DPU what g++ gives (10,000 of them run in the benchmarks)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.c_generator import generate
from benchmarks.c_runs import check

OPTS = ("-O2", "-O1", "-Os", "-O3", "-O2")


@pytest.mark.parametrize("group", range(4))
def test_random_functions_agree_with_gcc(group: int, tmp_path: Path) -> None:
    for seed in range(100 * group, 100 * group + 4):
        difference = check(seed, OPTS[seed % len(OPTS)], tmp_path, rows=6, functions=4)
        assert difference is None, difference


def test_unoptimised_programs_agree_too(tmp_path: Path) -> None:
    for seed in (1001, 1002):
        difference = check(seed, "-O0", tmp_path, rows=4, functions=3)
        assert difference is None, difference


def test_the_generator_is_reproducible() -> None:
    assert generate(3) == generate(3)
    assert generate(3) != generate(4)
