"""Programs survive the file, and damaged files are refused."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from random import Random

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from upmem_sim.asm import assemble
from upmem_sim.elf import NOTE_SECTION, read_elf, seal, write_elf
from upmem_sim.errors import ElfError
from upmem_sim.link import link
from upmem_sim.program import Program

SOURCE = """
    .file 1 "kernel.c"
    .globl main
main:
    .loc 1 3
    ld d22, id8, __sys_thread_stack_table_ptr
    acquire zero, lock, nz, .
    .loc 1 4
    move r0, message
    jneq r0, 5, main
    .globl __sys_end
__sys_end:
    stop true, __sys_end
    .section .rodata.m
message: .asciz "hello"
    .section .data.d
    .word message
    .section .dpu_host
counter: .quad 5
    .section .mram.noinit
scratch: .zero 5000
    .section .mram
table: .word 1, 2, 3
    .section .atomic
lock: .byte 0
"""


@pytest.fixture(scope="module")
def program() -> Program:
    return link([assemble(SOURCE, "k.s")], nr_tasklets=4, stack_bytes=256)


@pytest.fixture(scope="module")
def image(program: Program) -> bytes:
    return write_elf(program)


def test_round_trip(program: Program, image: bytes, tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_bytes(image)
    for again in (read_elf(image), read_elf(path), read_elf(str(path))):
        assert np.array_equal(again.words, program.words)
        assert np.array_equal(again.rows, program.rows)
        assert again.wram == program.wram
        assert (again.mram, again.mram_start) == (program.mram, program.mram_start)
        assert again.symbols == program.symbols
        assert again.nr_tasklets == 4
        assert again.lines == program.lines
        assert again.lines[-1] == ("kernel.c", 4)
        assert write_elf(again) == image


def test_other_tools_can_read_it(program: Program, tmp_path: Path, image: bytes) -> None:
    path = tmp_path / "k"
    path.write_bytes(image)
    with path.open("rb") as file:
        elf = ELFFile(file)
        assert elf.elfclass == 32
        assert elf.header["e_entry"] == 0x80000000
        segments = {s["p_vaddr"]: (s["p_filesz"], s["p_memsz"]) for s in elf.iter_segments()}
        assert segments[0x80000000] == (8 * 5, 8 * 5)
        assert segments[0x08000000] == (0, 5000)
        assert segments[0x08000000 + 5000] == (12, 12)
        symbols = elf.get_section_by_name(".symtab")
        (counter,) = symbols.get_symbol_by_name("counter")
        assert counter["st_size"] == 8
        assert elf.get_section(counter["st_shndx"]).name == ".data.__sys_host"
        (tasklets,) = symbols.get_symbol_by_name("NR_TASKLETS")
        assert (tasklets["st_value"], tasklets["st_shndx"]) == (4, "SHN_ABS")


def test_smallest_program() -> None:
    for data in ("", ".section .dpu_host\n.word 1\nend:", ".section .rodata\nempty:"):
        program = link([assemble(f".globl main\nmain: stop\n{data}", "s")])
        assert write_elf(read_elf(write_elf(program))) == write_elf(program)


def note_offset(image: bytes) -> int:
    section = ELFFile(io.BytesIO(image)).get_section_by_name(NOTE_SECTION)
    return int(section["sh_offset"])


def refused(image: bytes) -> str:
    with pytest.raises(ElfError) as caught:
        read_elf(image)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def outcome(image: bytes) -> Program | str:
    try:
        return read_elf(image)
    except ElfError as error:
        return str(error)


def test_files_of_other_tools_are_refused_with_the_reason(image: bytes) -> None:
    assert refused(image.replace(NOTE_SECTION.encode(), b".note.something")) == (
        f"section {NOTE_SECTION} is missing"
    )
    older = bytearray(image)
    older[older.index(b"upmem_sim\0\0\0") + 12] = 1
    assert refused(bytes(older)) == "instruction encoding version 1, this simulator has 2"
    assert refused(b"") == "not an ELF file"
    assert refused(b"\x7fELF") != ""
    assert "64 bits" in refused(Path("/proc/self/exe").read_bytes()[:4096])


def test_any_changed_byte_is_noticed(image: bytes) -> None:
    rng = Random(8)
    for _ in range(200):
        at = rng.randrange(len(image))
        damaged = bytearray(image)
        damaged[at] ^= 1 << rng.randrange(8)
        refused(bytes(damaged))


def test_cut_files_are_refused(image: bytes) -> None:
    for end in range(0, len(image), 37):
        refused(image[:end])


def test_damage_under_a_right_checksum_gives_an_error_or_a_program(image: bytes) -> None:
    """The parser itself is exercised: every mutation is sealed again."""
    rng, note, parsed = Random(9), note_offset(image), 0
    for _ in range(600):
        damaged = bytearray(image)
        for _ in range(rng.randint(1, 4)):
            if rng.random() < 0.5:  # headers and tables are the interesting part
                at = rng.randrange(len(image) // 4) * 4
                value = rng.choice([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x10000, rng.getrandbits(32)])
                struct.pack_into("<I", damaged, at, value)
            else:
                damaged[rng.randrange(len(damaged))] = rng.getrandbits(8)
        result = outcome(seal(bytes(damaged), note))
        if isinstance(result, str):
            assert "\n" not in result
        else:
            parsed += 1
            assert len(result.wram) <= 65536
    assert parsed > 10


def test_unreadable_path(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match=r"cannot read .*: No such file"):
        read_elf(tmp_path / "missing")
