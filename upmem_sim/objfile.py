"""One assembled or translated unit, before linking: sections of instructions or bytes.

Produced by asm.py and the C translator, consumed by link.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from upmem_sim.isa import Insn, Label, Sym


@dataclass(slots=True)
class Section:
    """A piece of a unit that the linker keeps, drops and places as a whole.

    name    decides the region: .text*, .mram*, .atomic*, anything else is WRAM
    align   bytes, a power of two (ignored for text)
    insns   instructions and labels in order (text sections)
    data    bytes (all others)
    relocs  (offset in bytes, size in bytes 1/2/4/8, symbol) to be filled into data
    labels  label -> offset in bytes (data sections; text sections use Label items)
    nobits  no initial value; `size` bytes are reserved
    size    bytes reserved when nobits
    """

    name: str
    align: int = 1
    insns: list[Insn | Label] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    relocs: list[tuple[int, int, Sym]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    nobits: bool = False
    size: int = 0

    @property
    def is_text(self) -> bool:
        return self.name.startswith(".text")

    @property
    def bytes_used(self) -> int:
        return max(self.size, len(self.data))


@dataclass(slots=True)
class Unit:
    """A translation unit. Labels not in `globals` or `weak` are local to it.

    sizes    symbol -> size in bytes (`.size`)
    aliases  alias -> symbol it stands for (`.set a, b`)
    values   symbol -> absolute number (`.set n, 5`)
    """

    name: str
    sections: list[Section] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    weak: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
