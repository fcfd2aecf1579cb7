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


SMALL = "#include <defs.h>\n#include <stdint.h>\n#include <stdio.h>\n"
NESTED = {
    "signed": ("__host int a = 5, b = 0, c;", "c = a / b;"),
    "remainder": ("__host int a = 5, b = 0, c;", "c = a % b;"),
    "wide": ("__host int64_t a = 5, b = 0, c;", "c = a / b;"),
    "wide remainder": ("__host uint64_t a = 5, b, c;", "c = a % b;"),
    "string": ("char *volatile far = (char *)0x8000000;", 'printf("%s", far);'),
    "puts": ("char *volatile far = (char *)0x8000000;", "puts(far);"),
}


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
@pytest.mark.parametrize("name", NESTED)
def test_a_fault_in_nested_calls_of_the_library_names_the_program_s(name: str, opt: str) -> None:
    variables, statement = NESTED[name]
    text = f"{SMALL}{variables}\nint main() {{\n    {statement}\n    return 0;\n}}\n"
    with pytest.raises(SimFault) as caught:
        Dpu(compile_c(text, opt=opt)).run(10**6)
    fault = caught.value
    assert (fault.file, fault.line) == ("<source>", 6), str(fault)


def test_the_innermost_call_is_named() -> None:
    text = (
        "#include <stdint.h>\n__attribute__((noinline)) int64_t part(int64_t a, int64_t b) {\n"
        "    return a / b + 1;\n}\n"
        "volatile int64_t x;\nint main() {\n    x = part(3, 1);\n    x = part(x, x - x);\n}\n"
    )
    assert fault_of(text).line == 3


def test_a_call_at_the_end_of_a_function_is_named() -> None:
    text = (
        "#include <string.h>\nchar *volatile far = (char *)0x20000;\n"
        "__attribute__((noinline)) int f() {\n    return strlen(far);\n}\n"
        "volatile int n;\nint main() {\n    n = f();\n}\n"
    )
    assert fault_of(text).line == 4


def test_the_instruction_fault_reads_well() -> None:
    fault = fault_of('int main() { __asm__ volatile("fault 3"); }')
    assert fault.kind == "fault"
    assert str(fault).startswith("program fault at DPU 0, tasklet 0, pc ")
    assert str(fault).endswith(": code 3, assertion failed")
