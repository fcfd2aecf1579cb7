"""Comparisons of 64-bit values in LLVM IR become two instructions.

A DPU subtracts the low words, then the high words with borrow, and the second subtraction's
condition sees the whole comparison (UPMEM SDK manual, 201_DPU_ABI; upmem/llvm-project, 64-bit
`brcc` and `setcc`). RV32 has no borrow and would test both halves, in five instructions and three
branches. The IR asks for a pseudo instruction `compare64.CC result, low, high, low, high`, which
`comparison` translates; a jump on its result is fused in jumps.py.
"""

from __future__ import annotations

import re

from upmem_sim.cc.flow import Node, analyse, make
from upmem_sim.cc.ir_text import debug_place

MNEMONIC = "compare64."
_CONDITIONS = {
    "slt": "lts", "sge": "ges", "sle": "xles", "sgt": "xgts",
    "ult": "ltu", "uge": "geu", "ule": "xleu", "ugt": "xgtu", "eq": "xz", "ne": "xnz",
}  # fmt: skip
_COMPARE = re.compile(
    r'^\s*(%[\w.$-]+|%"[^"]*") = icmp (?:samesign )?(\w+) i64 ([^,\s]+), ([^,\s]+)'
)
_MIN_MAX = re.compile(
    r'^\s*(%[\w.$-]+|%"[^"]*") = (?:(?:tail|musttail|notail) )?call i64 '
    r"@llvm\.(s|u)(min|max)\.i64\(i64 (?:noundef )?([^,\s]+), i64 (?:noundef )?([^,\s)]+)\)"
)
_WORD = (1 << 32) - 1
_HIGH_BITS = 11  # immediate of a compare and jump


def compare_words(lines: list[str]) -> list[str]:
    """IR lines with every 64-bit comparison that takes both words as the pseudo instruction."""
    out: list[str] = []
    for number, line in enumerate(lines):
        if " = icmp " in line and (match := _COMPARE.match(line)):
            name, predicate, a, b = match.groups()
            text = _comparison(number, name, predicate, a, b, debug_place(line))
            out += text or [line]
        elif "m" in line and (match := _MIN_MAX.match(line)):
            out += _choice(number, match, debug_place(line)) or [line]
        else:
            out.append(line)
    return out


def _choice(number: int, match: re.Match[str], place: str) -> list[str]:
    name, sign, which, a, b = match.groups()
    condition = f"%upmem.k{number}"
    predicate = sign + ("lt" if which == "min" else "gt")
    text = _comparison(number, condition, predicate, a, b, place)
    if not text:
        text = [f"  {condition} = icmp {predicate} i64 {a}, {b}{place}"]
    return [*text, f"  {name} = select i1 {condition}, i64 {a}, i64 {b}{place}"]


def _comparison(number: int, name: str, predicate: str, a: str, b: str, place: str) -> list[str]:
    """The comparison as IR lines; none where one word decides it, which LLVM sees itself."""
    constant = _constant(b)
    if constant is not None and _one_word(predicate, constant):
        return []
    if _constant(a) is not None or not a.startswith("%"):
        return []
    low_a, high_a, lines = _split(f"%upmem.k{number}a", a, place)
    operands, constraints = [low_a, high_a], ["r", "r"]
    if constant is None:
        low_b, high_b, more = _split(f"%upmem.k{number}b", b, place)
        lines += more
        operands += [low_b, high_b]
        constraints += ["r", "r"]
    else:
        high = (constant >> 32) - ((constant >> 63) << 32)
        short = -(1 << (_HIGH_BITS - 1)) <= high < 1 << (_HIGH_BITS - 1)
        operands += [str(constant & _WORD), str(high)]
        constraints += ["i", "i" if short else "r"]
    result = f"%upmem.k{number}r"
    # a constant low word may need the result's register, see `comparison`
    output = "=r" if constant is None else "=&r"
    arguments = ", ".join(f"i32 {operand}" for operand in operands)
    text = f"{MNEMONIC}{_CONDITIONS[predicate]} $0, $1, $2, $3, $4"
    return [
        *lines,
        f'  {result} = call i32 asm "{text}", "{output},{",".join(constraints)}"'
        f"({arguments}){place}",
        f"  {name} = icmp ne i32 {result}, 0{place}",
    ]


def _constant(operand: str) -> int | None:
    """An IR constant as an unsigned 64-bit number."""
    if operand in ("undef", "poison"):
        return 0
    return int(operand) & ((1 << 64) - 1) if re.fullmatch(r"-?\d+", operand) else None


def _one_word(predicate: str, constant: int) -> bool:
    low = constant & _WORD
    if predicate in ("eq", "ne"):
        return constant == 0
    return low == 0 if predicate[1:] in ("lt", "ge") else low == _WORD


def _split(prefix: str, value: str, place: str) -> tuple[str, str, list[str]]:
    low, shifted, high = f"{prefix}l", f"{prefix}s", f"{prefix}h"
    return low, high, [
        f"  {low} = trunc i64 {value} to i32{place}",
        f"  {shifted} = lshr i64 {value}, 32{place}",
        f"  {high} = trunc i64 {shifted} to i32{place}",
    ]  # fmt: skip


def comparison(condition: str, operands: list[str | int]) -> list[Node]:
    """DPU instructions of the pseudo instruction: result, low and high words of both sides."""
    result, low_a, high_a, low_b, high_b = (0 if o == "zero" else o for o in operands)
    out: list[Node] = []
    if isinstance(low_a, int) and isinstance(low_b, int):
        # the first source of a flags-only subtraction with a constant is a general register
        out.append(make("move", result, low_b))
        low_b = result
    out.append(make("sub", "zero", _first(low_a), low_b))
    out.append(analyse(Node("subc", [result, _first(high_a), high_b], condition)))
    return out


def _first(operand: str | int) -> str | int:
    return "zero" if operand == 0 else operand
