"""One C unit: from RV32 assembly text to a `Unit` of DPU instructions, pass by pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from upmem_sim.cc import hypothetical, rv32
from upmem_sim.cc.carry import form_carries
from upmem_sim.cc.counted import run_pointers
from upmem_sim.cc.dead import remove_dead, remove_unreachable
from upmem_sim.cc.flow import (
    Node,
    analyse,
    argument_mask,
    connect,
    joined,
    liveness,
    split_blocks,
)
from upmem_sim.cc.fold import fold
from upmem_sim.cc.frame import pair_saves
from upmem_sim.cc.inline_asm import translate_statement
from upmem_sim.cc.ir_text import Signature
from upmem_sim.cc.jumps import fuse, straighten
from upmem_sim.cc.merge import merge_shifts
from upmem_sim.cc.pairs import join_words
from upmem_sim.cc.rename import rename_temporaries
from upmem_sim.cc.translate import TABLE, Item, translate
from upmem_sim.isa import Insn, Label, Sym
from upmem_sim.objfile import Section, Unit

_TABLE = TABLE | hypothetical.TABLE


def build_unit(text: str, name: str, signatures: Mapping[str, Signature]) -> Unit:
    """Translate the assembly text of one C unit. Errors: CompileError."""
    assembly = rv32.parse(text)
    unit = Unit(name)
    unit.globals, unit.weak = assembly.globals, assembly.weak
    unit.aliases, unit.sizes, unit.values = assembly.aliases, assembly.sizes, assembly.values
    in_data = {sym.name for section in assembly.data for _, _, sym in section.relocs}
    for source in assembly.texts:
        section = Section(source.name)
        for function in _functions(source.lines):
            section.insns += _translate_function(function, in_data, signatures)
        if section.insns:
            unit.sections.append(section)
    unit.sections += [s for s in assembly.data if s.bytes_used or s.labels]
    return unit


def _functions(lines: list[rv32.Line]) -> Iterator[list[rv32.Line]]:
    """Pieces of a text section that start at a label other than a local one."""
    start, seen_code = 0, False
    for i, line in enumerate(lines):
        if line.kind != "label":
            seen_code = seen_code or line.kind != "end"
        elif not line.op.startswith(".L") and seen_code:
            yield lines[start:i]
            start, seen_code = i, False
    yield lines[start:]


def _translate_function(
    lines: list[rv32.Line], in_data: set[str], signatures: Mapping[str, Signature]
) -> list[Insn | Label]:
    items: list[Item] = []
    statement: list[rv32.Line] = []
    for line in lines:
        if line.kind in ("asm", "asm_label"):
            statement.append(line)
        elif line.kind == "end":
            items += translate_statement(statement) if statement else []
            statement = []
        elif line.kind == "label":
            items.append(Label(line.op))
        else:
            items += translate(line, _TABLE)
    if not items:
        return []
    name = items[0].name if isinstance(items[0], Label) else ""
    _apply_signatures(items, signatures, signatures.get(name))
    return optimise(items, in_data)


def _apply_signatures(
    items: list[Item], signatures: Mapping[str, Signature], own: Signature | None
) -> None:
    """Tell calls and returns which registers they really read."""
    for item in items:
        if not isinstance(item, Node) or item.op not in ("call", "jump") or item.fixed:
            continue
        words = None
        if item.args == ["r23"] and item.op == "jump":
            words = own.results if own else None
        elif isinstance(item.target, str) and (callee := signatures.get(item.target)):
            words = callee.arguments
        if words is not None:
            item.reads = argument_mask(words)
            analyse(item)


def optimise(items: list[Item], in_data: set[str]) -> list[Insn | Label]:
    """All passes over one function. `in_data`: symbols whose addresses are in data sections."""
    taken, referenced = set(in_data), set(in_data)
    for item in items:
        if isinstance(item, Node):
            taken.update(a.name for a in item.args if isinstance(a, Sym))
            if isinstance(item.target, str):
                referenced.add(item.target)
    referenced |= taken
    items = [
        item
        for item in items
        if isinstance(item, Node) or not item.name.startswith(".L") or item.name in referenced
    ]
    labels = {item.name for item in items if isinstance(item, Label)}
    address_taken = frozenset(taken & labels)
    blocks = remove_unreachable(split_blocks(items), address_taken)
    connect(blocks, address_taken)
    liveness(blocks)
    form_carries(blocks)
    fold(blocks, address_taken)
    remove_dead(blocks, address_taken)
    merge_shifts(blocks)
    for change in (run_pointers, rename_temporaries):
        if change(blocks):
            connect(blocks, address_taken)
            liveness(blocks)
            fold(blocks, address_taken)
            remove_dead(blocks, address_taken)
    pair_saves(blocks)
    fuse(blocks)
    join_words(blocks)
    straighten(blocks)
    blocks = remove_unreachable(blocks, address_taken)
    return joined(blocks)
