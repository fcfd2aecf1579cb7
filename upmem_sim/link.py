"""Units -> Program: drop what nothing refers to, place the rest, fill in addresses.

Section collection starts at the entry and at `__host`/`__mram`/`__keep` variables; places are those
of layout.py. Code symbols count instructions, also in addends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from upmem_sim.encoding import encode_row
from upmem_sim.errors import AsmError, LinkError
from upmem_sim.isa import ROW, Insn, Label, Sym
from upmem_sim.layout import (
    MAX_TASKLETS,
    STACK_TABLE,
    WRAM_ORDER,
    Piece,
    file_section,
    linker_section,
    linker_symbols,
    output_section,
    place,
)
from upmem_sim.objfile import Section, Unit
from upmem_sim.program import ATOMIC_BASE, IRAM_BASE, IRAM_INSN_BYTES, MRAM_BASE, Program, Symbol
from upmem_sim.rows import RowTuple, to_row

ENTRY = ("__bootstrap", "main")
SYS_END = "__sys_end"

_KEPT = (".dpu_host", ".mram", ".data.__sys_keep")

# What a name stands for: a place in a piece, a number, or a name that the linker defines.
_Definition = tuple[Piece, int] | int | str


def _measure(section: Section) -> tuple[dict[str, int], int]:
    """Labels of a section and its length: instructions for text, bytes for data."""
    if not section.is_text:
        return section.labels, section.bytes_used
    labels, index = {}, 0
    for item in section.insns:
        if isinstance(item, Label):
            labels[item.name] = index
        else:
            index += 1
    return labels, index


def _references(section: Section) -> Iterable[str]:
    for item in section.insns:
        if isinstance(item, Insn):
            target = item.target
            if isinstance(target, Sym):
                yield target.name
            elif isinstance(target, str):
                yield target
            for arg in item.args:
                if isinstance(arg, Sym):
                    yield arg.name
    for _, _, symbol in section.relocs:
        yield symbol.name


def _use(unit: Unit, name: str) -> str:
    """The C line that uses a symbol first, or the unit where no line is known."""
    for section in unit.sections:
        for item in section.insns:
            if isinstance(item, Insn) and item.line and name in _names(item):
                file, line = item.line
                own = os.path.abspath(unit.name) == os.path.abspath(file)
                return f"{unit.name if own else file}:{line}"
    return unit.name


def _names(insn: Insn) -> set[str]:
    parts = (*insn.args, insn.target)
    return {part.name if isinstance(part, Sym) else str(part) for part in parts}


@dataclass(slots=True)
class _Linker:
    units: Sequence[Unit]
    tasklets: int
    stacks: list[int]
    scopes: list[dict[str, _Definition]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    exported: dict[str, tuple[int, bool]] = field(default_factory=dict)  # name -> unit, weak
    values: dict[str, int] = field(default_factory=dict)  # names the linker defines
    needs_table: bool = False

    # -------------------------------------------------------------------------------- names

    def collect_names(self) -> None:
        for number, unit in enumerate(self.units):
            scope: dict[str, _Definition] = dict(unit.values)
            for section in unit.sections:
                labels, length = _measure(section)
                piece = Piece(number, section, output_section(section.name), labels, length)
                self.pieces.append(piece)
                for name, offset in labels.items():
                    if name in scope:
                        raise LinkError(f"{unit.name}: symbol {name} is defined twice")
                    scope[name] = (piece, offset)
            self.scopes.append(scope)
            for name in unit.globals | unit.weak:
                if name in scope or name in unit.aliases:
                    self._export(name, number, name in unit.weak)

    def _export(self, name: str, number: int, weak: bool) -> None:
        known = self.exported.get(name)
        if known is not None and not weak and not known[1]:
            first, second = self.units[known[0]].name, self.units[number].name
            raise LinkError(f"symbol {name} is defined in {first} and in {second}")
        if known is None or (known[1] and not weak):
            self.exported[name] = (number, weak)

    def define(self, number: int, name: str) -> _Definition:
        """What `name` stands for in unit `number`."""
        scope, unit = self.scopes[number], self.units[number]
        # a weak symbol of the unit itself gives way to a strong one elsewhere
        home = self.exported.get(name, (number,))[0] if name in unit.weak else number
        if name in scope and home == number:
            return scope[name]
        found = self._define_elsewhere(number, name)
        if name not in scope:
            scope[name] = found
        return found

    def _define_elsewhere(self, number: int, name: str) -> _Definition:
        unit, seen = self.units[number], {name}
        while name in unit.aliases and self.exported.get(name, (number,))[0] == number:
            name = unit.aliases[name]
            if name in seen:
                raise LinkError(f"{unit.name}: symbol {name} is an alias of itself")
            seen.add(name)
            if name in self.scopes[number]:
                return self.scopes[number][name]
        if name in self.values:
            return name
        home = self.exported.get(name)
        if home is not None:
            if home[0] == number:
                return self.scopes[number][name]
            return self.define(home[0], name)
        if name in unit.weak:
            return 0
        raise LinkError(f"undefined symbol {name}, used in {_use(unit, name)}")

    # -------------------------------------------------------------------------------- collection

    def collect_pieces(self) -> list[Piece]:
        """Pieces that are reached from the entry or must stay; the entry's piece comes first."""
        entry = next((n for n in ENTRY if n in self.exported), None)
        if entry is None:
            raise LinkError(f"no entry: none of {', '.join(ENTRY)} is defined and global")
        first = self.define(self.exported[entry][0], entry)
        if not isinstance(first, tuple) or not first[0].section.is_text or first[1]:
            raise LinkError(f"entry {entry} is not at the start of a text section")
        kept = {id(first[0])}
        todo = [first[0]]
        for piece in self.pieces:
            if piece.section.name.startswith(_KEPT) and id(piece) not in kept:
                kept.add(id(piece))
                todo.append(piece)
        while todo:
            piece = todo.pop()
            for name in dict.fromkeys(_references(piece.section)):
                if name == ".":
                    continue
                found = self.define(piece.unit, name)
                if found == STACK_TABLE and not self.needs_table:
                    self.needs_table = True
                    if SYS_END not in self.exported:
                        raise LinkError(f"undefined symbol {SYS_END}, used in the stack table")
                    found = self.define(self.exported[SYS_END][0], SYS_END)
                if isinstance(found, tuple) and id(found[0]) not in kept:
                    kept.add(id(found[0]))
                    todo.append(found[0])
        rest = [p for p in self.pieces if id(p) in kept and p is not first[0]]
        return [first[0], *rest]

    # -------------------------------------------------------------------------------- values

    def value(self, number: int, name: str) -> int:
        """Number that code and data see: instruction index or address."""
        found = self.define(number, name)
        if isinstance(found, tuple):
            return found[0].at + found[1]
        return self.values[found] if isinstance(found, str) else found

    def resolver(self, number: int) -> Callable[[Sym], int]:
        known: dict[str, int] = {}

        def resolve(symbol: Sym) -> int:
            value = known.get(symbol.name)
            if value is None:
                value = known[symbol.name] = self.value(number, symbol.name)
            return value + symbol.addend

        return resolve


