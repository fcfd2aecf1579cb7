"""An ELF file laid out as UPMEM's SDK (2021.2) lays its programs out; the code is ours.

Sections, order, flags, symbol kinds and the line table follow the DPU programs in the dpu-kmeans
0.1.3 source distribution.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from upmem_sim.asm import assemble
from upmem_sim.encoding import encode
from upmem_sim.isa import Insn

# Sums the eight bytes of `buffer` in MRAM; the stack grows upwards.
SOURCE = """
    jneq id, 0, 4
    sd zero, 16, 0
    jeq id, 0, 4
    boot id, 1
    ld d22, id8, 24
    call r23, 7
    stop true, 6
    sd r22, 0, d22
    add r22, r22, 24
    add r2, r22, -16
    move r1, 0
    ldma r2, r1, 0
    move r0, 0
    move r3, 8
    lbu r4, r2, 0
    add r2, r2, 1
    add r0, r0, r4
    add r3, r3, -1, nz, 14
    sw zero, 32, r0
    ld d22, r22, -24
    jump r23
"""
STACK = 0x100
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS = 1, 2, 3, 8
_ABS = 0xFFF1


@dataclass
class Part:
    """A section: kind, address, bytes, flags, and its size if it has no bytes."""

    name: str
    kind: int
    address: int = 0
    data: bytes = b""
    flags: int = 0
    size: int = 0
    link: int = 0
    entsize: int = 0


def code() -> list[int]:
    """The words of SOURCE."""
    insns = assemble(SOURCE, "sdk.s").sections[0].insns
    return [encode(insn) for insn in insns if isinstance(insn, Insn)]


def dwarf() -> list[Part]:
    """One unit, file dpu/main.c: instructions 7 to 11 are line 30, the rest of main line 31."""
    abbrev = b"\x01\x11\x00\x10\x17\x00\x00\x00"  # compile unit with DW_AT_stmt_list (sec_offset)
    unit = struct.pack("<HIBBI", 4, 0, 4, 1, 0)
    header = bytes([8, 1, 1, 0xFB, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])  # 8: one word
    header += b"dpu\0\0" + b"main.c\0\x01\0\0\0"
    steps = b"\0\x05\x02" + struct.pack("<I", 0x80000000 + 7 * 8) + b"\x03\x1d\x01"  # line 30
    steps += b"\x02\x05\x03\x01\x01" + b"\x02\x09\0\x01\x01"  # 5 words on: line 31; end
    line = struct.pack("<HI", 4, len(header)) + header + steps
    return [
        Part(".debug_abbrev", _PROGBITS, data=abbrev),
        Part(".debug_info", _PROGBITS, data=struct.pack("<I", len(unit)) + unit),
        Part(".debug_line", _PROGBITS, data=struct.pack("<I", len(line)) + line),
    ]


def parts(words: list[int], symbols: list[tuple[str, int, int, int, int]]) -> list[Part]:
    """All sections; symbols as (name, address, size, binding and kind, section number)."""
    text = b"".join(word.to_bytes(8, "little") for word in words)
    table = struct.pack("<II", 6, STACK)  # where main returns to, and the first tasklet's stack
    data = bytes(24) + table
    names = b"\0" + b"".join(symbol[0].encode() + b"\0" for symbol in symbols)
    entries, at = bytes(16), 1
    for name, address, size, info, section in symbols:
        entries += struct.pack("<IIIBBH", at if name else 0, address, size, info, 0, section)
        at += len(name) + 1
    out = [
        Part(".text", _PROGBITS, 0x80000000, text, 6),
        Part(".atomic", _NOBITS, 0xF0000000, b"", 3, 200),
        Part(".data", _PROGBITS, 0, data, 3),
        Part(".data.__sys_host", _PROGBITS, 32, bytes(4), 3),
        Part(".data.__sys_profiling", _PROGBITS, 36, b"", 3),
        Part(".data.stacks", _NOBITS, STACK, b"", 3, 64),
        Part(".data.sw_cache", _NOBITS, STACK + 64, b"", 3, 8),
        Part(".data.heap_pointer_reset", _NOBITS, STACK + 72, b"", 3),
        Part(".mram.noinit", _NOBITS, 0x08000000, b"", 3, 4096),
        Part(".mram", _PROGBITS, 0x08001000, b"", 3),
        Part(".stack_sizes", _PROGBITS, 0, bytes(5), 0x80),
        *dwarf(),
    ]
    link = len(out) + 2
    out.append(Part(".symtab", _SYMTAB, data=entries, link=link, entsize=16))
    return [*out, Part(".strtab", _STRTAB, data=names)]


SYMBOLS = [
    ("crt0.c", 0, 0, 0x04, _ABS),
    ("", 0x80000000, 0, 0x03, 1),
    ("checksum", 24, 4, 0x01, 3),  # a static variable of another file
    ("__stack_note", 0, 0, 0x00, 11),
    ("main", 0x80000038, 112, 0x12, 1),
    ("checksum", 32, 4, 0x11, 4),
    ("buffer", 0x08000000, 4096, 0x11, 9),
    ("__sys_used_mram_end", 0x08001000, 0, 0x10, 10),
    ("__sys_stack_thread_0", STACK, 0, 0x10, 6),
    ("STACK_SIZE_TASKLET_0", 64, 0, 0x10, _ABS),
    ("NR_TASKLETS", 1, 0, 0x10, _ABS),
]


def build(
    words: list[int] | None = None, symbols: list[tuple[str, int, int, int, int]] = SYMBOLS
) -> bytes:
    """The file as bytes."""
    sections = parts(code() if words is None else words, symbols)
    sections.append(Part(".shstrtab", _STRTAB))
    names = b"\0"
    for part in sections:
        names += part.name.encode() + b"\0"
    sections[-1].data = names
    body, headers, at = bytearray(52), bytes(40), 1
    for part in sections:
        size = len(part.data) or part.size
        place = (part.kind, part.flags, part.address, len(body), size, part.link)
        headers += struct.pack("<10I", at, *place, 0, 1, part.entsize)
        body += part.data
        at += len(part.name) + 1
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    counts = (52, 32, 0, 40, len(sections) + 1, len(sections))
    struct.pack_into("<16sHHIIIIIHHHHHH", body, 0, ident, 2, 245, 1, 0x80000000, 0, len(body),
                     0x2800000, *counts)  # fmt: skip
    return bytes(body) + headers
