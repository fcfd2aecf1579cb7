"""Assembly text in and out."""

from __future__ import annotations

from random import Random

import pytest
from forms import forms
from hypothesis import given, settings
from hypothesis import strategies as st

from upmem_sim.asm import assemble, format_insn
from upmem_sim.errors import AsmError
from upmem_sim.isa import Insn, Label, Sym
from upmem_sim.objfile import Section, Unit
from upmem_sim.sugar import canonical, sugared


def section(text: str, name: str = ".text") -> Section:
    return next(s for s in assemble(text, "t.s").sections if s.name == name)


def insns(text: str) -> list[Insn]:
    return [item for item in section(text).insns if isinstance(item, Insn)]


def test_every_form_comes_back_from_its_text() -> None:
    rng = Random(6)
    made = [make(rng) for _, make in forms()]
    assert insns("\n".join(map(format_insn, made))) == made


def test_every_form_comes_back_from_its_usual_spelling() -> None:
    rng = Random(7)
    made = [make(rng) for _, make in forms()]
    read = insns("\n".join(format_insn(sugared(i)) for i in made))
    assert [canonical(i) for i in read] == made


@pytest.mark.parametrize(
    ("text", "insn"),
    [
        ("add r0, r1, 5, nz, .Lx", Insn("add", ["r0", "r1", 5], "nz", Sym(".Lx"))),
        ("lw !big r0, r1, 0", Insn("lw", ["r0", "r1", 0], big=True)),
        ("lw !big, r0, r1, 0", Insn("lw", ["r0", "r1", 0], big=True)),
        ("lw r0, r1, 0, !big", Insn("lw", ["r0", "r1", 0], big=True)),
        ("lw !little r0, r1, 0", Insn("lw", ["r0", "r1", 0])),
        ("sw r2, x+8, r1", Insn("sw", ["r2", Sym("x", 8), "r1"])),
        ("ld d0, r22, -8", Insn("ld", ["d0", "r22", -8])),
        ("lw.s d0, r22, 0x10", Insn("lw.s", ["d0", "r22", 16])),
        ("move r0, 'A'", Insn("move", ["r0", 65])),
        ("move r0, (1<<4)|2", Insn("move", ["r0", 18])),
        ("jneq r0, 5, label", Insn("jneq", ["r0", 5], None, Sym("label"))),
        ("jz r0, .+2", Insn("jz", ["r0"], None, Sym(".", 2))),
        ("sub r0, r1, r2, neq, 4", Insn("sub", ["r0", "r1", "r2"], "neq", 4)),
        ("call r23, f", Insn("call", ["r23"], None, Sym("f"))),
        ("call r23, r5", Insn("call", ["r23", "r5"])),
        ("jump r23", Insn("jump", ["r23"])),
        ("jump r5, 2", Insn("jump", ["r5", 2])),
        ("jump label-1", Insn("jump", [], None, Sym("label", -1))),
        ("acquire r0, 0, nz, .", Insn("acquire", ["r0", 0], "nz", Sym("."))),
        ("acquire r0, 0, nz, @self", Insn("acquire", ["r0", 0], "nz", Sym("."))),
        ("stop true, label", Insn("stop", [], "true", Sym("label"))),
        ("stop", Insn("stop")),
        ("sb_id r0, 8", Insn("sb_id", ["r0", 8])),
        ("sb_id r0, 8, 3", Insn("sb_id", ["r0", 8, 3])),
        # names of conditions are symbols where an operand is expected
        ("move r0, c", Insn("move", ["r0", Sym("c")])),
        ("jeq r0, r1, z", Insn("jeq", ["r0", "r1"], None, Sym("z"))),
    ],
)
def test_syntax(text: str, insn: Insn) -> None:
    assert insns(text) == [insn]


