"""DPU programs as ELF files: 32-bit, little endian, laid out as the SDK's linker lays them out.

Code stands at 0x80000000 with 8 bytes an instruction (48 bits count), WRAM at 0, MRAM at
0x08000000, atomic bits at 0xF0000000; symbols have sizes and sections, NR_TASKLETS is absolute.
Two sections are ours: a note with the version of the encoding (see encoding.py) and a checksum of
the file, and a table of C lines. A file without the note was built by other tools, the SDK's among
them, whose operation numbers are not known here: it is refused.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from upmem_sim.decoding import decode
from upmem_sim.errors import AsmError, ElfError
from upmem_sim.isa import ROW, Sym
from upmem_sim.layout import ATOMIC_BITS, IRAM_INSNS, MAX_TASKLETS, MRAM_BYTES, WRAM_BYTES
from upmem_sim.program import ATOMIC_BASE, IRAM_BASE, IRAM_INSN_BYTES, MRAM_BASE, Program, Symbol
from upmem_sim.rows import RowTuple, to_row

EM_DPU = 245  # of UPMEM's LLVM; not a registered number, and not checked when reading
NOTE_SECTION = ".note.upmem_sim"
LINES_SECTION = ".upmem_sim.lines"
ENCODING_VERSION = 1
ABSOLUTE = "*ABS*"
_NOTE_NAME = b"upmem_sim\0\0\0"
_NOTE_TYPE = 1
_MAX_SECTIONS = 64
_SHN_ABS = 0xFFF1
_SHT = {"progbits": 1, "symtab": 2, "strtab": 3, "note": 7, "nobits": 8}
_WRITE, _ALLOC, _EXEC = 1, 2, 4
_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION = struct.Struct("<IIIIIIIIII")
_SEGMENT = struct.Struct("<IIIIIIII")
_SYMBOL = struct.Struct("<IIIBBH")
_NO_LINE = (1 << 32) - 1
# Sections outside WRAM: (address of the memory, bytes of address space).
_REGIONS: dict[str, tuple[int, int]] = {
    ".text": (IRAM_BASE, IRAM_INSNS * IRAM_INSN_BYTES),
    ".mram": (MRAM_BASE, MRAM_BYTES),
    ".mram.noinit": (MRAM_BASE, MRAM_BYTES),
    ".atomic": (ATOMIC_BASE, ATOMIC_BITS),
}


# ------------------------------------------------------------------------------------ writing


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
    """WRAM cut at the first symbol of each output section; together the sections cover it all."""
    end = len(program.wram)
    starts: dict[str, int] = {}
    for symbol in program.symbols.values():
        if symbol.section != ABSOLUTE and symbol.section not in _REGIONS:
            starts[symbol.section] = min(starts.get(symbol.section, end), symbol.address)
    cuts = sorted((at, name) for name, at in starts.items()) or [(0, ".data")]
    out = []
    for i, (at, name) in enumerate(cuts):
        begin = at if i else 0
        until = cuts[i + 1][0] if i + 1 < len(cuts) else end
        flags = _ALLOC if name == ".rodata" else _ALLOC | _WRITE
        out.append(_Out(name, "progbits", program.wram[begin:until], begin, flags, 1))
    return out


def _sections(program: Program) -> list[_Out]:
    code = program.words.astype("<u8").tobytes()
    out = [_Out(".text", "progbits", code, IRAM_BASE, _ALLOC | _EXEC, 8)]
    out += _wram_sections(program)
    data = _ALLOC | _WRITE
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
        number = files.setdefault(line[0], len(files)) if line else _NO_LINE
        entries += struct.pack("<II", number, line[1] if line else 0)
    names = b"".join(name.encode() + b"\0" for name in files)
    return struct.pack("<I", len(program.lines)) + bytes(entries) + names


def _symbol_table(program: Program, sections: list[_Out], strings: _Strings) -> bytes:
    index = {section.name: i + 1 for i, section in enumerate(sections)}
    out = bytearray(_SYMBOL.size)
    for symbol in program.symbols.values():
        shndx = _SHN_ABS if symbol.section == ABSOLUTE else index[symbol.section]
        kind = 2 if symbol.section == ".text" else 0 if symbol.section == ABSOLUTE else 1
        name = strings.add(symbol.name)
        address = symbol.address & 0xFFFF_FFFF
        out += _SYMBOL.pack(name, address, symbol.size, 1 << 4 | kind, 0, shndx)
    return bytes(out)


def _note(checksum: int) -> bytes:
    desc = struct.pack("<II", ENCODING_VERSION, checksum)
    return struct.pack("<III", len(_NOTE_NAME), len(desc), _NOTE_TYPE) + _NOTE_NAME + desc


_CHECKSUM_AT = len(_note(0)) - 4  # inside the note section, which comes right after the header


def write_elf(program: Program) -> bytes:
    """The ELF file of a program, as bytes."""
    loaded = _sections(program)
    names, strings = _Strings(), _Strings()
    symbols = _symbol_table(program, loaded, strings)
    sections = [*loaded, _Out(NOTE_SECTION, "note", _note(0), align=4)]
    sections.append(_Out(LINES_SECTION, "progbits", _line_table(program), align=4))
    link = len(sections) + 2
    symtab = _Out(".symtab", "symtab", symbols, align=4, link=link, info=1, entsize=_SYMBOL.size)
    sections += [symtab, _Out(".strtab", "strtab", bytes(strings.data))]
    shstrtab = _Out(".shstrtab", "strtab")
    sections.append(shstrtab)
    offsets_of = [names.add(section.name) for section in sections]
    shstrtab.data = bytes(names.data)

    segments = [s for s in loaded if s.name != ".atomic" and (s.data or s.size)]
    body = bytearray(_HEADER.size + _SEGMENT.size * len(segments))
    headers = bytearray(_SECTION.size)
    places: dict[str, int] = {}
    for section, name in zip(sections, offsets_of, strict=True):
        body += bytes(-len(body) % 8)
        places[section.name] = at = len(body)
        body += section.data
        size = len(section.data) or section.size
        kind = _SHT[section.kind]
        fields = (section.address, at, size, section.link, section.info)
        headers += _SECTION.pack(name, kind, section.flags, *fields, section.align, section.entsize)
    body += bytes(-len(body) % 8)
    count = len(sections) + 1
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    entry = (IRAM_BASE, _HEADER.size, len(body), 0, _HEADER.size, _SEGMENT.size, len(segments))
    _HEADER.pack_into(body, 0, ident, 2, EM_DPU, 1, *entry, _SECTION.size, count, count - 1)
    for i, s in enumerate(segments):
        size = len(s.data) or s.size
        flags = 4 | (2 if s.flags & _WRITE else 0) | (1 if s.flags & _EXEC else 0)
        where = (places[s.name], s.address, s.address, len(s.data), size, flags, s.align)
        _SEGMENT.pack_into(body, _HEADER.size + i * _SEGMENT.size, 1, *where)
    image = body + headers
    return seal(bytes(image), places[NOTE_SECTION])


def seal(image: bytes, note_offset: int) -> bytes:
    """The file with the checksum of everything else put into its note at `note_offset`."""
    at = note_offset + _CHECKSUM_AT
    return image[:at] + struct.pack("<I", _checksum(image, at)) + image[at + 4 :]


def _checksum(image: bytes, at: int) -> int:
    return zlib.crc32(image[at + 4 :], zlib.crc32(image[:at]))


# ------------------------------------------------------------------------------------ reading


@dataclass(frozen=True, slots=True)
class _In:
    name: str
    kind: str
    address: int
    offset: int
    size: int
    data: bytes


def _check_header(image: bytes) -> ELFFile:
    if image[:4] != b"\x7fELF":
        raise ElfError("not an ELF file")
    elf = ELFFile(io.BytesIO(image))
    if elf.elfclass != 32 or not elf.little_endian:
        raise ElfError(f"ELF of {elf.elfclass} bits, a DPU program is 32-bit little endian")
    header = elf.header
    tables = (("section", "e_shoff", "e_shnum", 40), ("program", "e_phoff", "e_phnum", 32))
    for what, offset, count, size in tables:
        if header[offset] + header[count] * size > len(image) or header[count] > _MAX_SECTIONS:
            raise ElfError(f"{what} headers lie beyond the end of the file")
    if header["e_shentsize"] != _SECTION.size or header["e_shnum"] < 1:
        raise ElfError("section headers are missing")
    return elf


def _read_sections(elf: ELFFile, image: bytes) -> dict[str, _In]:
    out: dict[str, _In] = {}
    for section in elf.iter_sections():
        size, offset = section["sh_size"], section["sh_offset"]
        nobits = section["sh_type"] == "SHT_NOBITS"
        if not nobits and offset + size > len(image):
            raise ElfError(f"section {_plain(section.name)} lies beyond the end of the file")
        data = b"" if nobits else image[offset : offset + size]
        name, kind = section.name, str(section["sh_type"])
        if name in out:
            raise ElfError(f"section {_plain(name)} occurs twice")
        out[name] = _In(name, kind, section["sh_addr"], offset, size, data)
    return out


def _plain(text: object) -> str:
    """Part of a damaged file, fit for a one-line message."""
    return ascii(str(text)[:40])


def _need(sections: dict[str, _In], name: str) -> _In:
    section = sections.get(name)
    if section is None:
        raise ElfError(f"section {name} is missing")
    return section


def _check_note(sections: dict[str, _In], image: bytes) -> None:
    note = sections.get(NOTE_SECTION)
    if note is None:
        machine = struct.unpack_from("<H", image, 18)[0]
        if ".text" not in sections or sections[".text"].address != IRAM_BASE:
            raise ElfError(f"not a DPU program: ELF for machine {machine}, no code at IRAM")
        raise ElfError(
            f"no section {NOTE_SECTION}: built by the UPMEM SDK or another tool, whose "
            "instruction encoding this simulator does not know; build it with upmem-sim cc"
        )
    if len(note.data) != _CHECKSUM_AT + 4 or note.data[:-8] != _note(0)[:-8]:
        raise ElfError(f"section {NOTE_SECTION} is damaged")
    version, checksum = struct.unpack("<II", note.data[-8:])
    if version != ENCODING_VERSION:
        raise ElfError(f"instruction encoding version {version}, this simulator has 1")
    if checksum != _checksum(image, note.offset + _CHECKSUM_AT):
        raise ElfError("the file is damaged: its checksum does not fit")


def _read_code(section: _In) -> tuple[np.ndarray, np.ndarray]:
    count, rest = divmod(len(section.data), IRAM_INSN_BYTES)
    if section.address != IRAM_BASE or rest or not 0 < count <= IRAM_INSNS:
        raise ElfError(
            f".text: {len(section.data)} bytes at {section.address:#x}, must be 1 to {IRAM_INSNS} "
            f"instructions of {IRAM_INSN_BYTES} bytes at {IRAM_BASE:#x}"
        )
    words = np.frombuffer(section.data, "<u8").astype(np.uint64)
    rows = []
    for pc, word in enumerate(words.tolist()):
        try:
            rows.append(_row_of(word))
        except AsmError as error:
            raise ElfError(f".text: instruction {pc}: {error}") from None
    return words, np.array(rows, ROW)


@lru_cache(1 << 14)
def _row_of(word: int) -> RowTuple:
    return to_row(decode(word), _no_symbols)


def _no_symbols(symbol: Sym) -> int:
    raise ElfError(f"symbol {symbol} in decoded code")


def _read_wram(sections: dict[str, _In]) -> bytes:
    parts = [s for s in sections.values() if s.kind == "SHT_PROGBITS" and s.address < WRAM_BYTES]
    parts = [s for s in parts if s.name not in (".text", ".mram", LINES_SECTION)]
    at, out = 0, bytearray()
    for part in sorted(parts, key=lambda s: (s.address, s.address + s.size)):
        if part.address != at:
            raise ElfError(f"section {_plain(part.name)} starts at {part.address}, not at {at}")
        out += part.data
        at += part.size
    if at > WRAM_BYTES:
        raise ElfError(f"WRAM: {at} bytes, limit {WRAM_BYTES}")
    return bytes(out)


def _read_mram(sections: dict[str, _In]) -> tuple[bytes, int]:
    section = _need(sections, ".mram")
    start = section.address - MRAM_BASE
    if not 0 <= start <= start + len(section.data) <= MRAM_BYTES:
        raise ElfError(f".mram: {len(section.data)} bytes at {section.address:#x}, outside MRAM")
    return section.data, start


def _read_symbols(elf: ELFFile, sections: dict[str, _In]) -> dict[str, Symbol]:
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection) or table["sh_entsize"] != _SYMBOL.size:
        raise ElfError("section .symtab is missing or damaged")
    names = list(sections)
    loaded = {s.name for s in sections.values() if s.kind in ("SHT_PROGBITS", "SHT_NOBITS")}
    loaded.discard(LINES_SECTION)
    out: dict[str, Symbol] = {}
    for entry in list(table.iter_symbols())[1:]:
        where = entry["st_shndx"]
        if where == "SHN_ABS":
            section = ABSOLUTE
        elif isinstance(where, int) and 0 < where < len(names) and names[where] in loaded:
            section = names[where]
        else:
            raise ElfError(f"symbol {_plain(entry.name)} has no loaded section")
        address, size = entry["st_value"], entry["st_size"]
        base, length = _REGIONS.get(section, (0, WRAM_BYTES))
        if section != ABSOLUTE and not base <= address <= address + size <= base + length:
            raise ElfError(f"symbol {_plain(entry.name)} lies outside its memory: {address:#x}")
        out[entry.name] = Symbol(entry.name, address, size, section)
    return out


def _read_lines(section: _In, count: int) -> list[tuple[str, int] | None]:
    data = section.data
    end = 4 + 8 * count
    if len(data) < end or struct.unpack_from("<I", data)[0] != count:
        raise ElfError(f"section {LINES_SECTION} is damaged")
    files = [name.decode() for name in data[end:].split(b"\0")[:-1]]
    out: list[tuple[str, int] | None] = []
    for number, line in struct.iter_unpack("<II", data[4:end]):
        if number != _NO_LINE and number >= len(files):
            raise ElfError(f"section {LINES_SECTION} is damaged")
        out.append(None if number == _NO_LINE else (files[number], line))
    return out


def _parse(image: bytes) -> Program:
    elf = _check_header(image)
    sections = _read_sections(elf, image)
    _check_note(sections, image)
    words, rows = _read_code(_need(sections, ".text"))
    mram, mram_start = _read_mram(sections)
    symbols = _read_symbols(elf, sections)
    tasklets = symbols.get("NR_TASKLETS")
    if tasklets is None or not 1 <= tasklets.address <= MAX_TASKLETS:
        number = "missing" if tasklets is None else tasklets.address
        raise ElfError(f"symbol NR_TASKLETS: {number}, must be 1 to {MAX_TASKLETS}")
    lines = _read_lines(_need(sections, LINES_SECTION), len(words))
    wram = _read_wram(sections)
    return Program(words, rows, wram, mram, symbols, tasklets.address, lines, mram_start)


def _guarded(action: Callable[[bytes], Program], image: bytes) -> Program:
    try:
        return action(image)
    except ElfError:
        raise
    # pyelftools answers damage with whatever its parsing happens to run into
    except Exception as error:
        raise ElfError(f"damaged ELF file: {type(error).__name__} {_plain(error)}") from None


def read_elf(source: bytes | str | Path) -> Program:
    """Read a program from the bytes or the path of an ELF file.

    Errors: ElfError for a file that cannot be read, is damaged, or was not built by this package.
    """
    if isinstance(source, bytes):
        return _guarded(_parse, source)
    try:
        image = Path(source).read_bytes()
    except OSError as error:
        raise ElfError(f"cannot read {source}: {error.strerror}") from None
    try:
        return _guarded(_parse, image)
    except ElfError as error:
        raise ElfError(f"{source}: {error}") from None
