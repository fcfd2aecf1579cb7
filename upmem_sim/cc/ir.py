"""Rewrite LLVM IR text between optimisation and RV32 code generation.

What UPMEM's own back end does before instruction selection and RV32's does not:
products of 8- and 16-bit values become byte multiplies (upmem/llvm-project, DPUTargetLowering),
loads and stores through MRAM pointers (address space 255) become calls of a software access.
Also refuses what has no meaning on a DPU: an MRAM pointer cast to a WRAM pointer, DMA sizes the
hardware cannot transfer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from upmem_sim.errors import CompileError

_MRAM = "addrspace(255)"
_LOAD = re.compile(r"(\s*%[\w.]+ = )load (atomic )?(?:volatile )?(.*)$")
_STORE = re.compile(r"(\s*)store (atomic )?(?:volatile )?(.*)$")
_POINTER = "ptr addrspace(255) "
_OTHER_ACCESS = re.compile(r"= (?:atomicrmw|cmpxchg) .*ptr addrspace\(255\)")
_BLOCK = re.compile(r"@llvm\.(memcpy|memmove|memset)(?:\.inline)?\.(p0|p255)(?:\.(p0|p255))?\.i32")
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


def rewrite(text: str, file: str) -> str:
    """IR text with DPU forms. `file` names the C source in errors.

    Errors: CompileError with file:line when debug lines are in the IR.
    """
    # RV32's own convention for local functions passes arguments in temporaries as well
    text = text.replace(" fastcc ", " ").replace(" coldcc ", " ")
    if _MRAM not in text and _BAD_SIZE not in text and " = mul " not in text:
        return text
    lines = text.split("\n")
    if _MRAM in text or _BAD_SIZE in text:
        _refuse(lines, file)
        lines = _software_access(lines, file)
    if " = mul " in text:
        lines = _narrow_products(lines)
    return "\n".join(lines)


# --------------------------------------------------------------------------------- refusals


def _refuse(lines: list[str], file: str) -> None:
    for line in lines:
        if "addrspacecast" in line and not line.startswith("@llvm."):
            raise CompileError(
                f"{_place(lines, line, file)}: error: MRAM pointer used as a WRAM pointer "
                "(or the reverse); copy with mram_read or mram_write"
            )
        if _BAD_SIZE in line and "call" in line:
            raise CompileError(
                f"{_place(lines, line, file)}: error: mram_read/mram_write: the size must be "
                "a multiple of 8 from 8 to 2048 bytes"
            )


def _place(lines: list[str], line: str, file: str) -> str:
    """file:line of an IR instruction, following inlined calls outwards."""
    match = re.search(r"!dbg (!\d+)", line)
    number = 0
    while match:
        head = match[1] + " = "
        entry = next((text for text in lines if text.startswith(head)), "")
        found = re.search(r"line: (\d+)", entry)
        number = int(found[1]) if found else number
        match = re.search(r"inlinedAt: (!\d+)", entry)
    return f"{file}:{number}" if number else file


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
            raise CompileError(f"{_place(lines, line, file)}: error: no atomic access to MRAM")
        else:
            state.out.append(line)
    return state.out + list(state.declared.values())


def _mram_operands(text: str) -> tuple[str, str, int] | None:
    """(type or typed value, pointer, alignment) of an access through an MRAM pointer."""
    parts = _split_arguments(text)
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
        raise CompileError(f"{_place(state.lines, line, state.file)}: error: no {what} to MRAM")
    bits, cast = _TYPES[type_]
    return bits, cast, f"{bits}{'u' if alignment * 8 < bits else ''}"


def _rewrite_load(
    state: _Access, line: str, match: re.Match[str], parts: tuple[str, str, int]
) -> None:
    type_, pointer, alignment = parts
    bits, cast, ending = _access(state, line, match[2], type_, alignment)
    name = f"@__upmem_mram_load{ending}"
    state.declared[name] = f"declare i{bits} {name}(ptr addrspace(255))"
    call = f"call i{bits} {name}({_POINTER}{pointer}){_debug(line)}"
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
    state.out.append(f"{match[1]}call void {name}({arguments}){_debug(line)}")


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


def _debug(line: str) -> str:
    match = re.search(r", !dbg !\d+", line)
    return match[0] if match else ""


# --------------------------------------------------------------------------------- products

_DEF = re.compile(
    r"^\s*(%[\w.]+) = (sext|zext|trunc|lshr|ashr|and|mul)((?: nuw| nsw| nneg| exact)*) "
    r"(i\d+) (%?[-\w.]+)(?: to (i\d+)|, (%?[-\w.]+))"
)


_Values = dict[str, tuple[str, str, str, str]]  # name -> operation, type, operand, other or type
_UNKNOWN = ("", "", "", "")


@dataclass(frozen=True, slots=True)
class _Narrow:
    """A value of at most 16 bits: where its bits are, and how they extend.

    register  IR value of 32 bits that holds them
    byte      "l" or "h": which byte of it (8-bit values)
    signed    how the bits extend
    bits      at most 8 for a byte product, else at most 16
    setup     IR line that makes `register`, if it does not exist yet
    whole     the 32-bit value extended from these bits
    """

    register: str
    byte: str
    signed: bool
    bits: int
    setup: str = ""
    whole: str = ""


def _narrow_products(lines: list[str]) -> list[str]:
    out: list[str] = []
    values: _Values = {}
    for line in lines:
        if line.startswith("define"):
            values = {}
        match = _DEF.match(line) if " = " in line else None
        if match:
            values[match[1]] = (match[2], match[4], match[5], match[6] or match[7])
            if match[2] == "mul" and match[4] in ("i16", "i32") and match[7]:
                line = _product(values, match, line)
        out.append(line)
    return out


def _product(values: _Values, match: re.Match[str], line: str) -> str:
    a, b = (_narrow(values, name, match[1]) for name in (match[5], match[7]))
    if a is None or b is None:
        return line
    if not a.signed and b.signed:
        a, b = b, a
    indent = re.match(r"\s*", line)
    head, tail = (indent[0] if indent else ""), _debug(line)
    setup = a.setup + (b.setup if b.register != a.register else "")
    result = match[1]
    value = result if match[4] == "i32" else f"%upmem.w{result[1:]}"
    arguments = f"(i32 {a.register}, i32 {b.register}){tail}"
    whole = f"(i32 {a.whole}, i32 {b.whole}){tail}"
    if max(a.bits, b.bits) == 8:
        op = f"mul_{_letter(a)}{a.byte}_{_letter(b)}{b.byte}"
        text = setup + f'{head}{value} = call i32 asm "{op} $0, $1, $2", "=r,r,r"{arguments}'
    else:
        pair = f"%upmem.p{result[1:]}"
        text = (
            setup
            + f'{head}{pair} = call {{ i32, i32 }} asm "{_wide(a, b)}", "=&r,=&r,r,r"{whole}\n'
        )
        text += f"{head}{value} = extractvalue {{ i32, i32 }} {pair}, 0"
    if value != result:
        text += f"\n{head}{result} = trunc i32 {value} to i16"
    return text


def _letter(value: _Narrow) -> str:
    return "s" if value.signed else "u"


def _wide(a: _Narrow, b: _Narrow) -> str:
    """16 x 16 bits: one byte product if both high bytes are zero, else four of them."""
    x, y = _letter(a), _letter(b)
    return "\\0A".join(
        (
            "mul_ul_ul $0, $2, $3, small, .Lmul${:uid}",
            f"mul_{x}h_ul $1, $2, $3",
            "lsl_add $0, $0, $1, 8",
            f"mul_{y}h_ul $1, $3, $2",
            "lsl_add $0, $0, $1, 8",
            f"mul_{x}h_{y}h $1, $2, $3",
            "lsl_add $0, $0, $1, 16",
            ".Lmul${:uid}:",
        )
    )


def _narrow(values: _Values, name: str, result: str) -> _Narrow | None:
    """What is known of an operand of a product, None if it may need more than 16 bits."""
    op, type_, source, other = values.get(name, _UNKNOWN)
    if op in ("sext", "zext"):
        return _extended(values, name, result)
    if type_ != "i32" or not other.isdigit():
        return None
    number = int(other)
    if op == "and":
        if number == 255:
            return _byte_of(values, source, False, name)
        bits = max(8, number.bit_length())
        return _Narrow(name, "l", False, max(8, bits), whole=name) if bits <= 16 else None
    if op in ("lshr", "ashr") and 16 <= number < 32:
        return _Narrow(name, "l", op == "ashr", 8 if number >= 24 else 16, whole=name)
    return None


def _extended(values: _Values, name: str, result: str) -> _Narrow | None:
    op, type_, source, to = values[name]
    if type_ not in ("i1", "i8", "i16") or to not in ("i16", "i32"):
        return None
    signed = op == "sext"
    inner = values.get(source, _UNKNOWN)
    if type_ == "i8" and inner[:2] == ("trunc", "i32"):
        return _byte_of(values, inner[2], signed, name)
    bits = 16 if type_ == "i16" else 8
    if to == "i32":
        return _Narrow(name, "l", signed, bits, whole=name)
    register = f"%upmem.x{name[1:]}.{result[1:]}"
    return _Narrow(register, "l", signed, bits, f"  {register} = {op} {type_} {source} to i32\n")


def _byte_of(values: _Values, source: str, signed: bool, whole: str) -> _Narrow:
    """The low byte of a 32-bit value, or byte 1 of the value it was shifted down from."""
    op, type_, origin, shift = values.get(source, _UNKNOWN)
    if op in ("lshr", "ashr") and type_ == "i32" and shift == "8" and origin.startswith("%"):
        return _Narrow(origin, "h", signed, 8, whole=whole)
    return _Narrow(source, "l", signed, 8, whole=whole)


# -------------------------------------------------------------------------------- signatures

_FUNCTION = re.compile(r"^(?:define|declare) (.*?)@([\w.$]+)\((.*)\)(?:[^)]*)$")
_RETURN = re.compile(r"(void|i\d+|float|double|ptr(?: addrspace\(255\))?|\{.*\}|\[.*\]|<.*>) $")
_WORDS = {"i1": 1, "i8": 1, "i16": 1, "i32": 1, "i64": 2, "float": 1, "double": 2, "ptr": 1}


@dataclass(frozen=True, slots=True)
class Signature:
    """How many 32-bit argument and result registers a function uses, None where unknown."""

    arguments: int | None
    results: int | None


def signatures(text: str) -> dict[str, Signature]:
    """Functions of a module: what their calls read, and what their returns hand over."""
    out: dict[str, Signature] = {}
    for line in text.split("\n"):
        if not line.startswith(("define ", "declare ")):
            continue
        match = _FUNCTION.match(line)
        if match and not match[2].startswith("llvm."):
            out[match[2]] = Signature(_argument_words(match[3]), _result_words(match[1]))
    return out


def _result_words(head: str) -> int | None:
    match = _RETURN.search(head)
    if match is None:
        return None
    if match[1] == "void":
        return 0
    return _WORDS.get(match[1].split(" ")[0])


def _argument_words(text: str) -> int | None:
    """Registers of the arguments; unknown for variable or aggregate ones."""
    if not text:
        return 0
    if "..." in text or "{" in text or "[" in text or "<" in text:
        return None
    words = 0
    for part in _split_arguments(text):
        count = _WORDS.get(part.split(" ")[0])
        if count is None:
            return None
        words += count
    return words


_DEPTH = {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}


def _split_arguments(text: str) -> list[str]:
    """Parts between commas that stand outside all brackets."""
    out, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += _DEPTH.get(char, 0)
        if char == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    out.append(text[start:].strip())
    return out
