"""C lines of a program from its DWARF line tables, as compilers other than ours write them."""

from __future__ import annotations

import posixpath
from typing import Any

from elftools.elf.elffile import ELFFile

from upmem_sim.program import IRAM_BASE, IRAM_INSN_BYTES

Lines = list[tuple[str, int] | None]


def _file_names(program: Any) -> list[str]:
    """Names by the file numbers of a line table (from 1 before DWARF 5)."""
    folders = [_text(name) for name in program["include_directory"]]
    names = [] if program["version"] >= 5 else [""]
    shift = 0 if program["version"] >= 5 else 1
    for entry in program["file_entry"]:
        folder = entry.dir_index - shift
        name = _text(entry.name)
        names.append(posixpath.join(folders[folder], name) if 0 <= folder < len(folders) else name)
    return names


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def c_lines(elf: ELFFile, count: int) -> Lines:
    """(C file, line) of each of `count` instructions, None where the file does not say."""
    out: Lines = [None] * count
    if elf.get_section_by_name(".debug_line") is None:
        return out
    info = elf.get_dwarf_info(relocate_dwarf_sections=False)
    for unit in info.iter_CUs():
        program = info.line_program_for_CU(unit)
        if program is None:
            continue
        names = _file_names(program.header)
        last: Any = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if last is not None and last.line and 0 <= last.file < len(names):
                begin, end = ((s.address - IRAM_BASE) // IRAM_INSN_BYTES for s in (last, state))
                for pc in range(max(begin, 0), min(end, count)):
                    out[pc] = (names[last.file], last.line)
            last = None if state.end_sequence else state
    return out
