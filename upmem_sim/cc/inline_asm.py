"""Inline assembly: DPU instructions whose operands clang printed with RV32 register names.

Each statement is assembled as SDK syntax after its registers are renamed. 64-bit operands are
marked (asm_operands.py) and become dN everywhere, others where the instruction takes a pair.
"""

from __future__ import annotations

import re

from upmem_sim.asm import assemble
from upmem_sim.cc.asm_operands import MARK
from upmem_sim.cc.compare64 import MNEMONIC, comparison
from upmem_sim.cc.flow import Node, analyse
from upmem_sim.cc.rv32 import Line, Place, constant
from upmem_sim.cc.translate import READ_ONLY, REGISTERS, Item, fresh_label, pair, signed
from upmem_sim.errors import AsmError, CompileError
from upmem_sim.isa import OPERATIONS, UNIT_OF, Insn, Label, Sym, split_mnemonic

_PAIR_POSITIONS: dict[str, tuple[int, ...]] = {"step": (0, 2), "movd": (0, 1)}
_DPU_REGISTER = re.compile(r"[rd]\d+$")


def translate_statement(lines: list[Line]) -> list[Item]:
    """Nodes and labels of one asm statement.

    Errors: CompileError with the C place when the text is not DPU assembly.
    """
    place = next((line.place for line in lines if line.place), None)
    if len(lines) == 1 and lines[0].op.startswith(MNEMONIC) and len(lines[0].operands) == 5:
        return _comparison(lines[0])
    text = "\n".join(_renamed(line) for line in lines)
    try:
        unit = assemble(text, "inline assembly")
    except AsmError as error:
        raise CompileError(_at(place, f"{error}")) from None
    items = [item for section in unit.sections for item in section.insns]
    if len(unit.sections) > 1:
        raise CompileError(_at(place, "inline assembly may not change the section"))
    return _nodes(items, place)


def _comparison(line: Line) -> list[Item]:
    operands = [REGISTERS[o] if o in REGISTERS else signed(int(o)) for o in line.operands]
    nodes = comparison(line.op.removeprefix(MNEMONIC), operands)
    for node in nodes:
        node.line = line.place
    return [*nodes]


def _at(place: Place, message: str) -> str:
    return f"{place[0]}:{place[1]}: error: {message}" if place else message


def _renamed(line: Line) -> str:
    if line.kind == "asm_label":
        return f"{line.op}:"
    base, suffix = split_mnemonic(line.op)
    row = OPERATIONS.get(base)
    pairs: tuple[int, ...] = _PAIR_POSITIONS.get(row.fmt, ()) if row else ()
    if suffix or base == "ld":
        pairs = (0,)
    elif base == "sd":
        pairs = (2,)
    endian = line.operands[:1] if line.operands and line.operands[0].startswith("!") else []
    given = line.operands[len(endian) :]
    operands = [_operand(line, text, i in pairs) for i, text in enumerate(given)]
    return f"{line.op} {', '.join([*endian, *operands])}"


def _operand(line: Line, text: str, is_pair: bool) -> str:
    if text.startswith(MARK) and text[len(MARK) :] in REGISTERS:
        return pair(text[len(MARK) :])
    if text.startswith(MARK) and constant(text[len(MARK) :]) is not None:
        return text[len(MARK) :]
    if text in REGISTERS:
        return pair(text) if is_pair and text != "zero" else REGISTERS[text]
    if _DPU_REGISTER.match(text):
        message = f"inline assembly names the register {text}: pass it as an operand"
        raise CompileError(_at(line.place, message))
    return text


def _nodes(items: list[Insn | Label], place: Place) -> list[Item]:
    """Labels get names of their own; targets relative to the instruction become labels."""
    names = {item.name: fresh_label() for item in items if isinstance(item, Label)}
    insns = [item for item in items if isinstance(item, Insn)]
    relative: dict[int, str] = {}
    for i, insn in enumerate(insns):
        if isinstance(insn.target, Sym) and insn.target.name == ".":
            j = i + insn.target.addend
            if not 0 <= j <= len(insns):
                raise CompileError(_at(place, f"inline assembly: target .{j - i:+d} is outside"))
            insn.target = relative.setdefault(j, fresh_label())
        elif isinstance(insn.target, Sym) and not insn.target.addend:
            insn.target = names.get(insn.target.name, insn.target.name)
    out: list[Item] = []
    index = 0
    for item in items:
        if isinstance(item, Label):
            out.append(Label(names[item.name]))
            continue
        if index in relative:
            out.append(Label(relative[index]))
        out.append(_node(item, place, alone=len(items) == 1))
        index += 1
    if index in relative:
        out.append(Label(relative[index]))
    return out


def _node(insn: Insn, place: Place, alone: bool) -> Node:
    fixed = not (alone and _is_plain(insn))
    node = Node(insn.op, insn.args, insn.cc, insn.target, insn.big, place, fixed)
    return analyse(node)


def _is_plain(insn: Insn) -> bool:
    """Reads of the tasklet number, byte products, hypothetical units: values like any other."""
    if insn.cc or insn.target is not None:
        return False
    if insn.op == "move":
        return insn.args[1] in READ_ONLY
    return insn.op in UNIT_OF or (insn.op.startswith("mul_") and insn.op != "mul_step")