def test_comments_labels_and_separators() -> None:
    text = """
    # a comment ; not a statement
    start: first: add r0, r1, r2 // after
        nop; nop /* over
        lines */ ; nop   # end
    1:  jump 1b
        jump 1f
    1:  nop
    """
    items = section(text).insns
    labels = [i.name for i in items if isinstance(i, Label)]
    assert labels == ["start", "first", ".Lnumeric1_1", ".Lnumeric1_2"]
    jumps = [i.target for i in items if isinstance(i, Insn) and i.op == "jump"]
    assert jumps == [Sym(".Lnumeric1_1"), Sym(".Lnumeric1_2")]
    assert sum(isinstance(i, Insn) for i in items) == 7


def test_data_directives() -> None:
    text = r"""
        .data
        .byte 1, -1, 'x'
        .p2align 2
    x:  .word y+4, end-x, 0x12345678
        .short 7
        .asciz "a\"b//;\n\101"
        .zero 3, 0xff
    end:
        .set alias, x
        .equ five, 5
        .byte five*2, (1+2)<<3, -five&0xf
        .size x, end-x
    """
    unit = assemble(text, "t.s")
    data = unit.sections[0]
    expected = b"\1\xffx\0" + bytes(4) + (24).to_bytes(4, "little") + b"\x78\x56\x34\x12"
    expected += b"\7\0" + b'a"b//;\nA\0' + b"\xff\xff\xff" + bytes([10, 24, 11])
    # three words, a short, nine characters and three bytes
    size = 12 + 2 + 9 + 3
    expected = expected[:8] + size.to_bytes(4, "little") + expected[12:]
    assert bytes(data.data) == expected
    assert data.relocs == [(4, 4, Sym("y", 4))]
    assert data.align == 4
    assert unit.aliases == {"alias": "x"}
    assert unit.values == {"five": 5}
    assert unit.sizes == {"x": size}


def test_sections_without_bytes() -> None:
    unit = assemble(".bss\nb: .zero 100\n .comm c, 64, 8\n .section .mram.noinit\nm: .zero 99", "t")
    sizes = {s.name: (s.nobits, s.size, len(s.data)) for s in unit.sections}
    assert sizes == {
        ".bss": (True, 100, 0),
        ".bss.c": (True, 64, 0),
        ".mram.noinit": (True, 99, 0),
    }


CLANG_OUTPUT = """
	.text
	.file	"task.c"
	.section	.text.main,"ax",@progbits
	.globl	main                            // -- Begin function main
	.type	main,@function
main:                                   // @main
.Lfunc_begin0:
	.file	1 "/src" "task.c"
	.loc	1 12 0                          // task.c:12:0
	.cfi_sections .debug_frame
	.cfi_startproc
// %bb.0:
	sd r22, 24, d22
	add r22, r22, 32
	.cfi_def_cfa_offset -32
	//APP
	acquire r0, 0, nz, .
	//NO_APP
.Ltmp0:
	.loc	1 14 9 prologue_end
	lw r0, zero, n
	jleu r0, r3, .LBB0_2
.LBB0_1:                                // =>This Inner Loop Header: Depth=1
	lsl_add r2, r1, r3, 2
	add r3, r3, 1
	jneq r3, r0, .LBB0_1
.LBB0_2:
	ld d22, r22, -8
	jump r23
.Lfunc_end0:
	.size	main, .Lfunc_end0-main
	.cfi_endproc
                                        // -- End function
	.type	n,@object                       // @n
	.section	.dpu_host,"aw",@progbits
	.globl	n
	.p2align	3
n:
	.long	0                               // 0x0
	.size	n, 4

	.section	.stack_sizes,"o",@progbits,.text.main,unique,0
	.long	.Lfunc_begin0
	.byte	32
	.section	.debug_str,"MS",@progbits,1
.Linfo_string0:
	.asciz	"clang version 12.0.0"
	.section	.debug_line,"",@progbits
.Lline_table_start0:
	.ident	"clang version 12.0.0"
	.section	".note.GNU-stack","",@progbits
	.addrsig
"""


