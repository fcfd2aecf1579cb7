"""Arithmetic routines of the run time: bit-exact results, vendor-like lengths, kept registers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.arith_driver import Routine, call, program, runtime
from benchmarks.arith_reference import ROUTINES, expected, random, special, wrong
from benchmarks.arithmetic import LIMITS, Published, measure, published
from upmem_sim.asm import assemble
from upmem_sim.dpu import Dpu
from upmem_sim.errors import SimFault
from upmem_sim.link import link


def differing(routine: Routine, arrays: list[np.ndarray]) -> list[str]:
    got, _ = call(routine, *arrays)
    want = expected(routine, *arrays)
    bad = np.flatnonzero(wrong(routine, got, want))
    return [f"{[a[i] for a in arrays]}: {got[i]}, not {want[i]}" for i in bad[:5]]


@pytest.mark.parametrize("name", ROUTINES)
def test_special_values_are_exact(name: str) -> None:
    arrays = special(ROUTINES[name])
    if len(arrays) == 2:  # a third of the pairs, another third for each routine
        arrays = [array[len(name) % 3 :: 3] for array in arrays]
    assert differing(ROUTINES[name], arrays) == []


@pytest.mark.parametrize("name", ROUTINES)
def test_random_values_are_exact(name: str, rng: np.random.Generator) -> None:
    assert differing(ROUTINES[name], random(ROUTINES[name], rng, 2000)) == []


def test_a_wrong_result_would_show() -> None:
    ones = np.array([1.0, np.nan, -0.0], np.float32)
    twos = np.array([2.0, np.inf, 0.0], np.float32)
    assert wrong(ROUTINES["__addsf3"], ones, twos).tolist() == [True, True, True]
    assert wrong(ROUTINES["__addsf3"], -ones, ones).tolist() == [True, False, True]


def inside(name: str, a: float, b: float) -> float:
    """Instructions of one call."""
    routine = ROUTINES[name]
    return call(routine, *(np.full(64, x, k) for x, k in zip((a, b), routine.args, strict=True)))[1]


@pytest.mark.parametrize("bits", [0, 1, 2, 9, 20, 31, 32])
def test_multiply_takes_a_step_for_each_bit_of_the_smaller_factor(bits: int) -> None:
    smaller = (1 << bits) - 1
    count = max(bits, 1) + 6
    assert inside("__mulsi3", smaller, 0xFFFFFFFF) == count
    assert inside("__mulsi3", 0xFFFFFFFF, smaller) == count


@pytest.mark.parametrize(("a", "b", "bits"), [(1, 1, 1), (100, 7, 5), (0xFFFFFFFF, 1, 32)])
def test_unsigned_division_takes_a_step_for_each_quotient_bit(a: int, b: int, bits: int) -> None:
    assert inside("__udivsi3", a, b) == bits + 7
    assert inside("__umodsi3", a, b) == bits + 7


def test_unsigned_division_leaves_early_when_the_quotient_is_zero() -> None:
    assert inside("__udivsi3", 3, 8) == 5
    assert inside("__umodsi3", 3, 8) == 4


# lengths implied by the throughput published for the vendor's library, PrIM figure 4
@pytest.mark.parametrize(
    ("name", "vendor", "tolerance"),
    [("__muldi3", 128.5, 0.01), ("__divdi3", 242, 0.02), ("__addsf3", 64, 0.1),
     ("__subsf3", 69, 0.1), ("__mulsf3", 176, 0.1), ("__divsf3", 1022, 0.1),
     ("__adddf3", 97, 0.1), ("__subdf3", 104, 0.1), ("__muldf3", 652, 0.1),
     ("__divdf3", 2180, 0.1)],
)  # fmt: skip
def test_lengths_are_those_of_the_vendors_library(
    name: str, vendor: float, tolerance: float, rng: np.random.Generator
) -> None:
    routine = ROUTINES[name]
    first = rng.integers(0, 1 << 31, 1024).astype(routine.args[0])
    _, count = call(routine, first, np.full(1024, 1 << 20, routine.args[1]))
    assert count == pytest.approx(vendor, rel=tolerance)


DIVISIONS = [f"__{sign}{name}{width}3" for sign in ("", "u") for name in ("div", "mod")
             for width in ("si", "di")]  # fmt: skip


@pytest.mark.parametrize("name", DIVISIONS)
def test_division_by_zero_is_a_fault(name: str) -> None:
    dpu = Dpu(program(name))
    dpu.wram[0x800] = 1
    with pytest.raises(SimFault, match="division by zero"):
        dpu.run()


_KEPT = "\n".join(f"move r{i}, {1000 + i}" for i in range(14, 22))
_CALLER = """
    .text
    .globl __bootstrap
__bootstrap:
    move r22, 0x8000
    {kept}
    move r0, 0x41100000
    move r1, 0x42100000
    move r2, 0x40100000
    move r3, 5
    call r23, {name}
.Lend:
    stop true, .Lend
"""


@pytest.mark.parametrize("name", ROUTINES)
def test_callee_saved_registers_are_kept(name: str) -> None:
    unit = assemble(_CALLER.format(kept=_KEPT, name=name), "caller")
    dpu = Dpu(link([unit, *runtime()], nr_tasklets=1))
    dpu.run()
    registers = dpu.machine.tasklet(0)["registers"]
    assert registers[14:22] == [1000 + i for i in range(14, 22)]
    assert registers[22] == 0x8000


# elements: one block of each tasklet; the benchmark takes more
@pytest.mark.parametrize("row", published(), ids=lambda row: row.loop)
def test_compiled_loops_take_as_many_instructions_as_on_silicon(row: Published) -> None:
    count = measure(row.loop, 16 * 1024 // 4)
    assert count == pytest.approx(row.instructions, rel=LIMITS[row.loop.split()[0]] / 100)
