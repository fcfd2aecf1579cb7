"""float32 operations in LLVM IR become instructions of a hypothetical float unit (isa.py, `UNITS`).

What is left (sign changes, copies, 64-bit conversions, square roots) is compiled as without a unit:
to integer operations and calls of the library. Predicates: LLVM language reference, `fcmp`.
"""

from __future__ import annotations

import re

from upmem_sim.cc.ir_text import debug_place

_VALUE = r"(%?[-+.\w]+)"
_FLAGS = r"(?: (?:nnan|ninf|nsz|arcp|contract|afn|reassoc|fast|nneg))*"
_ARITHMETIC = re.compile(
    rf"^(\s*)(%[\w.]+) = (fadd|fsub|fmul|fdiv){_FLAGS} float {_VALUE}, {_VALUE}"
)
_COMPARE = re.compile(rf"^(\s*)(%[\w.]+) = fcmp{_FLAGS} (\w+) float {_VALUE}, {_VALUE}")
_TO_INTEGER = re.compile(rf"^(\s*)(%[\w.]+) = fpto([su])i float {_VALUE} to i(8|16|32)\b")
_FROM_INTEGER = re.compile(rf"^(\s*)(%[\w.]+) = ([su])itofp{_FLAGS} i(1|8|16|32) {_VALUE} to float")
_LEAST = re.compile(
    r"^(\s*)(%[\w.]+) = (?:tail |notail )?call[\w ]* float "
    r"@(?:llvm\.)?(fmin|fmax|minnum|maxnum)(?:f|\.f32)\("
    rf"float(?: noundef)? {_VALUE}, float(?: noundef)? {_VALUE}\)"
)
# predicate -> comparisons ("ab" or "ba" is the order of the operands), how they join, negated
_PREDICATES: dict[str, tuple[tuple[str, ...], str, bool]] = {
    "oeq": (("feq ab",), "", False), "une": (("feq ab",), "", True),
    "olt": (("flt ab",), "", False), "uge": (("flt ab",), "", True),
    "ogt": (("flt ba",), "", False), "ule": (("flt ba",), "", True),
    "ole": (("fle ab",), "", False), "ugt": (("fle ab",), "", True),
    "oge": (("fle ba",), "", False), "ult": (("fle ba",), "", True),
    "one": (("flt ab", "flt ba"), "or", False), "ueq": (("flt ab", "flt ba"), "or", True),
    "ord": (("feq aa", "feq bb"), "and", False), "uno": (("feq aa", "feq bb"), "and", True),
}  # fmt: skip


class _Rewriter:
    """One line of IR: what takes its place, with new names after that of the result."""

    def __init__(self, line: str, head: str, result: str) -> None:
        self.head, self.result, self.tail = head, result, debug_place(line)
        self.stem = f"%upmem.f{result[1:]}"
        self.out: list[str] = []

    def define(self, text: str, name: str = "") -> str:
        name = name or f"{self.stem}.{len(self.out)}"
        self.out.append(f"{self.head}{name} = {text}")
        return name

    def bits(self, value: str) -> str:
        return self.define(f"bitcast float {value} to i32")

    def unit(self, op: str, *sources: str) -> str:
        text = f"{op} $0, " + ", ".join(f"${i}" for i in range(1, len(sources) + 1))
        constraints = ",".join(["=r", *["r"] * len(sources)])
        arguments = ", ".join(f"i32 {source}" for source in sources)
        return self.define(f'call i32 asm "{text}", "{constraints}"({arguments}){self.tail}')

    def text(self, final: str) -> str:
        self.define(final, self.result)
        return "\n".join(self.out)


def float_units(lines: list[str]) -> list[str]:
    """IR lines with float32 arithmetic, comparisons and conversions as instructions."""
    return [_line(line) if "float" in line and " = " in line else line for line in lines]


def _line(line: str) -> str:
    for pattern, rewrite in _FORMS:
        match = pattern.match(line)
        if match:
            return rewrite(_Rewriter(line, match[1], match[2]), match)
    return line


def _arithmetic(r: _Rewriter, match: re.Match[str]) -> str:
    a, b = r.bits(match[4]), r.bits(match[5])
    return r.text(f"bitcast i32 {r.unit(match[3], a, b)} to float")


def _least(r: _Rewriter, match: re.Match[str]) -> str:
    op = "fmin" if "min" in match[3] else "fmax"
    a, b = r.bits(match[4]), r.bits(match[5])
    return r.text(f"bitcast i32 {r.unit(op, a, b)} to float")


def _compare(r: _Rewriter, match: re.Match[str]) -> str:
    if match[3] in ("true", "false"):
        return r.text(f"icmp {'eq' if match[3] == 'true' else 'ne'} i32 0, 0")
    tests, join, negated = _PREDICATES[match[3]]
    sources = {"a": r.bits(match[4]), "b": r.bits(match[5])}
    found = [r.unit(t[:3], sources[t[4]], sources[t[5]]) for t in tests]
    holds = r.define(f"{join} i32 {found[0]}, {found[1]}") if join else found[0]
    return r.text(f"icmp {'eq' if negated else 'ne'} i32 {holds}, 0")


def _to_integer(r: _Rewriter, match: re.Match[str]) -> str:
    whole = match[5] == "32"
    op = "f2u" if whole and match[3] == "u" else "f2s"
    found = r.unit(op, r.bits(match[4]))
    return r.text(f"add i32 {found}, 0" if whole else f"trunc i32 {found} to i{match[5]}")


def _from_integer(r: _Rewriter, match: re.Match[str]) -> str:
    source = match[5]
    if match[4] != "32":
        extend = "sext" if match[3] == "s" else "zext"
        source = r.define(f"{extend} i{match[4]} {source} to i32")
    return r.text(f"bitcast i32 {r.unit(f'{match[3]}2f', source)} to float")


_FORMS = (
    (_ARITHMETIC, _arithmetic),
    (_COMPARE, _compare),
    (_TO_INTEGER, _to_integer),
    (_FROM_INTEGER, _from_integer),
    (_LEAST, _least),
)
