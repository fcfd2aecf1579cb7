"""Rewrite LLVM IR text between optimisation and RV32 code generation.

What UPMEM's own back end does before instruction selection and RV32's does not:
products of 8- and 16-bit values become byte multiplies (upmem/llvm-project, DPUTargetLowering),
comparisons of 64-bit values two subtractions,
loads and stores through MRAM pointers (address space 255) become calls of a software access.
Also refuses what has no meaning on a DPU: an MRAM pointer cast to a WRAM pointer, DMA sizes the
hardware cannot transfer, conversions that printf does not have.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from upmem_sim.cc.asm_operands import mark_pairs, refuse_register_names
from upmem_sim.cc.compare64 import compare_words
from upmem_sim.cc.floats import float_units
from upmem_sim.cc.formats import PRINTF, check_formats
from upmem_sim.cc.ir_text import debug_place, place, split_arguments
from upmem_sim.cc.products import narrow_products
from upmem_sim.errors import CompileError

_CONVENTION = re.compile(r'^((?:define|declare)\b[^@"\n]*?|[^"@\n]*? call) (?:fast|cold)cc ', re.M)
_MRAM = "addrspace(255)"
_LOAD = re.compile(r"(\s*%[\w.]+ = )load (atomic )?(?:volatile )?(.*)$")
_STORE = re.compile(r"(\s*)store (atomic )?(?:volatile )?(.*)$")
_POINTER = "ptr addrspace(255) "
_OTHER_ACCESS = re.compile(r"= (?:atomicrmw|cmpxchg) .*ptr addrspace\(255\)")
_BLOCK = re.compile(r"@llvm\.(memcpy|memmove|memset)(?:\.inline)?\.(p0|p255)(?:\.(p0|p255))?\.i32")
_WIDE_COMPARISONS = (" = icmp ", "min.i64(", "max.i64(")
_MRAM_SECTION = ', section ".mram'
_BAD_SIZE = "@__upmem_bad_dma_size"
# type -> (bits, how a value of that type travels in an integer register)
_TYPES = {
    "i1": (8, "zext"),
    "i8": (8, ""),
    "i16": (16, ""),
    "i32": (32, ""),
    "i64": (64, ""),
    "float": (32, "bitcast"),
    "double": (64, "bitcast"),
    "ptr": (32, "ptrtoint"),  # a pointer to WRAM kept in MRAM
    "ptr addrspace(255)": (32, "ptrtoint"),
}


def rewrite(text: str, file: str, units: Collection[str] = ()) -> str:
    """IR text with DPU forms. `file` names the C source in errors; `units` are hypothetical ones:
    with "mul32" products of narrow values stay, with "float" float32 operations are instructions.

    Errors: CompileError with file:line when debug lines are in the IR.
    """
    # RV32's own convention for local functions passes arguments in temporaries as well
    if "fastcc " in text or "coldcc " in text:
        text = _CONVENTION.sub(r"\1 ", text)
    signs = (_MRAM, _MRAM_SECTION, _BAD_SIZE, " = mul ", " asm ", PRINTF, *_WIDE_COMPARISONS)
    if not units and not any(sign in text for sign in signs):
        return text
    lines = text.split("\n")
    if _MRAM in text or _MRAM_SECTION in text or _BAD_SIZE in text:
        _refuse(lines, file)
        lines = _software_access(lines, file)
    if PRINTF in text:
        check_formats(lines, file)
    if " asm " in text:
        refuse_register_names(lines, file)
        lines = mark_pairs(lines)
    if "float" in units:
        lines = float_units(lines)
    if " = mul " in text and "mul32" not in units:
        lines = narrow_products(lines)
    if any(sign in text for sign in _WIDE_COMPARISONS):
        lines = compare_words(lines)
    return "\n".join(lines)


# --------------------------------------------------------------------------------- refusals


def _refuse(lines: list[str], file: str) -> None:
    for line in lines:
        head = line.partition(" global ")[0]
        if _MRAM_SECTION in line and line[0] == "@" and _MRAM not in head:
            raise CompileError(
                f"{file}: error: pointer {line[1:].split(' ')[0]} to MRAM, itself in MRAM, but not"
                " by its type: __mram and __mram_noinit go behind the *"
            )
        if "addrspacecast" in line and "addrspacecast" in _without_strings(line):
            raise CompileError(
                f"{place(lines, line, file)}: error: MRAM pointer used as a WRAM pointer "
                "(or the reverse); copy with mram_read or mram_write"
            )
        if _BAD_SIZE in line and "call" in line:
            raise CompileError(
                f"{place(lines, line, file)}: error: mram_read/mram_write: the size must be "
                "a multiple of 8 from 8 to 2048 bytes"
            )


def _without_strings(line: str) -> str:
    """An IR line without text constants; nothing of lines that hold no code or variables."""
    if line.startswith(("@llvm.", "!", "module asm", "source_filename")):
        return ""
    return re.sub(r'"[^"]*"', "", line)


# --------------------------------------------------------------------------------- MRAM access


@dataclass(slots=True)
class _Access:
    """State of the MRAM rewriting of one module."""

    lines: list[str]
    file: str
    out: list[str] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%upmem.m{self.count}"


def _software_access(lines: list[str], file: str) -> list[str]:
    state = _Access(lines, file)
    for line in lines:
        if _MRAM not in line:
            state.out.append(line)
        elif (load := _LOAD.match(line)) and (parts := _mram_operands(load[3])):
            _rewrite_load(state, line, load, parts)
        elif (store := _STORE.match(line)) and (parts := _mram_operands(store[3])):
            _rewrite_store(state, line, store, parts)
        elif _BLOCK.search(line) and "p255" in line:
            state.out.append(_rewrite_block(line))
        elif _OTHER_ACCESS.search(line):
            raise CompileError(f"{place(lines, line, file)}: error: no atomic access to MRAM")
        else:
            state.out.append(line)
    return state.out + list(state.declared.values())


def _mram_operands(text: str) -> tuple[str, str, int] | None:
    """(type or typed value, pointer, alignment) of an access through an MRAM pointer."""
    parts = split_arguments(text)
    if len(parts) < 3 or not parts[1].startswith(_POINTER):
        return None
    alignment = next((part for part in parts[2:] if part.startswith("align ")), "align 1")
    return parts[0], parts[1][len(_POINTER) :], int(alignment[6:])


def _access(
    state: _Access, line: str, atomic: str | None, type_: str, alignment: int
) -> tuple[int, str, str]:
    """(bits, conversion, ending of the routine's name) of an access."""
    if atomic or type_ not in _TYPES:
        what = "atomic access" if atomic else f"access of type {type_}"
        raise CompileError(f"{place(state.lines, line, state.file)}: error: no {what} to MRAM")
    bits, cast = _TYPES[type_]
    return bits, cast, f"{bits}{'u' if alignment * 8 < bits else ''}"


def _rewrite_load(
    state: _Access, line: str, match: re.Match[str], parts: tuple[str, str, int]
) -> None:
    type_, pointer, alignment = parts
    bits, cast, ending = _access(state, line, match[2], type_, alignment)
    name = f"@__upmem_mram_load{ending}"
    state.declared[name] = f"declare i{bits} {name}(ptr addrspace(255))"
    call = f"call i{bits} {name}({_POINTER}{pointer}){debug_place(line)}"
    if not cast:
        state.out.append(match[1] + call)
        return
    back = {"zext": "trunc", "ptrtoint": "inttoptr", "bitcast": "bitcast"}[cast]
    value = state.fresh()
    state.out += [f"  {value} = {call}", f"{match[1]}{back} i{bits} {value} to {type_}"]


def _rewrite_store(
    state: _Access, line: str, match: re.Match[str], parts: tuple[str, str, int]
) -> None:
    type_, value = _split_typed(parts[0])
    bits, cast, ending = _access(state, line, match[2], type_, parts[2])
    name = f"@__upmem_mram_store{ending}"
    # a value narrower than a register must arrive extended, as C's callers do it
    extend = " zeroext" if bits < 32 else ""
    state.declared[name] = f"declare void {name}(ptr addrspace(255), i{bits}{extend})"
    if cast:
        converted = state.fresh()
        state.out.append(f"  {converted} = {cast} {type_} {value} to i{bits}")
        value = converted
    arguments = f"{_POINTER}{parts[1]}, i{bits}{extend} {value}"
    state.out.append(f"{match[1]}call void {name}({arguments}){debug_place(line)}")


def _split_typed(text: str) -> tuple[str, str]:
    """("i32", "%5") of "i32 %5", with the two-word pointer type kept together."""
    for type_ in sorted(_TYPES, key=len, reverse=True):
        if text.startswith(type_ + " "):
            return type_, text[len(type_) + 1 :]
    type_, _, value = text.partition(" ")
    return type_, value


def _rewrite_block(line: str) -> str:
    """memcpy and its like: the same arguments to a routine named after the memories."""
    line = _BLOCK.sub(_block_name, line)
    return line.replace(" immarg", "") if line.startswith("declare") else line


def _block_name(match: re.Match[str]) -> str:
    spaces = [{"p0": "w", "p255": "m"}[space] for space in match.groups()[1:] if space]
    return f"@__upmem_{match[1]}_{''.join(spaces)}"
