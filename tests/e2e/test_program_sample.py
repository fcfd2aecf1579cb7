"""A sample of the programs benchmark: programs x types x shapes x random legal decisions."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.program_stages import PROGRAMS
from benchmarks.programs import draw, run_case, shapes_of


@pytest.mark.parametrize("program", PROGRAMS)
def test_equal_to_numpy(program: str) -> None:
    number = list(PROGRAMS).index(program)
    rng = np.random.default_rng(number)
    shapes = shapes_of(program, rng)
    types = PROGRAMS[program].types
    dtype = types[number % len(types)]
    for sizes in (shapes[number % len(shapes)],):
        cases = draw(program, dtype, sizes, seed=number, count=1)
        assert cases, f"{program} {dtype} {sizes}: nothing legal"
        result = run_case(cases[0])
        assert result.kind is None, f"{result.case}: {result.message}"
