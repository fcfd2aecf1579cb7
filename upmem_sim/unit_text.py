"""A unit before linking -> assembly text that assembles to the same unit, C lines included."""

from __future__ import annotations

from collections.abc import Iterator

from upmem_sim.disasm import format_insn
from upmem_sim.isa import Insn, Label
from upmem_sim.objfile import Section, Unit

__all__ = ["unit_text"]

_WORDS = {1: ".byte", 2: ".half", 4: ".word", 8: ".quad"}
_ROW = 16  # bytes on a line


class _Lines:
    """C places as `.file` and `.loc`, each where it changes."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.last: tuple[str, int] | None = None

    def at(self, place: tuple[str, int] | None) -> Iterator[str]:
        if place is None or place == self.last:
            return
        self.last = place
        file, line = place
        if file not in self.files:
            self.files[file] = len(self.files) + 1
            yield f'\t.file {self.files[file]} "{file}"'
        yield f"\t.loc {self.files[file]} {line} 0"


def _code(section: Section, lines: _Lines) -> Iterator[str]:
    for item in section.insns:
        if isinstance(item, Label):
            yield f"{item.name}:"
        elif isinstance(item, Insn):
            yield from lines.at(item.line)
            yield f"\t{format_insn(item)}"


def _data(section: Section) -> Iterator[str]:
    """Bytes, cut at labels and relocations."""
    relocs = {at: (size, sym) for at, size, sym in section.relocs}
    labels: dict[int, list[str]] = {}
    for name, at in section.labels.items():
        labels.setdefault(at, []).append(name)
    end = section.bytes_used
    cuts = sorted({*relocs, *labels, end})
    at = 0
    while True:
        for name in labels.get(at, ()):
            yield f"{name}:"
        if at >= end:
            return
        if at in relocs:
            size, sym = relocs[at]
            yield f"\t{_WORDS[size]} {sym}"
            at += size
            continue
        stop = next(cut for cut in cuts if cut > at)
        part = section.data[at:stop]
        if section.nobits or not any(part):
            yield f"\t.zero {stop - at}"
        else:
            for row in range(0, len(part), _ROW):
                yield "\t.byte " + ", ".join(str(b) for b in part[row : row + _ROW])
        at = stop


def unit_text(unit: Unit) -> str:
    """Assembly text of a unit."""
    out: list[str] = []
    lines = _Lines()
    for name in sorted(unit.globals):
        out.append(f"\t.globl {name}")
    for name in sorted(unit.weak):
        out.append(f"\t.weak {name}")
    for section in unit.sections:
        if section.is_text:
            out.append(f"\t.section {section.name}")
            out += _code(section, lines)
            continue
        empty = section.nobits or section.name.startswith(".mram.noinit")
        kind = ",,@nobits" if empty else ""
        out.append(f"\t.section {section.name}{kind}")
        if section.align > 1:
            out.append(f"\t.balign {section.align}")
        out += _data(section)
    out += [f"\t.size {name}, {size}" for name, size in sorted(unit.sizes.items())]
    out += [f"\t.set {name}, {value}" for name, value in sorted(unit.values.items())]
    out += [f"\t.set {name}, {other}" for name, other in sorted(unit.aliases.items())]
    return "\n".join(out) + "\n"
