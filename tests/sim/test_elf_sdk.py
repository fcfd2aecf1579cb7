"""Files laid out as UPMEM's SDK does are read and run."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import numpy as np
import pytest
from sdk_file import STACK, SYMBOLS, build, code

from upmem_sim.dpu import Dpu
from upmem_sim.elf import read_elf, write_elf
from upmem_sim.errors import ElfError


def test_the_parts_of_the_file() -> None:
    program = read_elf(build())
    assert program.words.tolist() == code()
    assert (len(program.wram), program.mram, program.mram_start) == (36, b"", 4096)
    assert program.nr_tasklets == 1
    assert set(program.host_symbols) == {"checksum", "buffer", "__sys_used_mram_end"}
    places = {s.name: (s.address, s.size, s.section) for s in program.symbols.values()}
    assert places["checksum"] == (32, 4, ".data.__sys_host")  # the global one
    assert places["__sys_stack_thread_0"] == (STACK, 0, ".data.stacks")
    assert places["STACK_SIZE_TASKLET_0"] == (64, 0, "*ABS*")
    assert "crt0.c" not in places
    assert "__stack_note" not in places


def test_lines_come_from_dwarf() -> None:
    lines = read_elf(build()).lines
    expected = [("dpu/main.c", 30)] * 5 + [("dpu/main.c", 31)] * 9
    assert lines == [None] * 7 + expected


def test_it_runs() -> None:
    dpu = Dpu(read_elf(build()))
    dpu.write("buffer", np.arange(20, 28, dtype=np.uint8))
    assert dpu.run(checks=("uninitialised",)).instructions == 5 + 7 + 4 * 8 + 3 + 1
    assert dpu.read("checksum", np.uint32).tolist() == [sum(range(20, 28))]


def test_written_again_it_is_the_same_program() -> None:
    program = read_elf(build())
    again = read_elf(write_elf(program))
    assert again.words.tolist() == program.words.tolist()
    assert (again.symbols, again.lines) == (program.symbols, program.lines)
    assert (again.wram, again.mram_start) == (program.wram, program.mram_start)


def refused(image: bytes) -> str:
    with pytest.raises(ElfError) as caught:
        read_elf(image)
    return str(caught.value)


def test_a_word_without_meaning_is_named_with_its_place() -> None:
    words = code()
    words[5] = 0xFC0000000001
    assert refused(build(words)) == (
        ".text: instruction 5: word 0xfc0000000001 is not an instruction"
    )


def test_the_number_of_tasklets_is_needed() -> None:
    assert "NR_TASKLETS: missing" in refused(build(symbols=SYMBOLS[:-1]))
    many = [*SYMBOLS[:-1], ("NR_TASKLETS", 25, 0, 0x10, 0xFFF1)]
    assert "NR_TASKLETS: 25, must be 1 to 24" in refused(build(symbols=many))


def test_other_machines_are_refused() -> None:
    image = bytearray(build())
    image[18] = 243
    assert refused(bytes(image)) == "not a DPU program: ELF for machine 243, a DPU's is 245"


def test_damage_gives_an_error_or_a_program() -> None:
    image, rng, parsed = build(), Random(5), 0
    for _ in range(400):
        damaged = bytearray(image)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(image))] = rng.choice([0, 1, 0xFF, rng.getrandbits(8)])
        with suppress(ElfError):
            parsed += len(read_elf(bytes(damaged)).wram) <= 65536
    assert 20 < parsed < 400
    for end in range(0, len(image), 41):
        refused(image[:end])
