"""RV32 text -> DPU instructions: every mnemonic computes what RV32 says, and the folds fire."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from upmem_sim.asm import format_insn
from upmem_sim.cc import library
from upmem_sim.cc.ir_text import Signature
from upmem_sim.cc.translate import TABLE
from upmem_sim.cc.unit import build_unit
from upmem_sim.dpu import Dpu
from upmem_sim.errors import CompileError
from upmem_sim.isa import Insn
from upmem_sim.link import link

M = 0xFFFFFFFF


def s(x: int) -> int:
    return x - (1 << 32) if x >> 31 & 1 else x


def rol(a: int, n: int) -> int:
    n &= 31
    return (a << n | a >> (32 - n)) & M


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "xnor": lambda a, b: ~(a ^ b),
    "andn": lambda a, b: a & ~b,
    "orn": lambda a, b: a | ~b,
    "sll": lambda a, b: a << (b & 31),
    "srl": lambda a, b: a >> (b & 31),
    "sra": lambda a, b: s(a) >> (b & 31),
    "rol": rol,
    "ror": lambda a, b: rol(a, -b),
    "slt": lambda a, b: s(a) < s(b),
    "sltu": lambda a, b: a < b,
    "sgt": lambda a, b: s(a) > s(b),
    "sgtu": lambda a, b: a > b,
    "min": lambda a, b: min(a, b, key=s),
    "max": lambda a, b: max(a, b, key=s),
    "minu": min,
    "maxu": max,
    "sh1add": lambda a, b: (a << 1) + b,
    "sh2add": lambda a, b: (a << 2) + b,
    "sh3add": lambda a, b: (a << 3) + b,
}
UNARY: dict[str, Callable[[int], int]] = {
    "mv": lambda a: a,
    "neg": lambda a: -a,
    "not": lambda a: ~a,
    "seqz": lambda a: a == 0,
    "snez": lambda a: a != 0,
    "sltz": lambda a: s(a) < 0,
    "sgtz": lambda a: s(a) > 0,
    "sext.b": lambda a: (a & 255 ^ 128) - 128,
    "sext.h": lambda a: (a & 65535 ^ 32768) - 32768,
    "zext.b": lambda a: a & 255,
    "zext.h": lambda a: a & 65535,
    "clz": lambda a: 32 - a.bit_length(),
    "ctz": lambda a: (a & -a).bit_length() - 1 if a else 32,
    "cpop": lambda a: a.bit_count(),
    "rev8": lambda a: int.from_bytes(a.to_bytes(4, "little"), "big"),
    "orc.b": lambda a: sum(255 << i for i in (0, 8, 16, 24) if a >> i & 255),
}
IMMEDIATE: dict[str, tuple[Callable[[int, int], int], tuple[int, ...]]] = {
    "addi": (lambda a, k: a + k, (0, 1, -1, 7, 2047, -2048)),
    "andi": (lambda a, k: a & k, (0, 1, 255, -1, 2047, -256)),
    "ori": (lambda a, k: a | k, (0, 1, 255, -1, -2048)),
    "xori": (lambda a, k: a ^ k, (0, 1, -1, 2047)),
    "slli": (lambda a, k: a << k, (0, 1, 13, 31)),
    "srli": (lambda a, k: a >> k, (0, 1, 13, 31)),
    "srai": (lambda a, k: s(a) >> k, (0, 1, 13, 31)),
    "rori": (lambda a, k: rol(a, -k), (0, 1, 13, 31)),
    "slti": (lambda a, k: s(a) < k, (0, 1, -1, 2047, -2048)),
    "sltiu": (lambda a, k: a < k & M, (0, 1, -1, 2047, -2048)),
}
BRANCHES: dict[str, Callable[[int, int], bool]] = {
    "beq": lambda a, b: a == b,
    "bne": lambda a, b: a != b,
    "blt": lambda a, b: s(a) < s(b),
    "bge": lambda a, b: s(a) >= s(b),
    "bltu": lambda a, b: a < b,
    "bgeu": lambda a, b: a >= b,
    "bgt": lambda a, b: s(a) > s(b),
    "ble": lambda a, b: s(a) <= s(b),
    "bgtu": lambda a, b: a > b,
    "bleu": lambda a, b: a <= b,
}
SPECIAL = [0, 1, 2, M, M - 1, 1 << 31, (1 << 31) - 1, 0xFF, 0x80, 0x8000, 0xFFFF, 0x01000100]


SHAPES = ("a3 a1 a2", "a1 a1 a2", "a2 a1 a2", "a3 a1 a1", "a1 a1 a1", "a3 a1 zero", "a3 zero a2",
          "a1 zero a1", "a1 a1 zero", "a3 zero zero")  # fmt: skip


def cases() -> list[tuple[str, Callable[[int, int], int]]]:
    """(RV32 lines that compute a3 from a1 and a2, what it must be)."""
    out: list[tuple[str, Callable[[int, int], int]]] = []

    def source(name: str, a: int, b: int) -> int:
        return {"a1": a, "a2": b, "zero": 0}[name]

    for op, f in BINARY.items():
        for shape in SHAPES:
            d, x, y = shape.split()
            text = f"{op} {d}, {x}, {y}\nmv a3, {d}"
            out.append((text, lambda a, b, f=f, x=x, y=y: f(source(x, a, b), source(y, a, b))))
    for op, g in UNARY.items():
        for d in ("a3", "a1"):
            out.append((f"{op} {d}, a1\nmv a3, {d}", lambda a, b, g=g: g(a)))
    for op, (f, constants) in IMMEDIATE.items():
        for k in constants:
            out.append((f"{op} a3, a1, {k}", lambda a, b, f=f, k=k: f(a, k)))
    for op, f in BRANCHES.items():
        for x, y in (("a1", "a2"), ("a1", "zero"), ("zero", "a2"), ("a1", "a1")):
            label = f".Lt{len(out)}"
            text = f"li a3, 1\n{op} {x}, {y}, {label}\nli a3, 0\n{label}:"
            out.append((text, lambda a, b, f=f, x=x, y=y: f(source(x, a, b), source(y, a, b))))
    return out


def run_rv32(lines: str, words: np.ndarray, results: int) -> np.ndarray:
    """Run `main` of RV32 text; reads `inputs`, returns `results` words of `outputs`."""
    text = f"""
    .section .text.main
    .globl main
    .type main,@function
