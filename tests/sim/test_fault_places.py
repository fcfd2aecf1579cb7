"""Faults and deadlocks name C lines, also of what happens inside the library."""

from __future__ import annotations

import re

import pytest

from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu
from upmem_sim.errors import SimFault

WAITING = """#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mutex.h>
#include <sem.h>
BARRIER_INIT(meet, NR_TASKLETS);
SEMAPHORE_INIT(tokens, 0);
MUTEX_INIT(lock);
int main() {
    if (me() == 0)
        barrier_wait(&meet);
    if (me() == 1)
        sem_take(&tokens);
    if (me() == 2)
        handshake_wait_for(3);
    return 0;
}
"""


def fault_of(text: str, tasklets: int = 1) -> SimFault:
    with pytest.raises(SimFault) as caught:
        Dpu(compile_c(text, nr_tasklets=tasklets)).run(10**6)
    return caught.value


def test_a_deadlock_names_who_waits_where() -> None:
    fault = fault_of(WAITING, 4)
    assert (fault.kind, fault.line) == ("deadlock", 11)
    for text in (
        r"tasklet 0 sleeps in barrier_wait at pc \d+ \(<source>:11\); ",
        r"tasklet 1 sleeps in sem_take at pc \d+ \(<source>:13\); ",
        r"tasklet 2 sleeps in handshake_wait_for at pc \d+ \(<source>:15\)$",
    ):
        assert re.search(text, str(fault)), str(fault)
    assert "tasklet 3" not in str(fault)


def test_a_mutex_taken_twice() -> None:
    fault = fault_of(
        "#include <mutex.h>\nMUTEX_INIT(lock);\nint main() {\n"
        "    mutex_lock(lock);\n    mutex_lock(lock);\n    return 0;\n}\n"
    )
    assert fault.kind == "deadlock"
    assert "tasklet 0 spins in main at pc" in str(fault)
    assert fault.line == 5


def test_a_fault_inside_the_library_names_the_call() -> None:
    fault = fault_of(
        "#include <string.h>\nchar *volatile far = (char *)0x20000;\nint main() {\n"
        "    return (int)strlen(far);\n}\n"
    )
    assert (fault.kind, fault.file, fault.line) == ("memory", "<source>", 4)
    assert "lbu of 1 bytes at 0x20000 (r" in str(fault)
