"""A few rows of the fidelity benchmark: loops, DMA, programs like PrIM's, synchronisation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import fidelity_loops, fidelity_prim
from benchmarks.fidelity_rows import PROGRAMS, Group, Row, summary, table
from upmem_sim import Dpu, DpuParams, TransferModel, compile_c
from upmem_sim.params import DPU_PRESETS

LOOPS = [line for line in table("loops") if int(line["bytes"]) <= 64 or line["tasklets"] == "4"]


@pytest.mark.parametrize("line", LOOPS, ids=lambda r: f"{r['loop']}-{r['tasklets']}-{r['bytes']}")
def test_loop_has_the_measured_length_and_time(line: dict[str, str]) -> None:
    instructions, cycles = fidelity_loops.per_round(
        line["loop"], int(line["tasklets"]), int(line["bytes"])
    )
    assert instructions == int(line["instructions"])
    assert cycles == pytest.approx(float(line["cycles"]), rel=0.04)


def test_loops_of_known_machine_code_are_within_the_limits() -> None:
    group = fidelity_loops.loops()
    assert group.mean < 0.015
    assert not group.failed


def test_refresh_is_closer_to_silicon_than_its_mean_effect() -> None:
    still = DPU_PRESETS["v1A without refresh"]
    assert fidelity_loops.loops().mean < fidelity_loops.loops(still).mean


@pytest.mark.parametrize(
    ("rule", "loop", "size", "silicon"),
    [
        ({"dma_steal_bytes": 8}, "va", 512, 18803),
        ({"taken_jump_cycles": 3}, "sum", 512, 14628),
        ({"parity_conflict_cycles": 1}, "histogram", 32, 3513),
    ],
)
def test_rejected_rules_leave_the_limits(
    rule: dict[str, int], loop: str, size: int, silicon: float
) -> None:
    _, cycles = fidelity_loops.per_round(loop, 16, size, DpuParams(**rule), rounds=8)
    assert cycles > 1.07 * silicon


def test_dma_reads_are_within_the_limits() -> None:
    assert not fidelity_loops.dma().failed


def test_multiply_takes_as_many_steps_as_the_smaller_factor_has_bits() -> None:
    assert fidelity_loops.multiplies().mean < 0.003


def test_fastest_choice_is_found() -> None:
    assert not fidelity_loops.ranking(quick=True).failed


@pytest.mark.parametrize("name", [*fidelity_prim.JUDGED, "VA", "RED", "HST-S", "GEMV"])
def test_programs_of_prim_give_right_results(name: str) -> None:
    size = {"GEMV": 1002, "TRNS": 21, "VA": 10_000, "RED": 10_000, "HST-S": 10_000}.get(name, 16384)
    run = fidelity_prim.simulate(name, size)
    assert run.elements >= size
    assert len(run.cycles) == (2 if name in ("SCAN-RSS", "TRNS") else 1)


@pytest.mark.parametrize(
    ("name", "dpus", "size"), [("SEL", 64, 524288), ("SCAN-RSS", 16, 1048576), ("TRNS", 64, 32)]
)
def test_program_with_known_machine_code_takes_as_long_as_published(
    name: str, dpus: int, size: int
) -> None:
    run = fidelity_prim.simulate(name, size if name == "TRNS" else size // dpus)
    launch = TransferModel.preset().launch(dpus)
    ms = sum(cycles / 350e3 + launch * 1e3 for cycles in run.cycles)
    (published,) = (
        float(line["ms"])
        for line in table("prim")
        if (line["program"], line["dpus"], line["size"]) == (name, str(dpus), str(size))
    )
    assert ms == pytest.approx(published, rel=0.05)


def test_barrier_of_one_tasklet_takes_ten_instructions() -> None:
    assert fidelity_loops.barriers().rows[0].simulated == 110


def test_levels_of_the_vector_addition_keep_their_order() -> None:
    cycles = []
    for level in (0, 1, 4):
        program = compile_c(PROGRAMS / "va_levels.c", nr_tasklets=16, defines={"LEVEL": level})
        dpu = Dpu(program)
        dpu.write("count", np.uint32(6250))
        cycles.append(dpu.run().cycles)
    assert cycles[0] > 6 * cycles[1] > 6 * 1.3 * cycles[2]


def test_error_of_a_range_is_to_its_nearer_end() -> None:
    assert Row("a", 100.0, 110.0, "ms").error == pytest.approx(0.1)
    assert Row("a", 100.0, 110.0, "ms", high=120.0).error == 0
    assert Row("a", 100.0, 132.0, "ms", high=120.0).error == pytest.approx(0.1)
    assert Row("a", 100.0, 90.0, "ms", high=120.0).error == pytest.approx(-0.1)


def test_a_group_fails_by_its_mean_or_by_its_worst_row() -> None:
    rows = [Row("a", 100.0, 101.0, "ms"), Row("b", 100.0, 95.0, "ms")]
    assert not Group("g", rows).failed
    assert math.isclose(Group("g", rows).mean, 0.03)
    assert Group("g", rows, mean_limit=0.02).failed
    assert Group("g", rows, worst_limit=0.04).failed
    passes = Group("g", rows, mean_limit=0.04, worst_limit=0.06)
    assert not passes.failed
    assert "| g | 2 | 3.0% | 4% | -5.0% | 6% | within |" in summary([passes])
