"""Constant expressions and strings of assembly text.

In: text such as `sym+8`, `(1<<4)|2`, `.Lend-.Lbegin`. Out: an `int`, or a `Sym` to be resolved by
the linker; differences of labels of one section fold to numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from upmem_sim.errors import AsmError
from upmem_sim.isa import Sym

NAME = r"[A-Za-z_.$][\w.$]*"
_TOKEN = re.compile(
    rf"\s*(?:(?P<num>0[xX][0-9a-fA-F]+|0[bB][01]+(?![\w])|\d+(?![\w.$]))"
    rf"|(?P<name>{NAME})|(?P<chr>'(?:\\.|[^\\'])'?)"
    rf"|(?P<op><<|>>|[-+*/%&|^~()]))"
)
PLAIN = re.compile(rf"({NAME})(?:\s*([-+])\s*(\d+))?$")
_PRECEDENCE = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_DEPTH_LIMIT = 40
_LENGTH_LIMIT = 2000
_VALUE_LIMIT = 1 << 64
_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12, "v": 11, "a": 7, "e": 27}

# (section key, offset) of a label of the unit, or an absolute number, or None if unknown so far
Lookup = Callable[[str], tuple[int, int] | int | None]


@dataclass(frozen=True, slots=True)
class _Value:
    """number + sum of symbols with sign."""

    number: int
    plus: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()


def integer(text: str) -> int:
    """A number as assemblers write it: decimal, 0x, 0b, or octal with a leading 0."""
    try:
        if len(text) > 1 and text[0] == "0" and text[1] not in "xXbB":
            return int(text, 8)
        return int(text, 0)
    except ValueError:
        raise AsmError(f"not a number: {text[:40]}") from None


class _Parser:
    def __init__(self, text: str, lookup: Lookup) -> None:
        if len(text) > _LENGTH_LIMIT:
            raise AsmError(f"expression of {len(text)} characters, limit {_LENGTH_LIMIT}")
        self.text, self.lookup = text, lookup
        self.tokens = self._tokens(text)
        self.at = 0

    def _tokens(self, text: str) -> list[tuple[str, str]]:
        out, pos = [], 0
        while pos < len(text):
            match = _TOKEN.match(text, pos)
            if match is None:
                if text[pos:].strip():
                    raise AsmError(f"cannot read expression {text.strip()[:60]!r}")
                break
            kind = match.lastgroup or "op"
            out.append((kind, match.group(kind)))
            pos = match.end()
        return out

    def parse(self) -> _Value:
        value = self._binary(0, 0)
        if self.at != len(self.tokens):
            raise AsmError(f"cannot read expression {self.text.strip()[:60]!r}")
        return value

    def _next(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise AsmError(f"expression ends early: {self.text.strip()[:60]!r}")
        self.at += 1
        return self.tokens[self.at - 1]

    def _binary(self, level: int, depth: int) -> _Value:
        left = self._unary(depth)
        while self.at < len(self.tokens):
            kind, op = self.tokens[self.at]
            if kind != "op" or _PRECEDENCE.get(op, 0) <= level:
                break
            self.at += 1
            left = self._apply(op, left, self._binary(_PRECEDENCE[op], depth + 1))
        return left

    def _unary(self, depth: int) -> _Value:
        if depth > _DEPTH_LIMIT:
            raise AsmError(f"expression nested deeper than {_DEPTH_LIMIT}")
        kind, text = self._next()
        if kind == "num":
            return _Value(integer(text))
        if kind == "chr":
            return _Value(unescape(text[1:].removesuffix("'") or "'")[0])
        if kind == "name":
            found = self.lookup(text)
            return _Value(found) if isinstance(found, int) else _Value(0, (text,))
        if text == "(":
            value = self._binary(0, depth + 1)
            if self._next()[1] != ")":
                raise AsmError(f"missing ')' in {self.text.strip()[:60]!r}")
            return value
        if text in "+-~":
            value = self._unary(depth + 1)
            if text == "+":
                return value
            if text == "-":
                return _Value(-value.number, value.minus, value.plus)
            return _Value(~self._number(value))
        raise AsmError(f"cannot read expression {self.text.strip()[:60]!r}")

    def _number(self, value: _Value) -> int:
        value = fold(value, self.lookup)
        if value.plus or value.minus:
            raise AsmError(f"not a constant: {self.text.strip()[:60]!r}")
        return value.number

    def _apply(self, op: str, a: _Value, b: _Value) -> _Value:
        if op == "+":
            return _Value(a.number + b.number, a.plus + b.plus, a.minus + b.minus)
        if op == "-":
            return _Value(a.number - b.number, a.plus + b.minus, a.minus + b.plus)
        number = _calculate(op, self._number(a), self._number(b))
        if abs(number) >= _VALUE_LIMIT:
            raise AsmError(f"expression value beyond 64 bits: {self.text.strip()[:60]!r}")
        return _Value(number)


def _calculate(op: str, a: int, b: int) -> int:
    if op in ("/", "%"):
        if b == 0:
            raise AsmError("division by zero in an expression")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "/" else a - b * quotient
    if op in ("<<", ">>"):
        if not 0 <= b < 64:
            raise AsmError(f"shift by {b} in an expression, limit 63")
        return a << b if op == "<<" else a >> b
    return {"*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[op]


def fold(value: _Value, lookup: Lookup) -> _Value:
    """Replace `a - b` of labels in one section by the number it is."""
    number, plus, minus = value.number, list(value.plus), list(value.minus)
    for name in value.minus:
        at = lookup(name)
        for other in plus:
            where = lookup(other)
            same = isinstance(at, tuple) and isinstance(where, tuple) and at[0] == where[0]
            if other == name or same:
                number += 0 if other == name else where[1] - at[1]  # type: ignore[index]
                plus.remove(other)
                minus.remove(name)
                break
    return _Value(number, tuple(plus), tuple(minus))


def expression(text: str, lookup: Lookup) -> int | Sym:
    """Value of an expression; AsmError unless it is a number or one symbol plus a number."""
    value = fold(_Parser(text, lookup).parse(), lookup)
    if value.minus or len(value.plus) > 1:
        raise AsmError(f"{text.strip()[:60]!r} is neither a number nor a symbol plus a number")
    return Sym(value.plus[0], value.number) if value.plus else value.number


def unescape(body: str) -> bytes:
    """Bytes of the inside of a quoted string: C escapes, octal (3 digits) and hex."""
    out, i = bytearray(), 0
    while i < len(body):
        if body[i] != "\\" or i + 1 == len(body):
            out += body[i].encode()
            i += 1
            continue
        octal = re.compile(r"[0-7]{1,3}").match(body, i + 1)
        hexa = re.compile(r"x([0-9a-fA-F]+)").match(body, i + 1)
        if octal:
            out.append(int(octal.group(), 8) & 0xFF)
            i = octal.end()
        elif hexa:
            out.append(int(hexa.group(1)[-2:], 16))
            i = hexa.end()
        else:
            mark = body[i + 1]
            out += bytes([_ESCAPES[mark]]) if mark in _ESCAPES else mark.encode()
            i += 2
    return bytes(out)
