"""Words of programs that UPMEM's SDK built, with their meaning as assembly text.

Source: the DPU programs in the dpu-kmeans 0.1.3 source distribution (PyPI): start-up code, printf,
memset, barrier, mutex, 32-bit multiply and divide, and two kernels.
"""

from __future__ import annotations

import pytest

from upmem_sim.asm import assemble
from upmem_sim.decoding import decode
from upmem_sim.disasm import format_insn
from upmem_sim.encoding import encode, synonym
from upmem_sim.isa import Insn
from upmem_sim.sugar import sugared

WORDS = [
    (0x029B00100000, "add r5, r6, 1"),
    (0x0C4000020000, "mul_ul_ul r0, r16, r1"),
    (0x0C8500C20000, "add r1, r1, r9"),
    (0x0CB500A80000, "mul_sh_ul r1, r13, r12"),
    (0x0CC480C00000, "sub r1, r17, r0"),
    (0x0D0800CA0000, "add r2, r2, r5"),
    (0x0D0A01C2003E, "add r2, r2, r17, true, 62"),
    (0x0D909BC604B1, "sub r3, r4, r3, gtu, 1201"),
    (0x1DB100AA0000, "mul_sh_ul r11, r12, r13"),
    (0x1DB500780000, "mul_sh_sh r11, r13, r12"),
    (0x1DB51E0800DA, "mul_ul_ul r11, r13, r12, small, 218"),
    (0x1E4920C80000, "addc r12, r18, r12"),
    (0x210700800000, "sub r2, 8, r1"),
    (0x2FDF01FF0003, "add r23, r23, -1, true, 3"),
    (0x3C009AC20061, "jleu r0, r1, 97"),
    (0x3C038380001C, "jneq r0, 8, 28"),
    (0x3C0B82000077, "jeq r2, 0, 119"),
    (0x3C1094CC0019, "jltu r4, r6, 25"),
    (0x3C1095C60023, "jgeu r4, r3, 35"),
    (0x3C1B9BEF000F, "jgtu r6, 254, 15"),
    (0x3C48B4CC00F3, "subc zero, r18, r6, ltu, 243"),
    (0x3C4C80CE0000, "sub zero, r19, r7"),
    (0x3C5F828C0006, "jeq r23, 200, 6"),
    (0x3C7382F00008, "jeq id, 15, 8"),
    (0x3C7383000006, "jneq id, 0, 6"),
    (0x53EBFFFFFFFF, "move.s d6, -1"),
    (0x606300810000, "move r0, 24"),
    (0x60E300000000, "move r1, 0"),
    (0x6BE3008C0000, "move r23, 200"),
    (0x700400000002, "sdma r1, r0, 0"),
    (0x700741300000, "lbs r0, r1, 3"),
    (0x700C1F000000, "ldma r3, r0, 31"),
    (0x706343806002, "lhs r0, zero, 9736"),
    (0x7063448E0000, "lw r0, zero, 232"),
    (0x70A743000000, "lhs r1, r9, 0"),
    (0x718B41CBA002, "lbs r3, r2, 9660"),
    (0x729340000000, "lbu r5, r4, 0"),
    (0x749B63EBFFFF, "lhs.s d8, r6, -66"),
    (0x7B7F46810000, "ld d22, id8, 24"),
    (0x7C0344000000, "sw r0, 0, 0"),
    (0x7C07400F000F, "sb r1, 0, -1"),
    (0x7C0B83000075, "acquire r2, 0, nz, 117"),
    (0x7C43800000A9, "release r16, 0, nz, 169"),
    (0x7C5F80000005, "release r23, 0, nz, 5"),
    (0x7C63808C0064, "release zero, 200, nz, 100"),
    (0x7CE046050000, "sd zero, 16, d2"),
    (0x7CE346000000, "sd zero, 16, 0"),
    (0x7D072300043B, "resume r1, 0, nz, 1083"),
    (0x7DC441C6A002, "sb r17, 9660, r3"),
    (0x7DE042400000, "sh zero, 52, r0"),
    (0x7DE1420C0000, "sh zero, 48, r14"),
    (0x7DF320100000, "boot id, 1"),
    (0x7E5A4781BFFF, "sd r22, -568, d16"),
    (0x7E6320200000, "fault 2"),
    (0x7E6320500000, "fault 5"),
    (0x7ED84382FFFF, "sh r22, -40, r1"),
    (0x7ED9470DBFFF, "sd r22, -560, d14"),
    (0x7EF320000000, "stop"),
    (0x7EF32100000A, "stop true, 10"),
    (0x7F6045800000, "sw zero, 232, r0"),
    (0x7F9547817FFF, "sd r5, -264, d8"),
    (0x800842010488, "mul_step d0, r2, d0, 0, z, 1160"),
    (0x800852F10488, "mul_step d0, r2, d0, 31, z, 1160"),
    (0x801060010000, "div_step d0, r4, d0, 0"),
    (0x801070F10000, "div_step d0, r4, d0, 31"),
    (0x8087524C004C, "lsr r1, r1, 20, z, 76"),
    (0x810820360000, "lsr_add r2, r3, r2, 3"),
    (0x8183A2300078, "and r3, r0, 3, z, 120"),
    (0x8187383004B2, "clz r3, r1, max, 1202"),
    (0x820330300000, "clz r4, r0"),
    (0x820FB10000CB, "move r4, r3, true, 203"),
    (0x828450880000, "lsl_add r5, r4, r1, 24"),
    (0x8287B0000000, "move r5, r1"),
    (0x828B402C0000, "lsr r5, r2, 2"),
    (0x836120050000, "movd d6, d10"),
    (0x8503B10000E2, "move r10, r0, true, 226"),
    (0x856220050000, "movd d10, d18"),
    (0x85AC510200DA, "lsl_add r11, r1, r11, 16, true, 218"),
    (0x88F3B0000000, "move r17, id"),
    (0x8BE300B00000, "call r23, 11"),
    (0x8C0F00FA2000, "jump r3, 1199"),
    (0x8C5F00000000, "jump r23"),
    (0x9003B0000000, "move.u d0, r0"),
    (0x9003B10004B0, "move.u d0, r0, true, 1200"),
    (0x97BFB0000000, "move.s d14, r15"),
]


@pytest.mark.parametrize(("word", "text"), WORDS, ids=[text for _, text in WORDS])
def test_word_of_the_sdk(word: int, text: str) -> None:
    assert format_insn(sugared(decode(word))) == text
    (insn,) = assemble(text, "word").sections[0].insns
    assert isinstance(insn, Insn)
    assert encode(insn) == word


def test_the_sdk_assembles_a_cleared_register_in_two_ways() -> None:
    for word in (0x60E300000000, 0x80E3B0000000):  # move r1, 0 and move r1, zero
        insn = decode(word)
        assert format_insn(sugared(insn)) == "move r1, 0"
        assert {encode(insn), synonym(insn)} == {0x60E300000000, 0x80E3B0000000}
