"""Units become programs: what stays, where it goes, what it is called."""

from __future__ import annotations

import numpy as np
import pytest

from upmem_sim.asm import assemble
from upmem_sim.disasm import disassemble
from upmem_sim.encoding import encode_row
from upmem_sim.errors import LinkError
from upmem_sim.link import link
from upmem_sim.program import ATOMIC_BASE, IRAM_BASE, MRAM_BASE, Program

START = """
    .section .text.__bootstrap
    .globl __bootstrap, __sys_end
__bootstrap:
    ld d22, id8, __sys_thread_stack_table_ptr
    call r23, main
__sys_end:
    stop true, __sys_end
"""
MAIN = ".section .text.main\n.globl main\nmain: jump r23\n"


def build(*texts: str, tasklets: int = 1, stack: int | list[int] = 1024) -> Program:
    units = [assemble(text, f"u{i}.s") for i, text in enumerate(texts)]
    return link(units, nr_tasklets=tasklets, stack_bytes=stack)


def word(program: Program, address: int) -> int:
    return int.from_bytes(program.wram[address : address + 4], "little")


def test_entry_comes_first_wherever_it_is_defined() -> None:
    program = build(MAIN, START)
    assert program.symbols["__bootstrap"].address == IRAM_BASE
    assert program.symbols["main"].address == IRAM_BASE + 3 * 8
    assert int(program.rows[1]["target"]) == 3
    assert [encode_row(tuple(row)) for row in program.rows.tolist()] == program.words.tolist()


def test_stack_table_holds_return_address_and_stack_end() -> None:
    program = build(START, MAIN, tasklets=3, stack=[256, 512, 1024])
    symbols = program.symbols
    table = symbols["__sys_thread_stack_table_ptr"]
    assert table.size == 24
    ends = []
    for tasklet, size in enumerate((256, 512, 1024)):
        assert word(program, table.address + 8 * tasklet) == 2  # __sys_end
        ends.append(word(program, table.address + 8 * tasklet + 4))
        assert ends[-1] == symbols[f"__sys_stack_thread_{tasklet}"].address + size
        assert symbols[f"STACK_SIZE_TASKLET_{tasklet}"].address == size
    assert ends[0] + 512 == ends[1]
    assert symbols["STACK_SIZE_TASKLET_3"].address == 0
    assert symbols["__sw_cache_buffer"].address == ends[2]
    assert symbols["__sys_heap_pointer_reset"].address == ends[2] + 3 * 8
    assert symbols["NR_TASKLETS"].address == 3
    assert program.nr_tasklets == 3


def test_wram_order() -> None:
    names = ["host", "data", "keep", "bss", "ro", "low"]
    code = "".join(f"move r0, {name}\n" for name in names)
    text = f"""
    .globl main
    main: {code} jump r23
    .section .dpu_host
    host: .word 1
    .section .data.data
    data: .word 2
    .section .data.__sys_keep
    keep: .word 3
    .section .bss.bss
    bss: .zero 4
    .section .rodata.str
    ro: .word 5
    .section .data.immediate_memory.low
    low: .word 6
    """
    symbols = build(text).symbols
    addresses = [symbols[name].address for name in reversed(names)]
    assert addresses == [8, 16, 24, 32, 40, 48]
    assert symbols["__rodata_start_addr"].address == 16
    assert symbols["__rodata_end_addr"].address == 20


def test_only_what_is_referred_to_stays() -> None:
    program = build(
        """
    .section .text.main
    .globl main
    main: call r23, used
    jump r23
    .section .text.used
    used: move r0, table
    jump r23
    .section .text.unused
    unused: move r0, lost
    jump r23
    .section .data.table
    table: .word other
    .section .data.other
    other: .word 9
    .section .data.lost
    lost: .word 9
    .section .dpu_host
    host: .word 0
    .section .mram
    big: .word 0
    """
    )
    names = {n for n, s in program.symbols.items() if s.section != "*ABS*" and n[:2] != "__"}
    assert names == {"main", "used", "table", "other", "host", "big"}
    assert len(program.words) == 4


def test_mram_has_uninitialised_variables_first() -> None:
    program = build(
        MAIN
        + """
    .section .mram
    a: .word 7
    .section .mram.noinit
    b: .zero 100
    """
    )
    assert program.symbols["b"].address == MRAM_BASE
    assert program.symbols["a"].address == MRAM_BASE + 104
    assert (program.mram_start, program.mram) == (104, b"\7\0\0\0")
    assert program.symbols["__sys_used_mram_end"].address == MRAM_BASE + 112
    assert set(program.host_symbols) == {"a", "b", "__sys_used_mram_end"}


def test_atomic_bits_start_at_200() -> None:
    bits = "".join(f"release zero, bit{i}, nz, .+1\n" for i in range(56))
    text = f".globl main\nmain: {bits} jump r23\n.section .atomic\n"
    text += "".join(f"bit{i}: .byte 0\n" for i in range(56))
    text += ".section .dpu_host\nhandle: .byte bit3\n.p2align 2\n.word bit3"
    program = build(text)
    assert program.symbols["bit0"].address == ATOMIC_BASE + 200
    assert program.rows["imm"][:56].tolist() == list(range(200, 256))
    handle = program.symbols["handle"].address
    assert program.wram[handle] == 203
    assert word(program, handle + 4) == ATOMIC_BASE + 203