def _emit_text(
    linker: _Linker, pieces: list[Piece]
) -> tuple[list[RowTuple], list[tuple[str, int] | None]]:
    rows: list[RowTuple] = []
    lines: list[tuple[str, int] | None] = []
    for piece in pieces:
        if piece.output != ".text":
            continue
        resolve, pc = linker.resolver(piece.unit), piece.at
        for item in piece.section.insns:
            if isinstance(item, Label):
                continue
            try:
                rows.append(to_row(item, resolve, pc))
            except AsmError as error:
                name = linker.units[piece.unit].name
                where = f"{item.line[0]}:{item.line[1]}" if item.line else name
                raise LinkError(f"{where}: {error} (in {piece.section.name})") from None
            lines.append(item.line)
            pc += 1
    return rows, lines


def _emit_data(
    linker: _Linker, pieces: list[Piece], outputs: Iterable[str], base: int, image: bytearray
) -> None:
    wanted = set(outputs)
    for piece in pieces:
        if piece.output not in wanted or piece.section.nobits:
            continue
        at = piece.at - base
        image[at : at + len(piece.section.data)] = piece.section.data
        resolve = linker.resolver(piece.unit)
        for offset, size, symbol in piece.section.relocs:
            value, bits = resolve(symbol), 8 * size
            if value & 0xFFFF_FF00 == ATOMIC_BASE:  # locks are kept as bit numbers
                value &= (1 << bits) - 1
            if not -(1 << (bits - 1)) <= value < 1 << bits:
                unit = linker.units[piece.unit].name
                raise LinkError(f"{unit}: value {value} of {symbol} does not fit {size} bytes")
            raw = (value & ((1 << bits) - 1)).to_bytes(size, "little")
            image[at + offset : at + offset + size] = raw


