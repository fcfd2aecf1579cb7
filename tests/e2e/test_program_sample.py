"""A sample of the programs benchmark: programs x types x shapes x random legal decisions."""

from __future__ import annotations

import numpy as np
import pytest

from atim.target import MULTIPLY_WORDS
from benchmarks.program_stages import PROGRAMS
from benchmarks.programs import Case, run_case, run_job, shapes_of, stages_in


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


def run_split(program: str, dtype: str, sizes: tuple[int, ...], **decisions: int) -> None:
    """A candidate whose reduction is cut in pieces; other decisions are 1."""
    _, ((*sketches,),) = stages_in(program, dtype, sizes)
    number = next(i for i, sketch in enumerate(sketches) if sketch.name == "rows_split")
    values = tuple(decisions.get(name, 1) for name in sketches[number].names)
    result = run_case(Case(program, dtype, sizes, ((number, values),), 0))
    assert result.kind is None, result.message


def test_words_of_a_shorter_last_piece() -> None:
    drawn = {"dpus_i1": 2, "pieces": 2, "tasklets_outer": 6, "tile": 8, "vector": 1, "unroll": 2}
    # pieces of 8 and 7 columns, two of them side by side
    run_split("batched matrix vector", "uint8", (16, 16, 15), **drawn, multiply=MULTIPLY_WORDS)


@pytest.mark.parametrize("program", ["clipped maxima", "sums of two halves"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "float32"])
def test_pieces_with_more_to_do_on_the_host(program: str, dtype: str) -> None:
    run_split(program, dtype, (13, 31), dpus_i=3, pieces=3, row_block=2, tile=8, vector=0)
