"""What passes over DPU code must leave alone, in code that clang seldom makes."""

from __future__ import annotations

import numpy as np
import pytest

from upmem_sim.cc import compile_c, library
from upmem_sim.cc.flow import MASK, Block, Node, analyse, make
from upmem_sim.cc.pairs import join_words
from upmem_sim.cc.unit import build_unit, optimise
from upmem_sim.dpu import Dpu
from upmem_sim.errors import CompileError
from upmem_sim.isa import Insn, Label
from upmem_sim.link import link

# int f(uint32_t i, int *a, int sum, uint32_t n, int rounds): the loop is where the function begins
ENTERED_BY_CALLS = """
    mv s2, ra
    lui a1, %hi(inputs)
    addi a1, a1, %lo(inputs)
    li a0, 2
    li a2, 0
    li a3, 6
    li a4, 2
    call f
    mv ra, s2
    lui a1, %hi(outputs)
    sw a0, %lo(outputs)(a1)
    ret
f:
.L1:
    sh2add a5, a0, a1
    lw a5, 0(a5)
    add a2, a2, a5
    addi a0, a0, 1
    bne a0, a3, .L1
    addi a4, a4, -1
    beqz a4, .L2
    li a0, 0
    j .L1
.L2:
    mv a0, a2"""
# the index is the low word of a 64-bit number that passes 2^32
WIDE_INDEX = """
    lui a1, %hi(inputs+12)
    addi a1, a1, %lo(inputs+12)
    li a2, 0
    li a3, 2
    li a6, 7
    li a4, -3
.L1:
    sh2add a5, a4, a1
    lw a5, 0(a5)
    add a2, a2, a5
    addi a4, a4, 1
    seqz a7, a4
    add a6, a6, a7
    bne a4, a3, .L1
    add a2, a2, a6
    lui a1, %hi(outputs)
    sw a2, %lo(outputs)(a1)"""
VALUES = np.arange(3, 51, 3)


def _run(lines: str) -> int:
    """First word of `outputs` after `main` of RV32 text, with VALUES as `inputs`."""
    text = f"""
    .section .text.main
    .globl main
main:{lines}
    ret
    .section .dpu_host
    .globl inputs
    .globl outputs
    .p2align 3
inputs: .zero 64
    .size inputs, 64
outputs: .zero 8
    .size outputs, 8
"""
    unit = build_unit(text, "test", {})
    dpu = Dpu(link([unit, *library.select([unit])]))
    dpu.write("inputs", VALUES.astype(np.uint32))
    dpu.run(max_cycles=100_000)
    return int(dpu.read("outputs", np.uint32, 1)[0])


def test_a_loop_that_begins_its_function_is_entered_by_calls_too() -> None:
    assert _run(ENTERED_BY_CALLS) == VALUES[2:6].sum() + VALUES[:6].sum()


def test_the_carry_of_a_64_bit_index_is_kept() -> None:
    assert _run(WIDE_INDEX) == VALUES[:5].sum() + 7 + 1


def _loop(
    start: int, limit: str | int, base: str, entry: list[Node], end: list[Node]
) -> list[Insn]:
    """Sum of base[i] for i from `start` until it is `limit`, after the passes."""
    body = [
        make("lsl_add", "r4", base, "r5", 2),
        make("lw", "r4", "r4", 0),
        make("add", "r3", "r3", "r4"),
        make("add", "r5", "r5", 1),
        make("jneq", "r5", limit, target=".L1"),
        make("sw", "r6", 0, "r3"),
    ]
    items = [Label("f"), make("move", "r5", start), *entry, Label(".L1"), *body, *end]
    return [item for item in optimise(items, set()) if isinstance(item, Insn)]


RETURN = [make("jump", "r23")]


@pytest.mark.parametrize(
    ("start", "limit", "first"),
    [(0, 9, 9), (2, 9, 7), ((1 << 31) - 1, -1024, (1 << 31) - 1023)],
)
def test_counts_wrap_at_32_bits(start: int, limit: int, first: int) -> None:
    loop = _loop(start, limit, "r7", [], RETURN)
    assert [insn.args for insn in loop if insn.op == "move" and insn.args[0] == "r5"] == [
        ["r5", first]
    ]
    steps = [insn.args[2] for insn in loop if insn.op == "add" and insn.args[0] == "r7"]
    assert steps == ([] if start == 0 else [start * 4 if start == 2 else -4]) + [4]


def test_nothing_is_put_behind_a_jump_of_inline_assembly() -> None:
    jump = analyse(Node("add", ["r6", "r6", 4], "true", ".L1", fixed=True))
    assert any(insn.op == "lsl_add" for insn in _loop(0, "r2", "r0", [jump], RETURN))


def test_the_stack_pointer_is_no_running_pointer() -> None:
    loop = _loop(0, "r2", "r22", [], [make("fault", 1)])
    assert not any(insn.args[0] == "r22" for insn in loop if insn.op == "add")


def test_an_address_made_by_the_other_word_is_not_joined() -> None:
    block = Block([], [make("move", "r0", 0), make("lhu", "r1", "r0", 64)])
    block.live_out = MASK["d0"]
    join_words([block])
    assert [node.op for node in block.nodes] == ["move", "lhu"]


ASSEMBLY = """#include <mram.h>
int s1[2];
__host int out;
int main(void) {{
    int r;
    asm({text});
    out = r;
    return 0;
}}
"""


def test_a_64_bit_constant_of_assembly_is_a_number() -> None:
    dpu = Dpu(compile_c(ASSEMBLY.format(text='"move %0, %1" : "=r"(r) : "i"(5LL)')))
    dpu.run()
    assert dpu.read("out", np.int32, 1)[0] == 5


@pytest.mark.parametrize("text", ['"move %0, %1" : "=r"(r) : "i"(s1)', '"move %0, s1" : "=r"(r)'])
def test_symbols_of_assembly_are_not_taken_for_registers(text: str) -> None:
    with pytest.raises(CompileError, match=r"<source>:6: error: .* cannot name 's1'"):
        compile_c(ASSEMBLY.format(text=text))
