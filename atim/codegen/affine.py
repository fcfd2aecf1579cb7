"""Integer linear forms: index expressions and guards as coefficients, so that proofs are
arithmetic.

An `Affine` is a constant plus integer multiples of TIR variables. Ranges give each variable's
lowest and highest value; every bound derived here is sound for any values inside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from tvm import ir, tirx

Ranges = Mapping[tirx.Var, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Affine:
    """const + sum of coefficient * variable; terms keep their order, no coefficient is zero."""

    terms: Mapping[tirx.Var, int]
    const: int

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const + other)
        terms = dict(self.terms)
        for var, c in other.terms.items():
            terms[var] = terms.get(var, 0) + c
        return Affine({v: c for v, c in terms.items() if c}, self.const + other.const)

    def __mul__(self, factor: int) -> Affine:
        if factor == 0:
            return Affine({}, 0)
        return Affine({v: c * factor for v, c in self.terms.items()}, self.const * factor)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other if isinstance(other, int) else other * -1)

    def coefficient(self, var: tirx.Var) -> int:
        return self.terms.get(var, 0)

    def uses(self, variables: Iterable[tirx.Var]) -> bool:
        return any(v in self.terms for v in variables)

    def only(self, variables: Iterable[tirx.Var]) -> Affine:
        """The terms of these variables, without the constant."""
        chosen = set(variables)
        return Affine({v: c for v, c in self.terms.items() if v in chosen}, 0)

    def bounds(self, ranges: Ranges) -> tuple[int, int] | None:
        """Lowest and highest value, None if a variable's range is unknown."""
        low = high = self.const
        for var, c in self.terms.items():
            if var not in ranges:
                return None
            ends = (c * ranges[var][0], c * ranges[var][1])
            low, high = low + min(ends), high + max(ends)
        return low, high

    def divisible(self, factor: int) -> bool:
        """Every value is a multiple of factor, whatever the variables are."""
        return gcd(self.const, *self.terms.values()) % factor == 0

    def expr(self, dtype: str = "int32") -> ir.Expr:
        """The TIR expression: added terms, subtracted ones, the constant where it reads best."""
        added = [(v, c) for v, c in self.terms.items() if c > 0]
        taken = [(v, -c) for v, c in self.terms.items() if c < 0]
        constant = self.const
        result: ir.Expr | None = None
        if not added and (constant or not taken):
            result, constant = tirx.IntImm(dtype, constant), 0
        elif not added:
            var, c = taken.pop(0)
            result = var * tirx.IntImm(dtype, -c)
        for sign, terms in ((tirx.Add, added), (tirx.Sub, taken)):
            for var, c in terms:
                term = var if c == 1 else var * tirx.IntImm(dtype, c)
                result = term if result is None else sign(result, term)
        if constant:
            kind = tirx.Add if constant > 0 else tirx.Sub
            result = kind(result, tirx.IntImm(dtype, abs(constant)))
        return result


def affine(expr: ir.Expr, ranges: Ranges) -> Affine | None:
    """The linear form of an integer expression, None if it has none.

    Floor division and remainder by a constant are resolved where the ranges prove that the
    remainder part never carries, as in (16*a + b) // 16 with 0 <= b < 16.
    """
    kind = type(expr)
    if kind is tirx.Var:
        return Affine({expr: 1}, 0)
    if kind is tirx.IntImm:
        return Affine({}, int(expr.value))
    if kind is tirx.Add or kind is tirx.Sub:
        a, b = affine(expr.a, ranges), affine(expr.b, ranges)
        if a is None or b is None:
            return None
        return a + b if kind is tirx.Add else a - b
    if kind is tirx.Mul:
        a, b = affine(expr.a, ranges), affine(expr.b, ranges)
        if a is None or b is None or (a.terms and b.terms):
            return None
        return a * b.const if not b.terms else b * a.const
    if kind is tirx.FloorDiv or kind is tirx.FloorMod:
        a, b = affine(expr.a, ranges), affine(expr.b, ranges)
        if a is None or b is None or b.terms or b.const <= 0:
            return None
        return _divide(a, b.const, ranges, kind is tirx.FloorMod)
    if kind is tirx.Cast and str(expr.ty) in ("int32", "int64"):
        return affine(expr.value, ranges) if str(expr.value.ty) in ("int32", "int64") else None
    return None


def _divide(a: Affine, divisor: int, ranges: Ranges, remainder: bool) -> Affine | None:
    whole = {v: c // divisor for v, c in a.terms.items() if c % divisor == 0}
    rest = Affine(
        {v: c for v, c in a.terms.items() if c % divisor}, a.const - a.const // divisor * divisor
    )
    bounds = rest.bounds(ranges)
    if bounds is None or bounds[0] < 0 or bounds[1] >= divisor:
        return None
    return rest if remainder else Affine(whole, a.const // divisor)


def below_zero(condition: ir.Expr, ranges: Ranges) -> Affine | None:
    """The form f for which the condition is the same as f < 0, None if there is none."""
    kind = type(condition)
    if kind not in (tirx.LT, tirx.LE, tirx.GT, tirx.GE):
        return None
    a, b = affine(condition.a, ranges), affine(condition.b, ranges)
    if a is None or b is None:
        return None
    if kind is tirx.LT:
        return a - b
    if kind is tirx.LE:
        return a - b - 1
    return b - a if kind is tirx.GT else b - a - 1


def upper_bound(index: Affine, guards: Iterable[Affine], ranges: Ranges) -> int | None:
    """Highest value of index where every guard g < 0 holds: index = g*k + d <= d - k for each g."""
    plain = index.bounds(ranges)
    highest = plain[1] if plain is not None else None
    for guard in guards:
        for k in scales(index, guard):
            rest = (index - guard * k).bounds(ranges)
            if rest is not None and (highest is None or rest[1] - k < highest):
                highest = rest[1] - k
    return highest


def lower_bound(index: Affine, guards: Iterable[Affine], ranges: Ranges) -> int | None:
    """Lowest value of index where every guard g < 0 holds."""
    highest = upper_bound(index * -1, guards, ranges)
    return None if highest is None else -highest


def scales(index: Affine, guard: Affine) -> set[int]:
    """Positive factors k for which k * guard cancels a term of index."""
    return {
        index.terms[v] // c
        for v, c in guard.terms.items()
        if v in index.terms and index.terms[v] * c > 0 and index.terms[v] % c == 0
    }


def coarsest(form: Affine, ranges: Ranges) -> Affine:
    """A form that is negative for the same values, with as few variables as possible.

    64*a + 8*b + c - 1000 with 0 <= c < 8 is negative exactly when 8*a + b - 125 is.
    """
    for factor in sorted({abs(c) for c in form.terms.values()}, reverse=True):
        if factor == 1:
            break
        fine = Affine({v: c for v, c in form.terms.items() if c % factor}, form.const)
        bounds = fine.bounds(ranges)
        if bounds is not None and bounds[0] // factor == bounds[1] // factor:
            coarse = {v: c // factor for v, c in form.terms.items() if c % factor == 0}
            return Affine(coarse, bounds[0] // factor)
    return form


def less(form: Affine, dtype: str = "int32") -> tirx.LT:
    """The condition `form < 0`, written as terms < constant."""
    return tirx.LT((form - form.const).expr(dtype), tirx.IntImm(dtype, -form.const))