def test_output_of_the_sdk_compiler() -> None:
    unit = assemble(CLANG_OUTPUT, "task.s")
    assert [s.name for s in unit.sections] == [".text.main", ".dpu_host"]
    assert unit.globals == {"main", "n"}
    assert unit.sizes == {"main": 10 * 8, "n": 4}
    code = [i for i in unit.sections[0].insns if isinstance(i, Insn)]
    assert code[0].line == ("/src/task.c", 12)
    assert code[-1].line == ("/src/task.c", 14)
    assert unit.sections[1].align == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n add r0, r1", "t.s:3: add: takes 3 operands, 2 given"),
        ("frob r0", "t.s:1: unknown instruction 'frob'"),
        ("lw r0, r1, 1<<23", "t.s:1: lw: offset 8388608, limit -8388608 to 8388607"),
        ("add r0, r1, r2, huh", "huh is not a condition"),
        ("add r0, r1, r2, nz, r3", "target must be a label or a number, not r3"),
        ("add r0, r1, r2, nz, x, y", "6 operands, at most 5"),
        ("jump", "needs a target"),
        ("jleu r0, id, x", "jleu (that is sub zero, r0, id): sub: operand 3 must be r0-r23"),
        ("add r0,, r2", "operand is missing"),
        ("add r0, r1, 5 5", "cannot read expression"),
        ("add r0, r1, (5", "expression ends early"),
        (f"add r0, r1, {'(' * 100}5", "nested deeper than 40"),
        ("add r0, r1, 1/0", "division by zero"),
        ("add r0, r1, 1<<99", "shift by 99 in an expression, limit 63"),
        ("add r0, r1, x-y", "neither a number nor a symbol plus a number"),
        (".data\nx: .byte 256", "t.s:2: value 256 does not fit 1 bytes"),
        (".data\n add r0, r1, r2", "t.s:2: instruction add in data section .data"),
        (".text\n .word 5", "data in text section .text"),
        (".bss\n .word 5", "holds no initial values"),
        (".data\n .zero 1<<40", "size 1099511627776, limit 0 to 67108864"),
        (".data\n .zero 1<<26\n .byte 0", "t.s:3: section .data exceeds 67108864 bytes"),
        (".p2align 99", ".p2align 99, limit 0 to 16"),
        (".balign 3", "alignment 3 is not a power of two"),
        ("x: nop\nx: nop", "t.s:2: symbol x is already defined"),
        (".frobnicate 5", "unknown directive .frobnicate"),
        (".data\n .ascii hello", "a quoted string is needed"),
        (".popsection", ".popsection without .pushsection"),
        (".data\n .word later-sooner\nsooner:", "neither a number nor a symbol"),
        (".set x, y+4", "is neither a number nor another symbol"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(AsmError) as caught:
        assemble(text, "t.s")
    assert message in str(caught.value)
    assert str(caught.value).startswith("t.s:")
    assert "\n" not in str(caught.value)


WORDS = (
    "add lw sd !big r0 d2 zero 5 -1 0x nz true , : .L1 ( ) << + - .word .zero .section .text .data"
    " .p2align .set .asciz \" \\ ' // /* */ # ; \n \t = . .+1 1b 2f x .size .comm .loc 99999999"
    " jneq call jump acquire move .s .u @ .fill .file .previous .bss"
)
PIECES = st.sampled_from(WORDS.split(" "))


def outcome(text: str) -> Unit | str:
    try:
        return assemble(text, "t.s")
    except AsmError as error:
        return str(error)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=30), st.booleans())
def test_any_text_assembles_or_is_refused_in_one_line(pieces: list[str], spaced: bool) -> None:
    result = outcome((" " if spaced else "").join(pieces))
    assert isinstance(result, Unit) or "\n" not in result


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_text_assembles_or_is_refused_in_one_line(data: st.DataObject) -> None:
    text = CLANG_OUTPUT
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 20))
        text = text[:at] + data.draw(st.text(max_size=5)) + text[at + cut :]
    result = outcome(text)
    assert isinstance(result, Unit) or "\n" not in result
