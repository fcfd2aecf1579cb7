"""Sections, symbols and data of assembly text: everything but instructions.

`Directives` holds the unit being built; asm.py adds statements and instructions to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from upmem_sim.asmexpr import NAME, PLAIN, expression, integer, unescape
from upmem_sim.errors import AsmError
from upmem_sim.isa import Insn, Label, Sym
from upmem_sim.objfile import Section, Unit

_SECTION_LIMIT = 1 << 26  # bytes: the whole MRAM
_ALIGN_LIMIT = 1 << 16
STRING = r'"(?:\\.|[^"\\\n])*"'
_HERE = re.compile(r"(?<![\w.$])\.(?![\w.$])")
_LOCAL_REF = re.compile(r"(\d+)([bf])$")
_SKIPPED = (
    ".debug",
    ".note",
    ".comment",
    ".eh_frame",
    ".stack_sizes",
    ".riscv",
    ".llvm",
    ".symtab",
)
# without meaning for a program of one file per unit
IGNORED = {
    ".type", ".ident", ".addrsig", ".addrsig_sym", ".attribute", ".option", ".hidden",
    ".protected", ".internal", ".local", ".end", ".version", ".variant_cc",
}  # fmt: skip
INT_SIZES = {
    ".byte": 1, ".1byte": 1, ".short": 2, ".half": 2, ".hword": 2, ".2byte": 2, ".word": 4,
    ".long": 4, ".int": 4, ".4byte": 4, ".quad": 8, ".8byte": 8, ".dword": 8, ".xword": 8,
}  # fmt: skip


class Directives:
    """State of one assembly, and what directives do to it."""

    def __init__(self, name: str) -> None:
        self.unit = Unit(name)
        self.sections: dict[str, Section] = {}
        self.skipping = False
        self.section = self._open(".text", False)
        self.previous = self.section
        self.stack: list[Section] = []
        self.places: dict[str, tuple[int, int]] = {}
        self.numeric: dict[str, int] = {}
        self.files: dict[str, str] = {}
        self.line: tuple[str, int] | None = None
        self.lineno = 0
        self.here = 0
        # expressions that wait for later labels: (line, action)
        self.deferred: list[tuple[int, Callable[[], None]]] = []

    # ------------------------------------------------------------------ places and expressions

    def _open(self, name: str, nobits: bool) -> Section:
        section = self.sections.get(name)
        if section is None:
            nobits = nobits or name.startswith((".bss", ".sbss", ".mram.noinit"))
            section = self.sections[name] = Section(name, nobits=nobits)
            self.unit.sections.append(section)
        return section

    def _place(self) -> tuple[int, int]:
        section = self.section
        if section.is_text:
            return id(section), 8 * sum(isinstance(x, Insn) for x in section.insns)
        return id(section), section.bytes_used

    def _define(self, name: str) -> None:
        if name.isdigit():
            count = self.numeric[name] = self.numeric.get(name, 0) + 1
            name = f".Lnumeric{name}_{count}"
        if name == ".":
            raise AsmError("'.' cannot be a label")
        if name in self.places or name in self.unit.values or name in self.unit.aliases:
            raise AsmError(f"symbol {name} is already defined")
        self.places[name] = self._place() if not self.section.is_text else (id(self.section), -1)
        if self.section.is_text:
            self.section.insns.append(Label(name))
        else:
            self.section.labels[name] = self.section.bytes_used

    def _lookup(self, name: str) -> tuple[int, int] | int | None:
        value = self.unit.values.get(name)
        if value is not None:
            return value
        place = self.places.get(name)
        if place is not None and place[1] < 0:
            self._place_text_labels()
            place = self.places[name]
        return place

    def _place_text_labels(self) -> None:
        for section in self.unit.sections:
            index = 0
            for item in section.insns:
                if isinstance(item, Label):
                    self.places[item.name] = (id(section), 8 * index)
                else:
                    index += 1

    def _expression(self, text: str) -> int | Sym:
        local = _LOCAL_REF.match(text)
        if local:
            number, direction = local.groups()
            count = self.numeric.get(number, 0) + (direction == "f")
            return Sym(f".Lnumeric{number}_{count}")
        plain = PLAIN.match(text)
        if plain and plain.group(1) not in self.unit.values:
            name, sign, digits = plain.groups()
            return Sym(name, integer(digits) * (1 if sign == "+" else -1) if sign else 0)
        return expression(text, self._lookup)

    def _fix_here(self, text: str) -> str:
        """Replace `.` by a label at this place, so that the expression may be read later."""
        if not _HERE.search(text):
            return text
        self.here += 1
        name = f".Lhere{self.here}"
        self._define(name)
        return _HERE.sub(name, text)

    def _constant(self, text: str, what: str, low: int, high: int) -> int:
        value = self._expression(text.strip())
        if not isinstance(value, int):
            raise AsmError(f"{what} must be a number, not {value}")
        if not low <= value <= high:
            raise AsmError(f"{what} {value}, limit {low} to {high}")
        return value

    # ------------------------------------------------------------------ directives

    def _text(self, rest: str) -> None:
        self._section(".text" + rest if rest.startswith(".") else ".text")

    def _data(self, rest: str) -> None:
        self._section(".data")

    def _bss(self, rest: str) -> None:
        self._section(".bss,,@nobits")

    def _section(self, rest: str) -> None:
        parts = [p.strip() for p in rest.split(",")]
        name = parts[0].strip('"')
        if not name:
            raise AsmError(".section needs a name")
        self.previous = self.section
        self.skipping = name.startswith(_SKIPPED)
        if not self.skipping:
            self.section = self._open(name, any(p[1:] == "nobits" for p in parts[1:]))

    def _push_section(self, rest: str) -> None:
        self.stack.append(self.section)
        self._section(rest)

    def _pop_section(self, rest: str) -> None:
        if not self.stack:
            raise AsmError(".popsection without .pushsection")
        self.section, self.skipping = self.stack.pop(), False

    def _previous(self, rest: str) -> None:
        self.section, self.previous, self.skipping = self.previous, self.section, False

    def _globl(self, rest: str) -> None:
        self.unit.globals.update(n.strip() for n in rest.split(","))

    def _weak(self, rest: str) -> None:
        self.unit.weak.update(n.strip() for n in rest.split(","))

    def _size(self, rest: str) -> None:
        name, comma, text = rest.partition(",")
        if not comma:
            raise AsmError(".size needs a symbol and a size")
        text = self._fix_here(text.strip())

        def action() -> None:
            self.unit.sizes[name.strip()] = self._constant(text, ".size", 0, _SECTION_LIMIT)

        self.deferred.append((self.lineno, action))

    def _set(self, rest: str) -> None:
        name, comma, text = rest.partition(",")
        name = name.strip()
        if not comma or not re.fullmatch(NAME, name):
            raise AsmError(".set needs a name and a value")
        if name in self.places:
            raise AsmError(f"symbol {name} is already defined")
        value = self._expression(self._fix_here(text.strip()))
        if isinstance(value, int):
            self.unit.values[name] = value
        elif value.addend or value.name == name:
            raise AsmError(f".set {name}: {value} is neither a number nor another symbol")
        else:
            self.unit.aliases[name] = value.name

    def _common(self, rest: str) -> None:
        parts = [p.strip() for p in rest.split(",")]
        if len(parts) not in (2, 3) or not re.fullmatch(NAME, parts[0]):
            raise AsmError(".comm needs a name, a size and an alignment")
        size = self._constant(parts[1], ".comm size", 0, _SECTION_LIMIT)
        align = self._constant(parts[2], ".comm alignment", 1, _ALIGN_LIMIT) if parts[2:] else 8
        section = self._open(f".bss.{parts[0]}", True)
        section.align, section.size, section.labels = _power(align), size, {parts[0]: 0}
        self.places[parts[0]] = (id(section), 0)
        self.unit.weak.add(parts[0])
        self.unit.sizes[parts[0]] = size

    def _file(self, rest: str) -> None:
        number, *names = re.findall(rf"\d+|{STRING}", rest) or [""]
        names = [n[1:-1] for n in names if n.startswith('"')]
        if number.isdigit() and names:
            parts = names[:2] if len(names) > 1 and not names[1].startswith("/") else names[-1:]
            self.files[number] = "/".join(parts)

    def _loc(self, rest: str) -> None:
        words = rest.split()
        if len(words) < 2 or not words[1].isdigit():
            raise AsmError(".loc needs a file number and a line")
        if words[0] in self.files:
            self.line = (self.files[words[0]], integer(words[1]))

    def _append(self, data: bytes) -> None:
        section = self.section
        if section.is_text:
            raise AsmError(f"data in text section {section.name}")
        if section.bytes_used + len(data) > _SECTION_LIMIT:
            raise AsmError(f"section {section.name} exceeds {_SECTION_LIMIT} bytes")
        if section.nobits:
            if any(data):
                raise AsmError(f"section {section.name} holds no initial values")
            section.size += len(data)
        else:
            section.data += data

    def _integers(self, rest: str, size: int) -> None:
        for part in rest.split(","):
            text = self._fix_here(part.strip())
            section, at = self.section, self.section.bytes_used
            if not text:
                raise AsmError("a value is missing")
            self._append(bytes(size))
            try:
                self._fill(section, at, size, text)
            except AsmError:  # may name labels that follow
                self.deferred.append(
                    (self.lineno, lambda a=(section, at, size, text): self._fill(*a))  # type: ignore[misc]
                )

    def _fill(self, section: Section, at: int, size: int, text: str) -> None:
        value = self._expression(text)
        if isinstance(value, Sym):
            if section.nobits:
                raise AsmError(f"section {section.name} holds no initial values")
            section.relocs.append((at, size, value))
            return
        if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
            raise AsmError(f"value {value} does not fit {size} bytes")
        if section.nobits and value:
            raise AsmError(f"section {section.name} holds no initial values")
        if not section.nobits:
            section.data[at : at + size] = (value % (1 << (8 * size))).to_bytes(size, "little")

    def _zeros(self, rest: str) -> None:
        parts = rest.split(",")
        count = self._constant(parts[0], "size", 0, _SECTION_LIMIT)
        fill = self._constant(parts[1], "fill", -128, 255) if parts[1:] else 0
        if self.section.nobits and not fill:
            if self.section.size + count > _SECTION_LIMIT:
                raise AsmError(f"section {self.section.name} exceeds {_SECTION_LIMIT} bytes")
            self.section.size += count
        else:
            self._append(bytes([fill & 0xFF]) * count)

    def _fill_repeat(self, rest: str) -> None:
        parts = [*rest.split(","), "1", "0"][:3] if rest.count(",") < 2 else rest.split(",")
        repeat = self._constant(parts[0], ".fill count", 0, _SECTION_LIMIT)
        size = self._constant(parts[1], ".fill size", 0, 8)
        value = self._constant(parts[2], ".fill value", -(1 << 63), (1 << 64) - 1)
        if repeat * size > _SECTION_LIMIT:
            raise AsmError(f".fill of {repeat * size} bytes, limit {_SECTION_LIMIT}")
        self._append((value % (1 << (8 * size))).to_bytes(size, "little") * repeat)

    def _strings(self, rest: str, end: bytes) -> None:
        found = re.findall(STRING, rest)
        if not found or re.sub(STRING, "", rest).strip(" ,\t"):
            raise AsmError("a quoted string is needed")
        for quoted in found:
            self._append(unescape(quoted[1:-1]) + end)

    def _align(self, rest: str, exponent: bool) -> None:
        text = rest.split(",")[0]
        if exponent:
            align = 1 << self._constant(text, ".p2align", 0, 16)
        else:
            align = _power(self._constant(text, "alignment", 1, _ALIGN_LIMIT))
        if self.section.is_text or self.section.name.startswith(".atomic"):
            return  # an instruction index and a bit number have no alignment
        self.section.align = max(self.section.align, align)
        padding = -self.section.bytes_used % align
        self._append(bytes(padding))


def _power(value: int) -> int:
    if value & (value - 1):
        raise AsmError(f"alignment {value} is not a power of two")
    return value


SECTION_DIRECTIVES = {
    ".text",
    ".data",
    ".bss",
    ".section",
    ".pushsection",
    ".popsection",
    ".previous",
}
DIRECTIVES: dict[str, Callable[[Directives, str], None]] = {
    ".text": Directives._text,
    ".data": Directives._data,
    ".bss": Directives._bss,
    ".section": Directives._section,
    ".pushsection": Directives._push_section,
    ".popsection": Directives._pop_section,
    ".previous": Directives._previous,
    ".globl": Directives._globl,
    ".global": Directives._globl,
    ".weak": Directives._weak,
    ".size": Directives._size,
    ".set": Directives._set,
    ".equ": Directives._set,
    ".equiv": Directives._set,
    ".comm": Directives._common,
    ".lcomm": Directives._common,
    ".file": Directives._file,
    ".loc": Directives._loc,
    ".zero": Directives._zeros,
    ".space": Directives._zeros,
    ".skip": Directives._zeros,
    ".fill": Directives._fill_repeat,
    ".ascii": lambda a, rest: a._strings(rest, b""),
    ".asciz": lambda a, rest: a._strings(rest, b"\0"),
    ".string": lambda a, rest: a._strings(rest, b"\0"),
    ".p2align": lambda a, rest: a._align(rest, True),
    ".align": lambda a, rest: a._align(rest, False),
    ".balign": lambda a, rest: a._align(rest, False),
}
