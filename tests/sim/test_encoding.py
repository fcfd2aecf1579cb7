"""Words and instructions are the same thing written twice."""

from __future__ import annotations

from random import Random

import pytest
from forms import forms

from upmem_sim.decoding import decode
from upmem_sim.encoding import NOP_WORD, encode, synonym
from upmem_sim.errors import AsmError
from upmem_sim.isa import Insn

FORMS = forms()
SAMPLES = 3


def test_every_form_comes_back_from_its_word() -> None:
    rng = Random(1)
    for name, make in FORMS:
        for _ in range(SAMPLES):
            insn = make(rng)
            word = encode(insn)
            assert 0 <= word < 1 << 48, name
            assert decode(word) == insn, name


def test_no_two_instructions_share_a_word() -> None:
    rng = Random(2)
    seen: dict[int, Insn] = {}
    for name, make in FORMS:
        for _ in range(SAMPLES):
            insn = make(rng)
            other = seen.setdefault(encode(insn), insn)
            assert other == insn, name


def test_synonyms_decode_to_the_same_instruction() -> None:
    rng, found = Random(4), 0
    for name, make in FORMS * SAMPLES:
        insn = make(rng)
        other = synonym(insn)
        if other is not None:
            found += 1
            assert other != encode(insn), name
            assert decode(other) == insn, name
    assert found > 10


def test_random_words_decode_to_what_encodes_to_them_or_not_at_all() -> None:
    rng = Random(3)
    decoded = 0
    for _ in range(20_000):
        word = rng.getrandbits(48)
        try:
            insn = decode(word)
        except AsmError:
            continue
        decoded += 1
        assert word in (encode(insn), synonym(insn))
    assert decoded > 2_000


@pytest.mark.parametrize(
    ("insn", "word"),
    [
        (Insn("nop"), 0x7C6300000000),
        # imm32 forms: major = operation, rc at 39, ra at 34, immediate nibbles reversed in place
        (Insn("add", ["r0", "r0", 0x12345678]), 0x0003_1287_6345),
        (Insn("add", ["r5", "r3", 1]), 5 << 39 | 3 << 34 | 3 << 32 | 1 << 20),
        (Insn("xor", ["r1", "zero", 0x10]), 4 << 44 | 1 << 39 | 24 << 34 | 3 << 32 | 1 << 16),
        # DMA: major 0x700, length at 24, low bits tell the direction
        (Insn("ldma", ["r2", "r9", 7]), 0x7000 << 32 | 2 << 34 | 1 << 17 | 1 << 32 | 7 << 24),
        (Insn("sdma", ["r2", "r9", 7]), 0x7000 << 32 | 2 << 34 | 1 << 17 | 1 << 32 | 7 << 24 | 2),
        # zero destination of a compare and jump: bits 42-45 are ones, imm[8:10] at 39
        (
            Insn("sub", ["zero", "r4", 0x2A5], "nz", 0x123),
            15 << 42 | 2 << 39 | 4 << 34 | 3 << 32 | 4 << 29 | 3 << 24 | 5 << 20 | 10 << 16 | 0x123,
        ),
    ],
)
def test_published_places(insn: Insn, word: int) -> None:
    assert encode(insn) == word


def test_nop_word_is_published() -> None:
    assert NOP_WORD == 0x7C6300000000
    assert decode(NOP_WORD) == Insn("nop")


@pytest.mark.parametrize("word", [-1, 1 << 48, (1 << 48) - 1, 15 << 44])
def test_words_that_are_no_instruction(word: int) -> None:
    with pytest.raises(AsmError, match="is not an instruction"):
        decode(word)