main:
{lines}
    ret
    .section .dpu_host
    .globl inputs
    .globl outputs
    .p2align 3
inputs: .zero {max(8, words.size * 4)}
    .size inputs, {max(8, words.size * 4)}
outputs: .zero {results * 4}
    .size outputs, {results * 4}
"""
    unit = build_unit(text, "test", {})
    dpu = Dpu(link([unit, *library.select([unit])]))
    dpu.write("inputs", words.astype(np.uint32))
    dpu.run()
    return dpu.read("outputs", np.uint32, results)


@pytest.mark.parametrize("part", range(4))
def test_every_instruction_computes_what_rv32_says(part: int) -> None:
    rng = np.random.default_rng(part)
    chosen = cases()[part::4]
    pairs = []
    lines = ["lui s0, %hi(inputs)", "addi s0, s0, %lo(inputs)"]
    lines += ["lui s1, %hi(outputs)", "addi s1, s1, %lo(outputs)"]
    for i, (text, _) in enumerate(chosen):
        a, b = (int(rng.choice(SPECIAL)) if rng.random() < 0.5 else int(rng.integers(0, M + 1))
                for _ in range(2))  # fmt: skip
        pairs.append((a, b))
        lines += [f"lw a1, {8 * i}(s0)", f"lw a2, {8 * i + 4}(s0)", text, f"sw a3, {4 * i}(s1)"]
    found = run_rv32("\n".join(lines), np.array(pairs), len(chosen))
    for (text, f), (a, b), value in zip(chosen, pairs, found.tolist(), strict=True):
        assert value == f(a, b) & M, (text, hex(a), hex(b))


def test_the_table_has_no_untested_arithmetic() -> None:
    tested = {*BINARY, *UNARY, *IMMEDIATE, *BRANCHES}
    control = {"j", "tail", "call", "ret", "jr", "jalr", "nop", "fence", "unimp", "ebreak", "li",
               "la", "lla", "lui"}  # fmt: skip
    memory = {"lw", "lb", "lbu", "lh", "lhu", "ld", "sb", "sh", "sw", "sd"}
    zero_branches = {"beqz", "bnez", "bltz", "bgez", "blez", "bgtz"}
    assert set(TABLE) == tested | control | memory | zero_branches


SIGNATURES = {"f": Signature(8, 2), "g": Signature(0, 0)}


def dpu_text(rv32: str) -> list[str]:
    """DPU instructions of an RV32 function body, as text."""
    unit = build_unit(f"\t.text\n\t.type f,@function\nf:\n{rv32}\n", "test", SIGNATURES)
    return [format_insn(i) for i in unit.sections[0].insns if isinstance(i, Insn)]


@pytest.mark.parametrize(
    ("rv32", "expected"),
    [
        # constants and addresses
        ("lui a0, 16\naddi a0, a0, 5\nret", ["move r1, 65541", "jump r23"]),
        ("lui a0, %hi(x+8)\nlw a0, %lo(x+8)(a0)\nret", ["lw r1, zero, x+8", "jump r23"]),
        ("lui a1, %hi(x)\nsh2add a0, a0, a1\nlw a0, %lo(x)(a0)\nret",
         ["move r0, x", "lsl_add r1, r0, r1, 2", "lw r1, r1, 0", "jump r23"]),
        ("li a2, 100000\nand a0, a0, a2\nret", ["and r1, r1, 100000", "jump r23"]),
        ("addi a5, a0, 2047\nsw a1, 1(a5)\nlw a0, 5(a5)\nret",
         ["sw r1, 2048, r0", "lw r1, r1, 2052", "jump r23"]),
        ("addi a2, a0, 5\naddi a0, a0, 2047\nlw a3, 0(a0)\nlw a4, 0(a2)\nadd a0, a3, a4\nret",
         ["add r1, r1, 2047", "lw r2, r1, 0", "lw r5, r1, -2042", "add r1, r2, r5", "jump r23"]),
        # shift-add
        ("slli a1, a1, 7\nadd a0, a0, a1\nli a1, 0\nret",
         ["lsl_add r1, r1, r0, 7", "move r0, 0", "jump r23"]),
        ("slli a1, a1, 7\nsub a0, a0, a1\nli a1, 0\nret",
         ["lsl_sub r1, r1, r0, 7", "move r0, 0", "jump r23"]),
        ("slli a2, a1, 27\nsrli a0, a0, 5\nor a0, a0, a2\nsrai a1, a1, 5\nret",
         ["lsr r1, r1, 5", "lsl_add r1, r1, r0, 27", "asr r0, r0, 5", "jump r23"]),
        # 64 bits
        ("add a1, a1, a3\nadd a0, a0, a2\nsltu a2, a0, a2\nadd a1, a1, a2\nret",
         ["add r1, r1, r3", "addc r0, r0, r2", "jump r23"]),
        ("sltu a4, a0, a2\nsub a1, a1, a3\nsub a1, a1, a4\nsub a0, a0, a2\nret",
         ["sub r1, r1, r3", "subc r0, r0, r2", "jump r23"]),
        ("seqz a2, a0\nsub a1, a1, a2\naddi a0, a0, -1\nret",
         ["add r1, r1, -1", "addc r0, r0, -1", "jump r23"]),
        ("xor a0, a0, a2\nxor a1, a1, a3\nor a0, a0, a1\nbnez a0, .L1\ncall g\n.L1:\n"
         "li a0, 0\nli a1, 0\nret",
         ["sub zero, r1, r3", "subc zero, r0, r2, xnz, .L1", "call r23, g", "move.u d0, 0",
          "jump r23"]),
        ("#APP\ncompare64.lts a0, a0, a1, a2, a3\n#NO_APP\nret",
         ["sub zero, r1, r3", "subc r1, r0, r2, lts", "jump r23"]),
        ("#APP\ncompare64.xgtu a0, a0, zero, 7, 0\n#NO_APP\nbeqz a0, .L1\ncall g\n.L1:\n"
         "li a0, 0\nret",
         ["sub zero, r1, 7", "subc zero, zero, 0, xleu, .L1", "call r23, g", "move r1, 0",
          "jump r23"]),
        ("#APP\ncompare64.ltu a0, zero, a1, 7, 0\n#NO_APP\nret",
         ["move r1, 7", "sub zero, zero, r1", "subc r1, r0, 0, ltu", "jump r23"]),
        # pairs
        ("mv a0, a2\nmv a1, a3\nret", ["movd d0, d2", "jump r23"]),
        ("mv a0, a3\nmv a1, a2\nret", ["swapd d0, d2", "jump r23"]),
        ("li a0, -9\nli a1, -1\nret", ["move.s d0, -9", "jump r23"]),
        ("mv a0, a2\nli a1, 0\nret", ["move.u d0, r3", "jump r23"]),
        ("lh a0, 0(a0)\nsrai a1, a0, 31\nret", ["lhs.s d0, r1, 0", "jump r23"]),
        ("lhu a0, 0(a0)\nli a1, 0\nret", ["lhu.u d0, r1, 0", "jump r23"]),
        ("lw a4, 0(a4)\nsrai a6, a4, 31\nadd a0, a0, a4\nsltu a4, a0, a4\nadd a1, a1, a6\n"
         "add a1, a1, a4\nret",
         ["lw.s d2, r5, 0", "add r1, r1, r3", "addc r0, r0, r2", "jump r23"]),
        ("mv a2, a0\nlbu a0, 0(a4)\nadd a0, a0, a2\nsltu a3, a0, a2\nadd a1, a1, a3\nret",
         ["lbu r2, r5, 0", "add r1, r2, r1", "addc r0, r0, 0", "jump r23"]),
        ("snez a2, a0\nadd a1, a1, a2\nneg a1, a1\nneg a0, a0\nret",
         ["sub r1, 0, r1", "subc r0, 0, r0", "jump r23"]),
        # jumps
        ("addi a0, a0, -1\nbnez a0, .L1\ncall g\n.L1:\nret",
         ["add r1, r1, -1, nz, .L1", "call r23, g", "jump r23"]),
        ("li a2, 1000\nblt a2, a0, .L1\ncall g\n.L1:\nret",
         ["jgts r1, 1000, .L1", "call r23, g", "jump r23"]),
        ("srli a1, a0, 3\nbeqz a1, .L1\ncall g\n.L1:\nli a1, 0\nret",
         ["lsr zero, r1, 3, z, .L1", "call r23, g", "move r0, 0", "jump r23"]),
        ("beqz a0, .L1\nj .L2\n.L1:\ncall g\n.L2:\nret",
         ["jneq r1, 0, .L2", "call r23, g", "jump r23"]),
    ],
)  # fmt: skip
def test_instructions_become_their_shortest_form(rv32: str, expected: list[str]) -> None:
    assert dpu_text(rv32) == expected


@pytest.mark.parametrize(
    ("rv32", "kept"),
    [
        ("mv a0, a3\nmv a1, a0\nret", "move r0, r2"),  # the second reads the first
        ("li a0, 9\nli a1, -1\nret", "move r0, -1"),  # no extended number
        ("lw a0, 0(a0)\nsw a1, 0(a4)\nsrai a1, a0, 31\nret", "lw r1, r1, 0"),  # a store between
        # the comparison's result is read again
        ("#APP\ncompare64.lts a0, a0, a1, a2, a3\n#NO_APP\nbeqz a0, .L1\ncall g\n.L1:\nret",
         "subc r1, r0, r2, lts"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_pair_or_a_jump_stays(rv32: str, kept: str) -> None:
    assert kept in dpu_text(rv32)


@pytest.mark.parametrize(
    "rv32",
    [
        # the first addend is gone when the carry is asked for
        "add a0, a0, a2\nmv a2, a4\nsltu a2, a0, a2\nadd a1, a1, a2\nret",
        # the comparison is of another sum
        "add a0, a0, a2\nsltu a4, a0, a3\nadd a1, a1, a4\nret",
        # the carry is wanted itself
        "add a0, a0, a2\nsltu a4, a0, a2\nadd a1, a1, a4\nmv s0, a4\nret",
    ],
)
def test_what_only_looks_like_a_carry_stays(rv32: str) -> None:
    assert not any(line.startswith("addc") for line in dpu_text(rv32))


def test_a_counting_loop_that_stores_keeps_its_index() -> None:
    loop = "li a4, 0\n.L1:\nsh2add a5, a4, a0\nlw a6, 0(a5)\nadd a6, a6, a1\nsw a6, 0(a5)\n"
    lines = dpu_text(loop + "addi a4, a4, 1\nbne a4, a2, .L1\nli a0, 0\nli a1, 0\nret")
    assert lines[1:7] == ["lsl_add r4, r1, r5, 2", "lw r7, r4, 0", "add r7, r7, r0",
                          "sw r4, 0, r7", "add r5, r5, 1", "jneq r5, r3, .L1"]  # fmt: skip


def test_a_counting_loop_that_only_reads_runs_a_pointer() -> None:
    loop = "li a4, 0\nli a3, 0\n.L1:\nsh2add a5, a4, a0\nlw a5, 0(a5)\nadd a3, a3, a5\n"
    lines = dpu_text(loop + "addi a4, a4, 1\nbne a4, a2, .L1\nmv a0, a3\nli a1, 0\nret")
    assert [line.split()[0] for line in lines[2:6]] == ["lw", "add", "add", "add"]
    assert lines[5].endswith("-1, nz, .L1")


@pytest.mark.parametrize(
    "rv32",
    ["div a0, a0, a1", "add a0, a0, s8", "lw a0, foo", "csrr a0, cycle", "add a0",
     "addi a0, a0, %x(y)", "#APP\nmove a0, r5\n#NO_APP",
     "#APP\nfrobnicate a0\n#NO_APP", "#APP\ncompare64.lts a0\n#NO_APP", "#APP\njump .+9\n#NO_APP"],
)  # fmt: skip
def test_what_cannot_be_translated_is_an_error(rv32: str) -> None:
    with pytest.raises(CompileError):
        dpu_text(rv32 + "\nret")
