"""A stack pointer that leaves its tasklet's stack is a fault, whichever way the stack grows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sdk_file
from harness import booted, oracle, program

from upmem_sim import Dpu, DpuParams, Program, compile_c, read_elf
from upmem_sim.errors import SimFault
from upmem_sim.interpreter import Fault
from upmem_sim.program import Symbol

END = "\nend: stop true, end"
RECURSION = """
    #include <defs.h>
    __host int depth, sum;
    __attribute__((noinline)) int down(int n) { return n ? down(n - 1) + down(n / 3) : 1; }
    int main() { if (me() == NR_TASKLETS - 1) sum = down(depth); }
"""


def stacks(tasklets: int, base: int, size: int) -> dict[str, Symbol]:
    places = {f"__sys_stack_thread_{t}": base + size * t for t in range(tasklets)}
    places |= {f"STACK_SIZE_TASKLET_{t}": size for t in range(tasklets)}
    return {name: Symbol(name, value, 0, "*ABS*") for name, value in places.items()}


def fault_of(loaded: Program, params: DpuParams | None = None) -> SimFault | None:
    """Both loops and the interpreter must say the same."""
    seen = []
    for plain in (False, True):
        try:
            Dpu(loaded, params).run(plain=plain)
            seen.append(None)
        except SimFault as fault:
            seen.append(fault)
    assert str(seen[0]) == str(seen[1])
    reference = oracle(loaded, params)
    if seen[0] is None:
        reference.run()
        return None
    with pytest.raises(Fault) as caught:
        reference.run()
    assert (caught.value.kind, caught.value.tasklet) == (seen[0].kind, seen[0].tasklet)
    assert caught.value.pc == seen[0].pc
    return seen[0]


def test_recursion_too_deep() -> None:
    dpu = Dpu(compile_c(RECURSION, nr_tasklets=3, stack_bytes=512))
    dpu.write("depth", np.int32(8))
    dpu.run()
    assert dpu.read("sum", "<i4").tolist()[0] > 8
    dpu.write("depth", np.int32(1000))
    with pytest.raises(SimFault, match="stack pointer r22 becomes") as caught:
        dpu.run()
    assert (caught.value.kind, caught.value.tasklet, caught.value.line) == ("stack-overflow", 2, 4)
    on_silicon = Dpu(dpu.program, DpuParams(silicon_stack=True))
    on_silicon.write("depth", np.int32(100_000))
    with pytest.raises(SimFault) as caught:  # goes on, over everything, to address 0
        on_silicon.run(10**8)
    assert caught.value.kind == "memory"


def test_an_array_of_variable_length() -> None:
    text = """
        #include <attributes.h>
        __host int n;
        __attribute__((noinline)) int use(int *p, int n) { return p[0] + p[n - 1]; }
        int main() { int array[n]; array[0] = array[n - 1] = 1; return use(array, n); }
    """
    dpu = Dpu(compile_c(text, stack_bytes=256))
    dpu.write("n", np.int32(20))
    dpu.run()
    dpu.write("n", np.int32(100))
    with pytest.raises(SimFault, match="stack-overflow"):
        dpu.run()


HEAD = "ld d22, id8, 0\nmove r0, 0\nmove r1, 0x13f\n"
TABLE = (0x180).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("text", "pc"),
    [
        ("add r22, r22, -64", None),
        ("add r22, r22, -72", 3),
        ("add r22, r22, 8", 3),
        ("add r22, r22, r0", None),
        ("sub r22, r22, r1", 3),
        ("sub r1, r22, r1\nmove r22, r1", 4),
        ("add r22, r15, -16", 3),
        ("add r22, r16, 0x170", None),
        ("ld d22, zero, 8", None),  # longjmp
    ],
)
def test_what_writes_the_pointer(text: str, pc: int | None) -> None:
    made = program(HEAD + text + END, wram=bytes(4) + TABLE, symbols=stacks(1, 0x140, 64))
    found = fault_of(made)
    assert (found.pc if found else None) == pc
    if found:
        assert "limits of this tasklet's stack: 0x140 to 0x180" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "move r22, 0",
        "move r22, r1",
        "add r22, r1, 8",
        "time r22",
        "lsl r22, id, 3",
        "lw r22, zero, 0",
        "movd d22, d0",
    ],
)
def test_another_use_of_r22(text: str) -> None:
    """Code that keeps something else in r22 is left alone."""
    made = program(
        f"{HEAD}{text}\nadd r22, r22, -128{END}",
        wram=bytes(4) + TABLE,
        symbols=stacks(1, 0x140, 64),
    )
    assert made.stacks == []
    assert fault_of(made) is None


def test_the_fault_is_in_its_cycle() -> None:
    """Other tasklets have done what they do before, and nothing after."""
    body = """
        ld d22, id8, 256
        lsl r15, id8, 5
        add r22, r15, 0x1100
        move r0, 0
    more:
        add r0, r0, 1
        jneq id, 5, more
        add r22, r22, -16
        jump more
    """
    made = program(booted(body + END, 12), tasklets=12, symbols=stacks(12, 1 << 12, 256))
    found = fault_of(made)
    assert found is not None
    assert (found.kind, found.tasklet) == ("stack-overflow", 5)
    counts = []
    for plain in (False, True):
        dpu = Dpu(made)
        with pytest.raises(SimFault):
            dpu.run(plain=plain)
        counts.append([dpu.machine.tasklet(t)["registers"][0] for t in range(12)])
    assert counts[0] == counts[1]


def test_programs_without_stacks_are_not_checked() -> None:
    text = HEAD + "add r22, r22, -128" + END
    assert fault_of(program(text, wram=bytes(4) + TABLE)) is None
    text = text.replace("id8", "zero")
    made = program(text, wram=bytes(4) + TABLE, symbols=stacks(1, 0x140, 64))
    assert fault_of(made) is None


def test_stacks_of_the_sdk_grow_upwards() -> None:
    made = read_elf(sdk_file.build())
    assert made.stacks == [(sdk_file.STACK, 64)]
    small = dict(made.symbols)
    small["STACK_SIZE_TASKLET_0"] = replace(small["STACK_SIZE_TASKLET_0"], address=8)
    assert fault_of(made) is None
    found = fault_of(replace(made, symbols=small))
    assert found is not None
    assert found.kind == "stack-overflow"
