"""Programs -> ELF files: 32-bit, little endian, sections as the SDK's linker names and places them.

Code stands at 0x80000000 with 8 bytes an instruction (48 bits count), WRAM at 0, MRAM at
0x08000000, atomic bits at 0xF0000000; symbols have sizes and sections, NR_TASKLETS is absolute.
Two sections are ours, and a reader may do without: a note with the version of the encoding (see
encoding.py) and a checksum of the file, and a table of C lines.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from upmem_sim.layout import ATOMIC_BITS, RESERVED_SECTIONS
from upmem_sim.program import ATOMIC_BASE, IRAM_BASE, MRAM_BASE, Program

EM_DPU = 245  # of UPMEM's LLVM; not a registered number
_FLAGS = 0x2800000  # as UPMEM's linker writes, meaning unknown; nothing here reads it
NOTE_SECTION = ".note.upmem_sim"
LINES_SECTION = ".upmem_sim.lines"
ENCODING_VERSION = 2
ABSOLUTE = "*ABS*"
SECTION = struct.Struct("<IIIIIIIIII")
SYMBOL = struct.Struct("<IIIBBH")
NO_LINE = (1 << 32) - 1
ALLOC = 2
_NOTE_NAME = b"upmem_sim\0\0\0"
_NOTE_TYPE = 1
_SHN_ABS = 0xFFF1
_SHT = {"progbits": 1, "symtab": 2, "strtab": 3, "note": 7, "nobits": 8}
_WRITE, _EXEC = 1, 4
_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SEGMENT = struct.Struct("<IIIIIIII")
_OTHER_MEMORIES = (".text", ".mram", ".mram.noinit", ".atomic")
_NOT_LOADED = (".atomic", *RESERVED_SECTIONS)


@dataclass(slots=True)
class _Out:
    """A section to write; `size` counts for sections without bytes."""

    name: str
    kind: str
    data: bytes = b""
    address: int = 0
    flags: int = 0
    align: int = 1
    size: int = 0
    link: int = 0
    info: int = 0
    entsize: int = 0


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self.known = {"": 0}

    def add(self, text: str) -> int:
        at = self.known.get(text)
        if at is None:
            at = self.known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return at


def _wram_sections(program: Program) -> list[_Out]:
    """WRAM cut at the first symbol of each section; those for stacks and the like have no bytes."""
    end = len(program.wram)
    starts: dict[str, int] = {}
    for symbol in program.symbols.values():
        if symbol.section != ABSOLUTE and symbol.section not in _OTHER_MEMORIES:
            first = starts.get(symbol.section, symbol.address)
            starts[symbol.section] = min(first, symbol.address)
    cuts = sorted((at, name) for name, at in starts.items() if name not in RESERVED_SECTIONS)
    out = []
    for i, (at, name) in enumerate(cuts or [(0, ".data")]):
        begin = min(at, end) if i else 0
        until = min(cuts[i + 1][0], end) if i + 1 < len(cuts) else end
        data = program.wram[begin:until]
        out.append(_Out(name, "progbits", data, at if i else 0, ALLOC | _WRITE, 1))
    reserved = [(starts[name], name) for name in RESERVED_SECTIONS if name in starts]
    for i, (at, name) in enumerate(reserved):
        size = reserved[i + 1][0] - at if i + 1 < len(reserved) else 0
        out.append(_Out(name, "nobits", b"", at, ALLOC, 1, size))
    return out


def _sections(program: Program) -> list[_Out]:
    code = program.words.astype("<u8").tobytes()
    out = [_Out(".text", "progbits", code, IRAM_BASE, ALLOC | _EXEC, 8)]
    out += _wram_sections(program)
    data = ALLOC | _WRITE
    noinit = _Out(".mram.noinit", "nobits", b"", MRAM_BASE, data, 8, program.mram_start)
    out.append(noinit)
    out.append(_Out(".mram", "progbits", program.mram, MRAM_BASE + program.mram_start, data, 8))
    out.append(_Out(".atomic", "nobits", b"", ATOMIC_BASE, data, 1, ATOMIC_BITS))
    return out


def _line_table(program: Program) -> bytes:
    """Count, then a file number and a line for each instruction, then the file names."""
    files: dict[str, int] = {}
    entries = bytearray()
    for line in program.lines:
        number = files.setdefault(line[0], len(files)) if line else NO_LINE
        entries += struct.pack("<II", number, line[1] if line else 0)
    names = b"".join(name.encode() + b"\0" for name in files)
    return struct.pack("<I", len(program.lines)) + bytes(entries) + names


def _symbol_table(program: Program, sections: list[_Out], strings: _Strings) -> bytes:
    index = {section.name: i + 1 for i, section in enumerate(sections)}
    out = bytearray(SYMBOL.size)
    for symbol in program.symbols.values():
        shndx = _SHN_ABS if symbol.section == ABSOLUTE else index[symbol.section]
        kind = 2 if symbol.section == ".text" else 0 if symbol.section == ABSOLUTE else 1
        name = strings.add(symbol.name)
        address = symbol.address & 0xFFFF_FFFF
        out += SYMBOL.pack(name, address, symbol.size, 1 << 4 | kind, 0, shndx)
    return bytes(out)


def make_note(checksum: int) -> bytes:
    desc = struct.pack("<II", ENCODING_VERSION, checksum)
    return struct.pack("<III", len(_NOTE_NAME), len(desc), _NOTE_TYPE) + _NOTE_NAME + desc


CHECKSUM_AT = len(make_note(0)) - 4  # inside the note section, which comes right after the header


def write_elf(program: Program) -> bytes:
    """The ELF file of a program, as bytes."""
    loaded = _sections(program)
    names, strings = _Strings(), _Strings()
    symbols = _symbol_table(program, loaded, strings)
    sections = [*loaded, _Out(NOTE_SECTION, "note", make_note(0), align=4)]
    sections.append(_Out(LINES_SECTION, "progbits", _line_table(program), align=4))
    link = len(sections) + 2
    symtab = _Out(".symtab", "symtab", symbols, align=4, link=link, info=1, entsize=SYMBOL.size)
    sections += [symtab, _Out(".strtab", "strtab", bytes(strings.data))]
    shstrtab = _Out(".shstrtab", "strtab")
    sections.append(shstrtab)
    offsets_of = [names.add(section.name) for section in sections]
    shstrtab.data = bytes(names.data)

    segments = [s for s in loaded if s.name not in _NOT_LOADED and (s.data or s.size)]
    body = bytearray(_HEADER.size + _SEGMENT.size * len(segments))
    headers = bytearray(SECTION.size)
    places: dict[str, int] = {}
    for section, name in zip(sections, offsets_of, strict=True):
        body += bytes(-len(body) % 8)
        places[section.name] = at = len(body)
        body += section.data
        size = len(section.data) or section.size
        kind = _SHT[section.kind]
        fields = (section.address, at, size, section.link, section.info)
        headers += SECTION.pack(name, kind, section.flags, *fields, section.align, section.entsize)
    body += bytes(-len(body) % 8)
    count = len(sections) + 1
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    entry = (IRAM_BASE, _HEADER.size, len(body), _FLAGS, _HEADER.size, _SEGMENT.size, len(segments))
    _HEADER.pack_into(body, 0, ident, 2, EM_DPU, 1, *entry, SECTION.size, count, count - 1)
    for i, s in enumerate(segments):
        size = len(s.data) or s.size
        flags = 4 | (2 if s.flags & _WRITE else 0) | (1 if s.flags & _EXEC else 0)
        where = (places[s.name], s.address, s.address, len(s.data), size, flags, s.align)
        _SEGMENT.pack_into(body, _HEADER.size + i * _SEGMENT.size, 1, *where)
    image = body + headers
    return seal(bytes(image), places[NOTE_SECTION])


def seal(image: bytes, note_offset: int) -> bytes:
    """The file with the checksum of everything else put into its note at `note_offset`."""
    at = note_offset + CHECKSUM_AT
    return image[:at] + struct.pack("<I", checksum_of(image, at)) + image[at + 4 :]


def checksum_of(image: bytes, at: int) -> int:
    return zlib.crc32(image[at + 4 :], zlib.crc32(image[:at]))
