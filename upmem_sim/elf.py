"""ELF files -> programs: those of elf_write.py, and those that UPMEM's SDK linked.

Every part of a file is checked before it is used: a damaged file gives an ElfError. Our own files
carry a note with a checksum, so that any changed byte is noticed, and a table of C lines; others
need neither, their lines come from DWARF if they have it. Layout: UPMEM SDK manual, "DPU ABI".
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from upmem_sim.decoding import decode
from upmem_sim.dwarf import c_lines
from upmem_sim.elf_write import (
    ABSOLUTE,
    ALLOC,
    CHECKSUM_AT,
    EM_DPU,
    ENCODING_VERSION,
    LINES_SECTION,
    NO_LINE,
    NOTE_SECTION,
    SECTION,
    SYMBOL,
    checksum_of,
    make_note,
    seal,
    write_elf,
)
from upmem_sim.errors import AsmError, ElfError
from upmem_sim.isa import ROW, Sym
from upmem_sim.layout import ATOMIC_BITS, IRAM_INSNS, MAX_TASKLETS, MRAM_BYTES, WRAM_BYTES
from upmem_sim.program import ATOMIC_BASE, IRAM_BASE, IRAM_INSN_BYTES, MRAM_BASE, Program, Symbol
from upmem_sim.rows import RowTuple, to_row

__all__ = ["NOTE_SECTION", "read_elf", "seal", "write_elf"]

_MAX_SECTIONS = 64
# Memories: (first address, bytes of address space), the highest first.
_MEMORIES = (
    (ATOMIC_BASE, ATOMIC_BITS),
    (IRAM_BASE, IRAM_INSNS * IRAM_INSN_BYTES),
    (MRAM_BASE, MRAM_BYTES),
    (0, WRAM_BYTES),
)


@dataclass(frozen=True, slots=True)
class _In:
    """A section; `data` is empty for one without bytes, `memory` is the base of its memory."""

    name: str
    kind: str
    address: int
    offset: int
    size: int
    data: bytes
    loaded: bool

    @property
    def memory(self) -> int:
        return next(base for base, _ in _MEMORIES if self.address >= base)


def _check_header(image: bytes) -> ELFFile:
    if image[:4] != b"\x7fELF":
        raise ElfError("not an ELF file")
    elf = ELFFile(io.BytesIO(image))
    if elf.elfclass != 32 or not elf.little_endian:
        raise ElfError(f"ELF of {elf.elfclass} bits, a DPU program is 32-bit little endian")
    header, machine = elf.header, struct.unpack_from("<H", image, 18)[0]
    if machine != EM_DPU:
        raise ElfError(f"not a DPU program: ELF for machine {machine}, a DPU's is {EM_DPU}")
    tables = (("section", "e_shoff", "e_shnum", 40), ("program", "e_phoff", "e_phnum", 32))
    for what, offset, count, size in tables:
        if header[offset] + header[count] * size > len(image) or header[count] > _MAX_SECTIONS:
            raise ElfError(f"{what} headers lie beyond the end of the file")
    if header["e_shentsize"] != SECTION.size or header["e_shnum"] < 1:
        raise ElfError("section headers are missing")
    return elf


def _read_sections(elf: ELFFile, image: bytes) -> dict[str, _In]:
    out: dict[str, _In] = {}
    for section in elf.iter_sections():
        size, offset = section["sh_size"], section["sh_offset"]
        name, kind = section.name, str(section["sh_type"])
        nobits = kind == "SHT_NOBITS"
        if not nobits and offset + size > len(image):
            raise ElfError(f"section {_plain(name)} lies beyond the end of the file")
        if name in out:
            raise ElfError(f"section {_plain(name)} occurs twice")
        data = b"" if nobits else image[offset : offset + size]
        loaded = bool(section["sh_flags"] & ALLOC) and kind in ("SHT_PROGBITS", "SHT_NOBITS")
        out[name] = _In(name, kind, section["sh_addr"], offset, size, data, loaded)
    return out


def _plain(text: object) -> str:
    """Part of a damaged file, fit for a one-line message."""
    return ascii(str(text)[:40])


def _check_note(sections: dict[str, _In], image: bytes) -> None:
    """The note of our own files; others have neither note nor table of lines."""
    note = sections.get(NOTE_SECTION)
    if note is None and LINES_SECTION not in sections:
        return
    if note is None or LINES_SECTION not in sections:
        raise ElfError(f"section {LINES_SECTION if note else NOTE_SECTION} is missing")
    if len(note.data) != CHECKSUM_AT + 4 or note.data[:-8] != make_note(0)[:-8]:
        raise ElfError(f"section {NOTE_SECTION} is damaged")
    version, checksum = struct.unpack("<II", note.data[-8:])
    if version != ENCODING_VERSION:
        raise ElfError(
            f"instruction encoding version {version}, this simulator has {ENCODING_VERSION}"
        )
    if checksum != checksum_of(image, note.offset + CHECKSUM_AT):
        raise ElfError("the file is damaged: its checksum does not fit")


def _read_code(section: _In | None) -> tuple[np.ndarray, np.ndarray]:
    if section is None:
        raise ElfError("section .text is missing")
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


def _read_image(sections: dict[str, _In], base: int, length: int) -> tuple[bytes, int]:
    """Bytes of a memory that the file sets, zeros in between, and their first offset."""
    parts = [s for s in sections.values() if s.loaded and s.kind == "SHT_PROGBITS"]
    parts = sorted((s for s in parts if s.memory == base), key=lambda s: (s.address, s.size))
    start = parts[0].address - base if parts and base else 0
    out = bytearray()
    for part in parts:
        at = part.address - base - start
        if at < len(out):
            raise ElfError(f"section {_plain(part.name)} lies over another")
        if start + at + part.size > length:
            raise ElfError(
                f"section {_plain(part.name)}: ends at {start + at + part.size} of its memory's "
                f"{length} bytes"
            )
        out += bytes(at - len(out)) + part.data
    return bytes(out), start


def _read_symbols(elf: ELFFile, sections: dict[str, _In]) -> dict[str, Symbol]:
    """Named places of the loaded sections, and numbers; a global name goes before a local one."""
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection) or table["sh_entsize"] != SYMBOL.size:
        raise ElfError("section .symtab is missing or damaged")
    names = list(sections)
    limits = dict(_MEMORIES)
    out: dict[str, Symbol] = {}
    for entry in table.iter_symbols():
        where, name = entry["st_shndx"], entry.name
        if not name or entry["st_info"]["type"] in ("STT_FILE", "STT_SECTION"):
            continue
        if name in out and entry["st_info"]["bind"] == "STB_LOCAL":
            continue
        address, size = entry["st_value"], entry["st_size"]
        if where == "SHN_ABS":
            out[name] = Symbol(name, address, size, ABSOLUTE)
            continue
        if not isinstance(where, int) or not 0 < where < len(names):
            raise ElfError(f"symbol {_plain(name)} has no section")
        section = sections[names[where]]
        if not section.loaded:
            continue
        base = section.memory
        if not base <= address <= address + size <= base + limits[base]:
            raise ElfError(f"symbol {_plain(name)} lies outside its memory: {address:#x}")
        out[name] = Symbol(name, address, size, section.name)
    return out


def _read_lines(section: _In, count: int) -> list[tuple[str, int] | None]:
    data = section.data
    end = 4 + 8 * count
    if len(data) < end or struct.unpack_from("<I", data)[0] != count:
        raise ElfError(f"section {LINES_SECTION} is damaged")
    files = [name.decode() for name in data[end:].split(b"\0")[:-1]]
    out: list[tuple[str, int] | None] = []
    for number, line in struct.iter_unpack("<II", data[4:end]):
        if number != NO_LINE and number >= len(files):
            raise ElfError(f"section {LINES_SECTION} is damaged")
        out.append(None if number == NO_LINE else (files[number], line))
    return out


def _parse(image: bytes) -> Program:
    elf = _check_header(image)
    sections = _read_sections(elf, image)
    _check_note(sections, image)
    words, rows = _read_code(sections.get(".text"))
    wram, _ = _read_image(sections, 0, WRAM_BYTES)
    mram, mram_start = _read_image(sections, MRAM_BASE, MRAM_BYTES)
    symbols = _read_symbols(elf, sections)
    tasklets = symbols.get("NR_TASKLETS")
    if tasklets is None or not 1 <= tasklets.address <= MAX_TASKLETS:
        number = "missing" if tasklets is None else tasklets.address
        raise ElfError(f"symbol NR_TASKLETS: {number}, must be 1 to {MAX_TASKLETS}")
    table = sections.get(LINES_SECTION)
    lines = _read_lines(table, len(words)) if table else c_lines(elf, len(words))
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

    Errors: ElfError for a file that cannot be read, is no DPU program, is damaged, or holds a word
    that is no instruction (with its pc and the word).
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
        hint = _hint(Path(source)) if image[:4] != b"\x7fELF" else ""
        raise ElfError(f"{source}: {error}{hint}") from None


def _hint(path: Path) -> str:
    """What to do with a file that comes before a program."""
    if path.suffix not in (".c", ".o", ".s", ".S"):
        return ""
    return f"; make a program of it first: upmem-sim cc {path} -o {path.stem}"
