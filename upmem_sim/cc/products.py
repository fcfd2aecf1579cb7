"""Products of 8- and 16-bit values in LLVM IR become the DPU's byte multiplies.

UPMEM's own back end does this before instruction selection (upmem/llvm-project,
DPUTargetLowering): one instruction for bytes, and for 16 bits one if both high bytes are zero,
else four byte products. RV32 without multiplier would call `__mulsi3`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from upmem_sim.cc.ir_text import debug_place

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


def narrow_products(lines: list[str]) -> list[str]:
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
    head, tail = (indent[0] if indent else ""), debug_place(line)
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