def _label_sizes(end: int, labels: dict[str, int]) -> dict[str, int]:
    """Distance from each label to the next or the end, for symbols without `.size`."""
    places = sorted({*labels.values(), end})
    after = dict(pairwise(places))
    return {name: after.get(at, at) - at for name, at in labels.items()}


def _symbols(linker: _Linker, pieces: list[Piece]) -> dict[str, Symbol]:
    out: dict[str, Symbol] = {}
    for piece in pieces:
        unit, text = linker.units[piece.unit], piece.output == ".text"
        labels = {name: at for name, at in piece.labels.items() if not name.startswith(".L")}
        sizes = _label_sizes(piece.length, labels)
        for name, offset in labels.items():
            place = piece.at + offset
            address = IRAM_BASE + IRAM_INSN_BYTES * place if text else place
            size = unit.sizes.get(name, sizes[name] * (IRAM_INSN_BYTES if text else 1))
            home = linker.exported.get(name)
            if name not in out or (home is not None and home[0] == piece.unit):
                out[name] = Symbol(name, address, size, file_section(piece.output))
    for number, unit in enumerate(linker.units):
        for name, other in unit.aliases.items():
            if linker.exported.get(name, (-1,))[0] == number and other in out:
                out[name] = Symbol(name, out[other].address, out[other].size, out[other].section)
    for name, value in linker.values.items():
        if name != STACK_TABLE or linker.needs_table:
            size = 8 * linker.tasklets if name == STACK_TABLE else 0
            out.setdefault(name, Symbol(name, value, size, linker_section(name)))
    return out


def _stack_table(linker: _Linker, image: bytearray) -> None:
    """{__sys_end, end of the stack} per tasklet: one `ld d22` gives r22 = stack, r23 = return."""
    if not linker.needs_table:
        return
    at = linker.values[STACK_TABLE]
    end = linker.value(linker.exported[SYS_END][0], SYS_END)
    for tasklet, size in enumerate(linker.stacks):
        top = linker.values[f"__sys_stack_thread_{tasklet}"] + size
        image[at : at + 8] = end.to_bytes(4, "little") + top.to_bytes(4, "little")
        at += 8


def _check_arguments(nr_tasklets: int, stack_bytes: int | Sequence[int]) -> list[int]:
    if not 1 <= nr_tasklets <= MAX_TASKLETS:
        raise LinkError(f"NR_TASKLETS: {nr_tasklets}, limit 1 to {MAX_TASKLETS}")
    stacks = [stack_bytes] * nr_tasklets if isinstance(stack_bytes, int) else list(stack_bytes)
    if len(stacks) < nr_tasklets:
        raise LinkError(f"stack sizes: {len(stacks)} given for {nr_tasklets} tasklets")
    for tasklet, size in enumerate(stacks[:nr_tasklets]):
        if size <= 0 or size % 8:
            raise LinkError(
                f"stack of tasklet {tasklet}: {size} bytes, must be positive and a multiple of 8"
            )
    return stacks[:nr_tasklets]


def link(
    units: Sequence[Unit], *, nr_tasklets: int = 1, stack_bytes: int | Sequence[int] = 1024
) -> Program:
    """Link units into a program.

    nr_tasklets  tasklets that start, 1 to 24
    stack_bytes  stack of every tasklet, or one size per tasklet; multiples of 8
    Errors: LinkError for undefined or duplicate symbols, a missing entry, and for IRAM, WRAM,
    MRAM or atomic bits that do not suffice (needed, limit, by how much).
    """
    stacks = _check_arguments(nr_tasklets, stack_bytes)
    linker = _Linker(units, nr_tasklets, stacks)
    linker.values = linker_symbols(nr_tasklets, stacks)
    linker.collect_names()
    pieces = linker.collect_pieces()
    extent = place(pieces, linker.values, stacks, linker.needs_table)
    rows, lines = _emit_text(linker, pieces)
    wram = bytearray(extent.wram_end)
    _emit_data(linker, pieces, (name for name, _ in WRAM_ORDER), 0, wram)
    _stack_table(linker, wram)
    mram = bytearray(extent.mram_end - extent.mram_start)
    _emit_data(linker, pieces, (".mram",), MRAM_BASE + extent.mram_start, mram)
    return Program(
        words=np.fromiter(map(encode_row, rows), np.uint64, len(rows)),
        rows=np.array(rows, ROW),
        wram=bytes(wram),
        mram=bytes(mram),
        symbols=_symbols(linker, pieces),
        nr_tasklets=nr_tasklets,
        lines=lines,
        mram_start=extent.mram_start,
    )