def test_atomic_bits_are_few() -> None:
    text = ".globl main\nmain: move r0, bits\n.section .atomic\nbits: .zero 57"
    with pytest.raises(LinkError, match="atomic bits: 57 needed, limit 56, 1 too many"):
        build(text)


def test_code_addresses_count_instructions() -> None:
    text = """
    .globl main
    main: move r0, f
    jump r23
    f: nop
    g: nop
    .section .dpu_host
    .word f, g, f+1
    """
    program = build(text)
    assert int(program.rows[0]["imm"]) == 2
    assert [word(program, 8 + 4 * i) for i in range(3)] == [2, 3, 3]


def test_locals_globals_weak_and_aliases() -> None:
    one = """
    .globl main
    main: move r0, x
    move r1, shared
    move r2, other
    move r3, maybe
    .section .data.x
    x: .word 1
    .weak maybe, shared
    .section .data.shared
    shared: .word 10
    """
    two = """
    .section .data.x
    x: .word 2
    .globl shared, other
    .section .data.shared
    shared: .word 20
    .set other, x
    """
    program = build(one, two)
    values = [word(program, int(imm)) if imm else None for imm in program.rows["imm"]]
    assert values == [1, 20, 2, None]


def test_symbol_sizes_come_from_size_or_the_next_label() -> None:
    program = build(MAIN + ".section .dpu_host\na: .word 1, 2\nb: .word 3\n.size b, 2\nc: .byte 1")
    assert [program.symbols[n].size for n in "abc"] == [8, 2, 1]


def test_lines_follow_the_instructions() -> None:
    program = build('.globl main\n.file 1 "a.c"\nmain: nop\n.loc 1 7\nnop\njump r23')
    assert program.lines == [None, ("a.c", 7), ("a.c", 7)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([START], "undefined symbol main, used in u0.s"),
        (["main: nop"], "no entry: none of __bootstrap, main is defined and global"),
        ([".globl main\nnop\nmain: nop"], "entry main is not at the start of a text section"),
        ([MAIN, MAIN], "symbol main is defined in u0.s and in u1.s"),
        (
            [START.replace("__sys_end", "end"), MAIN],
            "undefined symbol __sys_end, used in the stack",
        ),
        ([".globl main\nmain: jump x\n.set x, y\n.set y, x"], "is an alias of itself"),
        (
            [".globl main\nmain:\n" + "nop\n" * 4100],
            "IRAM: 4100 instructions needed, limit 4096, 4",
        ),
        (
            [MAIN + ".section .dpu_host\n.zero 65000"],
            r"WRAM: 66040 bytes needed, limit 65536, 504 too many \(65008 of variables, 1024 of",
        ),
        (
            [MAIN + ".section .mram.noinit\n.zero 1<<26", ".section .mram\n.byte 1"],
            "MRAM: 67108872 bytes needed, limit 67108864, 8 too many",
        ),
        (
            [".globl main\nmain: lw r0, zero, x\n.data\n.section .mram\nx: .word 1"],
            "u0.s: lw at 0x8000000: an MRAM address used as WRAM",
        ),
        (
            [MAIN + ".section .dpu_host\n.byte x\n.section .mram\nx: .word 1"],
            "value 134217728 of x does not fit 1 bytes",
        ),
    ],
)
def test_errors(texts: list[str], message: str) -> None:
    with pytest.raises(LinkError, match=message) as caught:
        build(*texts)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tasklets", "stack", "message"),
    [
        (0, 1024, "NR_TASKLETS: 0, limit 1 to 24"),
        (25, 1024, "NR_TASKLETS: 25, limit 1 to 24"),
        (2, 100, "stack of tasklet 0: 100 bytes, must be positive and a multiple of 8"),
        (24, 4096, "WRAM: 98504 bytes needed, limit 65536"),
        (2, [1024], "stack sizes: 1 given for 2 tasklets"),
    ],
)
def test_tasklets_and_stacks(tasklets: int, stack: int | list[int], message: str) -> None:
    with pytest.raises(LinkError, match=message):
        build(MAIN, tasklets=tasklets, stack=stack)


def test_disassembly_assembles_to_the_same_words() -> None:
    body = """
    .section .text.main
    .globl main
    main: move r0, id
    .Ltop: add r0, r0, -1, pl, .Ltop
    acquire zero, 5, nz, .
    call r23, id
    call r1, r2, 3
    move.u d4, r3
    neg r1, r2
    mul_step d0, r2, d0, 31, z, .Lend
    lw !big r0, r1, -8
    .Lend: stop
    jump r23
    id: jneq r0, r1, .Lend2
    .Lend2:
    """
    program = build(START, body.replace("id:", "id_:").replace("r23, id", "r23, id_"))
    text = disassemble(program)
    again = link([assemble(text, "again.s")])
    assert np.array_equal(again.words, program.words)
    assert "jump r23" in text
    assert "call r23, main" in text
