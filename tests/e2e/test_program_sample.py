"""A sample of the programs benchmark: programs x types x shapes x random legal decisions."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.program_stages import PROGRAMS
from benchmarks.programs import run_job, shapes_of


@pytest.mark.parametrize("program", PROGRAMS)
def test_equal_to_numpy(program: str) -> None:
    number = list(PROGRAMS).index(program)
    rng = np.random.default_rng(number)
    shapes = shapes_of(program, rng)
    types = PROGRAMS[program].types
    dtype = types[number % len(types)]
    for sizes in (shapes[number % len(shapes)],):
        results = run_job((program, dtype, sizes, number, 1))
        assert results[-1].kind is None, f"{results[-1].case}: {results[-1].message}"
