"""When instructions issue: one a cycle, 11 cycles between two of a tasklet, round robin."""

from __future__ import annotations

from itertools import pairwise

import pytest
from harness import Steps, booted, program

from upmem_sim.dpu import Dpu, RunResult
from upmem_sim.params import DpuParams

ADD_LOOP = """
  move r1, 0
loop:
  lsl_add r2, r4, r1, 2
  lw r3, r2, 0
  add r3, r3, r0
  sw r2, 0, r3
  add r1, r1, 1
  jneq r1, 200, loop
end: stop true, end
"""


def run(text: str, tasklets: int = 1, params: DpuParams | None = None) -> RunResult:
    loaded = program(booted(text, tasklets), tasklets=tasklets)
    fast = Dpu(loaded, params).run()
    plain = Dpu(loaded, params).run(plain=True)
    assert fast == plain
    return fast


def test_one_tasklet_issues_every_11_cycles() -> None:
    steps = Steps(program("add r0, r0, 1\nlw r1, zero, 0\nnop\nend: stop true, end"))
    for k in range(4):
        steps.assert_earliest_issue_at(11 * k)


def test_a_booted_tasklet_issues_in_the_next_cycle() -> None:
    steps = Steps(program("jgtu id, 0, main\nboot zero, 1\nmain: nop\nend: stop true, end"))
    steps.assert_earliest_issue_at(0, tasklet=0)
    steps.assert_earliest_issue_at(11, tasklet=0)
    steps.assert_earliest_issue_at(12, tasklet=1)
    steps.assert_earliest_issue_at(22, tasklet=0)
    steps.assert_earliest_issue_at(23, tasklet=1)


def test_twelve_tasklets_take_turns_of_twelve_cycles() -> None:
    steps = Steps(program(booted("nop\n" * 40 + "end: stop true, end", 12), tasklets=12))
    seen = [steps.issue() for _ in range(400)]
    late = [issue for issue in seen if issue[1] > 150]
    for (tasklet, cycle), (after, next_cycle) in pairwise(late[:-30]):
        assert (after, next_cycle) == ((tasklet + 1) % 12, cycle + 1)


def test_any_instruction_costs_one_slot() -> None:
    body = """
      ld d2, zero, 8
      mul_step d4, r1, d4, 3
      call r23, .+1
      mul_ul_ul r1, r2, r3
      sd zero, 8, d2
      end: stop true, end
    """
    result = run(body)
    assert result.cycles == 11 * (result.instructions - 1) + 1


@pytest.mark.parametrize(("tasklets", "cycles_per_element"), [(1, 66), (2, 33), (11, 6), (16, 6)])
def test_add_loop_of_six_instructions(tasklets: int, cycles_per_element: float) -> None:
    result = run(ADD_LOOP, tasklets)
    per_element = result.cycles / (200 * tasklets)
    assert per_element == pytest.approx(cycles_per_element, rel=0.05)


@pytest.mark.parametrize("tasklets", [1, 2, 5, 10, 11, 12, 16, 23, 24])
def test_cycles_by_cause_add_up(tasklets: int) -> None:
    result = run(ADD_LOOP, tasklets)
    assert {t.total for t in result.tasklets} == {result.cycles}
    assert sum(t.instructions for t in result.tasklets) == result.instructions
    assert result.tasklets[0].issue == result.tasklets[0].instructions
    never_booted = result.tasklets[tasklets:]
    assert all(t.idle == result.cycles and t.instructions == 0 for t in never_booted)


def test_distance_is_a_parameter() -> None:
    result = run("nop\n" * 10 + "end: stop true, end", params=DpuParams(issue_distance_cycles=5))
    assert result.cycles == 5 * (result.instructions - 1) + 1


@pytest.mark.parametrize(
    ("params", "slots"),
    [
        (DpuParams(parity_conflict_cycles=1), 1),  # add r3, r3, r5 reads two odd registers
        (DpuParams(taken_jump_cycles=3), 3),
        (DpuParams(), 0),
    ],
)
def test_rejected_rules_are_switches(params: DpuParams, slots: float) -> None:
    loop = ADD_LOOP.replace("r3, r3, r0", "r3, r3, r5")
    extra = run(loop, 16, params).cycles - run(ADD_LOOP, 16).cycles
    assert extra / (200 * 16) == pytest.approx(slots, rel=0.02)


def test_spinning_takes_slots_and_is_booked_as_lock() -> None:
    body = """
      acquire zero, 5, nz, .
      nop
      nop
      release zero, 5, nz, .+1
      end: stop true, end
    """
    result = run(body, 4)
    assert sum(t.lock for t in result.tasklets) > 0
    assert {t.total for t in result.tasklets} == {result.cycles}
    assert all(t.instructions >= 5 for t in result.tasklets[:4])


def test_sleep_is_booked_as_asleep() -> None:
    body = """
      jneq id, 1, other
      stop true, woken
    woken:
      jump end
    other:
      nop
      nop
      nop
      resume one, 0
    end: stop true, end
    """
    result = run(body, 2)
    assert result.tasklets[1].asleep > 0
    assert result.tasklets[0].asleep == 0
    assert result.tasklets[0].total == result.tasklets[1].total == result.cycles
