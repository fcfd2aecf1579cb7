"""Instruction words and ELF files mean the same to the library as to Python."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import sdk_file
from forms import forms

from upmem_sim.decoding import decode
from upmem_sim.elf import read_elf
from upmem_sim.encoding import encode, synonym
from upmem_sim.errors import ElfError, SimError
from upmem_sim.host import places
from upmem_sim.isa import ROW
from upmem_sim.rows import to_row

OK, INVALID_FILE, TOO_MANY_TASKLETS = 0, 24, 38


class DpuSet(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("pad", ctypes.c_uint32),
        ("nr_ranks", ctypes.c_uint32),
        ("ranks", ctypes.c_void_p),
    )


@cache
def library() -> Any:
    lib = ctypes.CDLL(str(places.lib_dir() / "libdpu.so"))
    lib.dpu_sim_decode.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    lib.dpu_load_from_memory.argtypes = [DpuSet, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
    lib.dpu_free.argtypes = [DpuSet]
    return lib


def native(word: int) -> tuple[int, ...] | None:
    row = np.zeros(1, ROW)
    return tuple(row[0].tolist()) if library().dpu_sim_decode(word, row.ctypes.data) else None


def python(word: int) -> tuple[int, ...] | None:
    try:
        return to_row(decode(word), lambda symbol: 0)
    except SimError:
        return None


def test_words_of_all_forms_decode_alike() -> None:
    rng = Random(3)
    for name, make in forms():
        insn = make(rng)
        for word in (encode(insn), synonym(insn)):
            if word is not None:
                row = native(word)
                assert row is not None, (name, hex(word))
                assert row == python(word), (name, hex(word))


def test_other_words_decode_alike() -> None:
    rng = Random(4)
    words = [encode(make(rng)) for _, make in forms()]
    words = [word ^ 1 << rng.randrange(48) for word in words]
    words += [rng.getrandbits(48) for _ in range(5000)] + [1 << 48, 0, (1 << 48) - 1]
    accepted = 0
    for word in words:
        row = native(word)
        assert row == python(word), hex(word)
        accepted += row is not None
    assert accepted > 1000


@pytest.fixture(scope="module")
def dpu() -> Any:
    out = DpuSet()
    assert library().dpu_alloc(1, None, ctypes.byref(out)) == OK
    yield out
    assert library().dpu_free(out) == OK


def load(dpu: DpuSet, image: bytes) -> int:
    status: int = library().dpu_load_from_memory(dpu, image, len(image), None)
    return status


def refusal(image: bytes) -> str:
    """What Python says against a file, empty if it reads it."""
    try:
        read_elf(image)
    except ElfError as error:
        return str(error)
    return ""


def test_files_of_the_sdk_are_loaded(dpu: DpuSet) -> None:
    assert load(dpu, sdk_file.build()) == OK
    many = [*sdk_file.SYMBOLS[:-1], ("NR_TASKLETS", 25, 0, 0x10, 0xFFF1)]
    assert load(dpu, sdk_file.build(symbols=many)) == TOO_MANY_TASKLETS
    assert load(dpu, sdk_file.build(symbols=sdk_file.SYMBOLS[:-1])) == INVALID_FILE


def test_any_changed_byte_of_our_files_is_noticed(dpu: DpuSet, probe: Path) -> None:
    image, rng = probe.read_bytes(), Random(6)
    assert load(dpu, image) == OK
    for _ in range(300):
        damaged = bytearray(image)
        damaged[rng.randrange(len(image))] ^= 1 << rng.randrange(8)
        assert (load(dpu, bytes(damaged)) == OK) == (refusal(bytes(damaged)) == "")
    for end in range(0, len(image), 97):
        assert load(dpu, image[:end]) == INVALID_FILE


def test_damaged_files_of_others_do_no_harm(dpu: DpuSet) -> None:
    image, rng, loaded, alike = sdk_file.build(), Random(7), 0, 0
    for _ in range(600):
        damaged = bytearray(image)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(image))] = rng.choice([0, 1, 0xFF, rng.getrandbits(8)])
        status = load(dpu, bytes(damaged))
        assert status in (OK, INVALID_FILE, TOO_MANY_TASKLETS)
        # not always: lines of DWARF are read by Python only, and names are checked here only
        alike += (status == OK) == (refusal(bytes(damaged)) == "")
        loaded += status == OK
    assert 20 < loaded < 600
    assert alike > 540
