"""Broken rules are told with kind, DPU, tasklet, pc, line, and one line of words."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from harness import booted, program

from upmem_sim.dpu import Dpu, run_many
from upmem_sim.errors import SimError, SimFault
from upmem_sim.params import DpuParams
from upmem_sim.program import Program

END = "\nend: stop true, end"


def fault_of(loaded: Program, **options: int) -> SimFault:
    """Both loops must stop with the same fault."""
    with pytest.raises(SimFault) as fast:
        Dpu(loaded).run(**options)
    with pytest.raises(SimFault) as plain:
        Dpu(loaded).run(plain=True, **options)
    assert str(fast.value) == str(plain.value)
    assert "\n" not in str(fast.value)
    return fast.value


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "move r3, 0xfffc\nld d0, r3, 8",
            "memory",
            r"ld of 8 bytes at 0x10004 \(r3 = 0xfffc\): WRAM has 65536 bytes",
        ),
        ("nop\nsw zero, -4, r0", "memory", "sw of 4 bytes at 0xfffffffc: WRAM has 65536 bytes"),
        (
            "move r3, 0x08000010\nlw r0, r3, 0",
            "memory",
            "WRAM has 65536 bytes, an MRAM address used as WRAM",
        ),
        (
            "move r3, 6\nlw r0, r3, 0",
            "alignment",
            r"lw at 0x6 \(r3 = 0x6\): address must be a multiple of 4, remainder 2",
        ),
        ("nop\nsd zero, 4, d0", "alignment", "address must be a multiple of 8, remainder 4"),
        ("nop\nlhu.s d0, one, 0", "alignment", "address must be a multiple of 2, remainder 1"),
        ("nop\nfault 2", "fault", "code 2, division by zero"),
        ("nop\nbkp", "fault", "code 0, breakpoint"),
        ("nop\nfault 77", "fault", "code 77, of the program"),
        ("nop\nboot zero, 24", "thread", "boot of tasklet 24: limit 23"),
    ],
)
def test_faults_name_place_and_values(text: str, kind: str, message: str) -> None:
    fault = fault_of(program(text + END))
    assert fault.kind == kind
    assert (fault.dpu, fault.tasklet, fault.pc) == (0, 0, 1)
    assert (fault.file, fault.line) == ("test.s", 2)
    assert __import__("re").search(message, fault.message), fault.message
    name = "program" if kind == "fault" else kind
    assert str(fault).startswith(f"{name} fault at DPU 0, tasklet 0, pc 1 (test.s:2): ")


def test_running_off_the_program() -> None:
    fault = fault_of(program("nop\njump 9"))
    assert (fault.kind, fault.pc) == ("pc-range", 9)
    assert fault.message == "no instruction at 9: the program has 2"
    assert fault.file is None


def test_a_row_that_means_nothing_faults_when_executed() -> None:
    loaded = program("nop\nadd r0, r0, 1" + END)
    for field, value in (("op", 200), ("cc", 99), ("rd", 30), ("ra", 40), ("rb", 24)):
        rows = loaded.rows.copy()
        rows[1][field] = value
        broken = Program(loaded.words, rows, b"", b"", {}, 1, loaded.lines)
        assert fault_of(broken).kind == "illegal-instruction", field


def test_cycle_limit() -> None:
    fault = fault_of(program("loop: jump loop"), max_cycles=1000)
    assert fault.kind == "cycle-limit"
    assert fault.message == "not finished after 1000 cycles"


def test_deadlock_names_who_waits_where() -> None:
    body = """
      jeq id, 2, end
      stop true, woken
    woken:
      jump end
    end: stop true, end
    """
    fault = fault_of(program(booted(body, 3), tasklets=3))
    assert (fault.kind, fault.tasklet) == ("deadlock", 0)
    assert fault.message == (
        "nobody is left to wake them: tasklet 0 sleeps at pc 4 (test.s:5); "
        "tasklet 1 sleeps at pc 4 (test.s:5)"
    )


def test_tasklets_that_all_spin_are_a_deadlock() -> None:
    body = """
      acquire zero, 5, nz, .
      nop
      acquire zero, 5, nz, .
      end: stop true, end
    """
    fault = fault_of(program(booted(body, 3), tasklets=3))
    assert fault.kind == "deadlock"
    assert "tasklet 0 spins at pc 4 (test.s:5); tasklet 1 spins at pc 2" in fault.message


def test_a_lock_that_is_released_is_no_deadlock() -> None:
    body = "acquire zero, 5, nz, .\n" + "nop\n" * 9 + "release zero, 5, nz, .+1" + END
    Dpu(program(booted(body, 16), tasklets=16)).run(max_cycles=100000)


def test_the_first_faulty_dpu_is_named() -> None:
    loaded = program("lw r0, zero, 64\nsub zero, r0, 0, z, end\nfault 3" + END)
    dpus = [Dpu(loaded, index=i) for i in range(5)]
    dpus[3].wram[64] = dpus[4].wram[64] = 1
    with pytest.raises(SimFault, match=r"at DPU 3, .*code 3, assertion failed"):
        run_many(dpus, threads=2)


def test_program_too_large_for_the_chip() -> None:
    loaded = program("nop\n" * 30 + END)
    with pytest.raises(SimError, match="program needs 31 IRAM instructions, limit 16"):
        Dpu(loaded, DpuParams(iram_instructions=16))
    with pytest.raises(SimError, match="program needs 24 tasklets, limit 16"):
        Dpu(program("nop" + END, tasklets=24), DpuParams(tasklets=16))


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupt_stops_a_long_run(threads: int) -> None:
    dpus = [Dpu(program("loop: jump loop")) for _ in range(3)]
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_many(dpus, threads=threads)
    timer.join()
