"""The tables, and the engine rows made from them."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from forms import forms
from upmem_sim._core import Code

import upmem_sim
from upmem_sim.errors import AsmError
from upmem_sim.isa import (
    CONDITIONS,
    JUMP,
    JUMP_CLASSES,
    JUMP_CODES,
    OPERATIONS,
    OPS,
    RIR,
    ROW,
    SET,
    SIGNED,
    USE_IMM,
    Insn,
    Sym,
)
from upmem_sim.rows import to_row
from upmem_sim.sugar import canonical, sugared

ISA_DEF = Path(upmem_sim.__file__).parent / "core" / "isa.def"


def row(insn: Insn, value: int = 0, pc: int = 0) -> dict[str, int]:
    numbers = to_row(insn, lambda symbol: value + symbol.addend, pc)
    return dict(zip(ROW.names or (), numbers, strict=True)) | {"op": OPS[numbers[0]]}  # type: ignore[dict-item]


def test_operations_are_those_of_the_engine() -> None:
    assert set(OPERATIONS) == set(OPS)
    assert ROW.itemsize == 16


def test_condition_classes_are_those_of_the_engine() -> None:
    """isa.def lists the classes of each condition; here each class lists its conditions."""
    classes = {"add": "ADD", "sub": "SUB", "log": "LOG", "shift": "SHIFT", "mul": "MUL"}
    classes |= {"count": "COUNT", "shadd": "SHADD", "step": "STEP", "div": "DIV", "true": "TIME"}
    classes |= {"acquire": "ACQUIRE", "release": "RELEASE", "move2": "MOVE"}
    found = re.findall(r"^CONDITION\((\w+), ([A-Z|]+),", ISA_DEF.read_text(), re.MULTILINE)
    assert len(found) == len(CONDITIONS)
    for ours, theirs in classes.items():
        assert {name for name, of in found if theirs in of.split("|")} == set(JUMP_CLASSES[ours])


def test_codes_are_unique_within_a_class() -> None:
    for names in JUMP_CLASSES.values():
        assert len({JUMP_CODES[name] for name in names}) == len(names)


def test_every_form_is_a_row_the_engine_accepts() -> None:
    rng = Random(4)
    rows = [to_row(make(rng), lambda symbol: 0) for _, make in forms()]
    assert len(rows) > 5000
    Code(np.array(rows[:4000], ROW).tobytes())
    Code(np.array(rows[4000:], ROW).tobytes())


@pytest.mark.parametrize(
    ("insn", "expected"),
    [
        (Insn("add", ["r3", "id", "r5"]), {"op": "add", "rd": 3, "ra": 28, "rb": 5, "flags": 0}),
        (Insn("sub", ["r1", 7, "r2"]), {"ra": 2, "rb": USE_IMM, "imm": 7, "flags": RIR}),
        (Insn("and", ["r1", "r2", "r3"], "nz"), {"flags": SET, "cc": 3}),
        (Insn("add", ["r1", "r2", -1], "nz", 9), {"flags": JUMP, "target": 9, "imm": -1}),
        (Insn("or", ["r0", "zero", 0xFFFFFFFF]), {"imm": -1}),
        (Insn("lsl_add", ["r0", "r1", "r2", 3]), {"rd": 0, "rb": 1, "ra": 2, "off": 3}),
        (Insn("mul_step", ["d2", "r5", "d4", 31]), {"rd": 2, "ra": 5, "rb": 4, "off": 31}),
        (Insn("sw", ["r2", 8, "r1"]), {"ra": 2, "off": 8, "rb": 1}),
        (Insn("sh", ["r2", -8, 0xFFFE]), {"off": -8, "rb": USE_IMM, "imm": -2}),
        (Insn("ldma", ["r0", "r1", 255]), {"ra": 0, "rb": 1, "off": 255}),
        (Insn("time_cfg", ["r1", "r2"]), {"rd": 1, "rb": 2}),
        # sugar
        (Insn("move", ["r0", "r9"]), {"op": "or", "ra": 9, "imm": 0}),
        (Insn("move.s", ["d4", -3]), {"op": "and", "ra": 26, "imm": -3, "flags": SIGNED}),
        (Insn("neg", ["r0", "r9"]), {"op": "sub", "ra": 9, "imm": 0, "flags": RIR}),
        (Insn("not", ["r0", "r9"]), {"op": "xor", "ra": 9, "imm": -1}),
        (Insn("jneq", ["r0", 5], None, 77), {"op": "sub", "rd": 24, "imm": 5, "target": 77}),
        (Insn("jz", ["r0"], None, 77), {"op": "sub", "rd": 24, "imm": 0, "target": 77, "cc": 2}),
        (Insn("call", ["r23"], None, 300), {"rd": 23, "ra": 24, "imm": 300, "target": 300}),
        (Insn("jump", ["r23"]), {"op": "call", "rd": 24, "ra": 23, "imm": 0, "target": 0}),
        (Insn("bkp"), {"op": "fault", "imm": 0}),
        (Insn("add", ["r0", "r1", "r2"], "false", 5), {"flags": 0, "target": 0}),
    ],
)
def test_rows(insn: Insn, expected: dict[str, int]) -> None:
    assert row(insn).items() >= expected.items()


def test_symbols_and_own_place() -> None:
    assert row(Insn("move", ["r0", Sym("x", 4)]), value=100)["imm"] == 104
    assert row(Insn("acquire", ["r0", 0], "nz", Sym(".")), pc=7)["target"] == 7
    assert row(Insn("release", ["r0", 0], "nz", Sym(".", 1)), pc=7)["target"] == 8
    # an atomic bit's link address lies in its own region; the instruction holds the bit number
    lock = Insn("acquire", ["zero", Sym("lock")], "nz", Sym("."))
    assert row(lock, value=0xF00000C9)["imm"] == 0xC9


@pytest.mark.parametrize(
    ("insn", "message"),
    [
        (Insn("foo"), "unknown instruction 'foo'"),
        (Insn("ld.s", ["d0", "r0", 0]), "unknown instruction 'ld.s'"),
        (Insn("add", ["r0", "r1"]), "takes 3 operands, 2 given"),
        (Insn("add", ["r0", "r1", "id"]), "operand 3 must be r0-r23, not id|general"),
        (Insn("add", ["r24", "r1", "r2"]), "operand 1 must be r0-r23, not r24"),
        (Insn("ld", ["d1", "r1", 0]), "operand 1 must be an even pair d0-d22, not d1"),
        (Insn("add", ["r0", "r1", 128], "nz", 0), "immediate 128, limit -128 to 127"),
        (Insn("add", ["r0", "r1", 1 << 32]), "immediate 4294967296, limit"),
        (Insn("sub", ["r0", "r1", 1 << 23]), "immediate 8388608, limit -8388608 to 8388607"),
        (Insn("jeq", ["r0", 1024], None, 0), "immediate 1024, limit -1024 to 1023"),
        (Insn("and", ["zero", "r0", 2048], "z", 0), "immediate 2048, limit -2048 to 2047"),
        (Insn("lsl", ["r0", "r1", 32]), "shift 32, limit 0 to 31"),
        (Insn("sw", ["r0", 2048, 1]), "offset 2048, limit -2048 to 2047"),
        (Insn("sw", ["r0", 0, 1 << 15]), "immediate 32768, limit -32768 to 32767"),
        (Insn("ldma", ["r0", "r1", 256]), "length field 256, limit 0 to 255"),
        (Insn("add", ["r0", "r1", "r2"], "ltu", 1), "condition ltu in a jump form"),
        (Insn("add", ["r0", "r1", "r2"], "mi"), "condition mi in a set form, allowed: z nz"),
        (Insn("sub", ["r0", 1, "r2"], "ltu"), "no set form"),
        (Insn("lsl", ["r0", "r1", 3], "sh32", 1), "condition sh32"),
        (Insn("movd", ["d0", "d2"], "z", 1), "condition z"),
        (Insn("add", ["r0", "r1", "r2"], None, 1), "a jump target needs a condition"),
        (Insn("add", ["r0", "r1", "r2"], "nz", 1 << 16), "target 65536, limit 0 to 65535"),
        (Insn("add", ["r0", "r1", "r2"], big=True), "!big is for loads and stores"),
        (Insn("lw", ["r0", "r1", "r2"]), "1 operands must be numbers, 0 are"),
        (Insn("sb_id", ["r0", "r1", 5]), "2 operands must be numbers, 1 are"),
        (Insn("acquire", ["r0", 0]), "needs a condition and a target"),
        (Insn("call", ["r23"]), "needs a target"),
    ],
)
def test_what_does_not_exist_is_refused(insn: Insn, message: str) -> None:
    with pytest.raises(AsmError, match=message) as caught:
        row(insn)
    assert "\n" not in str(caught.value)


def test_sugar_both_ways() -> None:
    rng = Random(5)
    spelled = 0
    for name, make in forms():
        insn = make(rng)
        usual = sugared(insn)
        spelled += usual is not insn
        assert canonical(usual) == insn, name
    assert spelled > 100
