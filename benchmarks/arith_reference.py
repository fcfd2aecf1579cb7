"""What the arithmetic routines must return, from NumPy, and operands that find mistakes.

`ROUTINES` is the list of every routine of the run time, `expected` its result on arrays,
`special` and `random` its operands. Conversions out of range saturate, NaN by its sign; fmin and
fmax order -0 before +0 (C leaves both open).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arith_driver import Routine

Array = NDArray[Any]


def _quotient(a: Array, b: Array) -> Array:
    """Truncating division that wraps at the smallest integer / -1."""
    if a.dtype.kind == "u":
        return a // b
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    size_a = np.where(a < 0, 0 - a.view(unsigned), a.view(unsigned))
    size_b = np.where(b < 0, 0 - b.view(unsigned), b.view(unsigned))
    size = size_a // size_b
    return np.where((a < 0) != (b < 0), 0 - size, size).view(a.dtype)


def _order(a: Array, b: Array) -> Array:
    return (a > b).astype(np.int32) - (a < b).astype(np.int32)


def _compare(unordered: int) -> Callable[[Array, Array], Array]:
    def result(a: Array, b: Array) -> Array:
        return np.where(np.isnan(a) | np.isnan(b), unordered, _order(a, b)).astype(np.int32)

    return result


def _integer(kind: str) -> Callable[[Array], Array]:
    def result(a: Array) -> Array:
        info = np.iinfo(kind)
        low, high = float(info.min), float(info.max) + 1.0  # a power of two, exact
        fits = (a > low - 1) & (a < high) if info.bits == 32 else (a >= low) & (a < high)
        inside = np.trunc(np.where(fits, a, 0)).astype(kind)
        return np.where(fits, inside, np.where(np.signbit(a), info.min, info.max)).astype(kind)

    return result


def _least(sign: int) -> Callable[[Array, Array], Array]:
    def result(a: Array, b: Array) -> Array:
        first = (a < b) if sign < 0 else (a > b)
        first |= (a == b) & (np.signbit(a) == (sign < 0))
        return np.where(np.isnan(a), b, np.where(np.isnan(b) | first, a, b))

    return result


def _bits(a: Array) -> Array:
    width = 8 * a.dtype.itemsize
    return np.unpackbits(np.ascontiguousarray(a).view(np.uint8), bitorder="little").reshape(
        -1, width
    )


def _leading(a: Array) -> Array:
    return _first_one(_bits(a)[:, ::-1])


def _trailing(a: Array) -> Array:
    return _first_one(_bits(a))


def _first_one(bits: Array) -> Array:
    place: Array = np.where(bits.any(1), bits.argmax(1), bits.shape[1])
    return place


def _ones(a: Array) -> Array:
    count: Array = _bits(a).sum(1)
    return count


Reference = Callable[..., Array]
_TABLE: list[tuple[str, str, Reference]] = [
    ("__mulsi3", "u4 u4 u4", np.multiply),
    ("__muldi3", "u8 u8 u8", np.multiply),
    ("__ashldi3", "u8 u4 u8", lambda a, s: a << (s & 63)),
    ("__lshrdi3", "u8 u4 u8", lambda a, s: a >> (s & 63)),
    ("__ashrdi3", "i8 u4 i8", lambda a, s: a >> (s & 63).astype(np.int64)),
]
for _i, _b in (("si", 4), ("di", 8)):
    _n, _u = f"i{_b}", f"u{_b}"
    _TABLE += [
        (f"__div{_i}3", f"{_n} {_n} {_n}", _quotient),
        (f"__mod{_i}3", f"{_n} {_n} {_n}", lambda a, b: a - _quotient(a, b) * b),
        (f"__udiv{_i}3", f"{_u} {_u} {_u}", np.floor_divide),
        (f"__umod{_i}3", f"{_u} {_u} {_u}", np.remainder),
        (f"__clz{_i}2", f"{_u} u4", _leading),
        (f"__ctz{_i}2", f"{_u} u4", _trailing),
        (f"__popcount{_i}2", f"{_u} u4", _ones),
    ]
for _f, _n in (("sf", "f4"), ("df", "f8")):
    for _name, _function in (
        ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)
    ):  # fmt: skip
        _TABLE.append((f"__{_name}{_f}3", f"{_n} {_n} {_n}", _function))
    for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
        _unordered = -1 if _name[0] == "g" else 1
        _TABLE.append((f"__{_name}{_f}2", f"{_n} {_n} i4", _compare(_unordered)))
    _TABLE.append((f"__unord{_f}2", f"{_n} {_n} i4", lambda a, b: np.isnan(a) | np.isnan(b)))
    for _name, _kind in (("fix", "i"), ("fixuns", "u")):
        for _i, _b in (("si", 4), ("di", 8)):
            _TABLE.append((f"__{_name}{_f}{_i}", f"{_n} {_kind}{_b}", _integer(f"{_kind}{_b}")))
    for _name, _kind in (("float", "i"), ("floatun", "u")):
        for _i, _b in (("si", 4), ("di", 8)):
            _TABLE.append((f"__{_name}{_i}{_f}", f"{_kind}{_b} {_n}", lambda a, n=_n: a.astype(n)))
    _end = "f" if _f == "sf" else ""
    _TABLE.append((f"sqrt{_end}", f"{_n} {_n}", np.sqrt))
    _TABLE.append((f"fmin{_end}", f"{_n} {_n} {_n}", _least(-1)))
    _TABLE.append((f"fmax{_end}", f"{_n} {_n} {_n}", _least(1)))
_TABLE.append(("__extendsfdf2", "f4 f8", lambda a: a.astype("f8")))
_TABLE.append(("__truncdfsf2", "f8 f4", lambda a: a.astype("f4")))

ROUTINES: dict[str, Routine] = {
    name: Routine(name, tuple(kinds.split()[:-1]), kinds.split()[-1]) for name, kinds, _ in _TABLE
}
_REFERENCES = {name: function for name, _, function in _TABLE}


def expected(routine: Routine, *arrays: Array) -> Array:
    """The exact result for each element."""
    with np.errstate(all="ignore"):
        return np.asarray(_REFERENCES[routine.name](*arrays)).astype(routine.result, copy=False)


def wrong(routine: Routine, got: Array, want: Array) -> Array:
    """Which results differ: every bit counts, but any NaN is as good as another."""
    bits = np.dtype(f"u{want.dtype.itemsize}")
    differ: Array = got.view(bits) != want.view(bits)
    if want.dtype.kind == "f":
        differ &= ~(np.isnan(got) & np.isnan(want))
    return differ


# -------------------------------------------------------------------------------- operands


def _special_floats(kind: str) -> Array:
    bits, fraction, bias = (32, 23, 127) if kind == "f4" else (64, 52, 1023)
    top = 2 * bias + 1  # exponent field of infinity
    one, hidden = 1, 1 << fraction
    values = {0, 1, 2, 3, hidden // 2, hidden - 1, hidden, hidden + 1}
    values |= {(top << fraction) + d for d in (-2, -1, 0, 1, hidden // 2, hidden - 1)}
    for exponent in (1, bias // 2, bias // 2 + 1, bias - 2, bias - 1, bias, bias + 1, bias + 2):
        values |= {(exponent << fraction) + d for d in (-1, 0, 1, hidden // 2)}
    # where rounding and conversions change: 2^22 .. 2^24, 2^31 .. 2^33, 2^52 .. 2^54, 2^63 .. 2^65
    for exponent in (22, 23, 24, 31, 32, 33, 52, 53, 54, 63, 64, 65, -24, -25, -53, -54):
        values |= {((bias + exponent) << fraction) + d for d in (-1, 0, 1)}
    values |= {((bias + bias // 2 + d) << fraction) + one for d in (0, 1, 2)}
    if kind == "f8":  # the limits of float32
        for exponent in (127, 128, -126, -127, -149, -150, -151):
            place = (bias + exponent) << fraction
            values |= {place + d for d in (-1, 0, 1, 1 << 28, (1 << 28) + 1, -(1 << 28))}
    signed = sorted(values | {v | 1 << (bits - 1) for v in values})
    return np.array(signed, f"u{bits // 8}").view(kind)


def _special_integers(kind: str) -> Array:
    bits = 8 * np.dtype(kind).itemsize
    places = {
        1 << i for i in (0, 1, 7, 8, 15, 16, 20, 23, 24, 25, 31, 32, 53, 54, 62, 63) if i < bits
    }
    values = {v + d for v in places for d in (-1, 0, 1)} | {10, 100, 0x5555_5555, 0xAAAA_AAAA}
    values |= {(1 << bits) - v for v in set(values)}
    return np.array(sorted(v % (1 << bits) for v in values), f"u{bits // 8}").view(kind)


def _legal(routine: Routine, arrays: list[Array]) -> list[Array]:
    """Divisions by zero fault, so they are left out."""
    if routine.name.endswith("i3") and ("div" in routine.name or "mod" in routine.name):
        keep = arrays[1] != 0
        return [array[keep] for array in arrays]
    return arrays


def special(routine: Routine) -> list[Array]:
    """Every special value with every other one."""
    sets = [
        _special_floats(kind) if kind[0] == "f" else _special_integers(kind)
        for kind in routine.args
    ]
    grid = np.meshgrid(*sets, indexing="ij")
    return _legal(routine, [np.ascontiguousarray(axis.reshape(-1)) for axis in grid])


def _random_floats(rng: np.random.Generator, kind: str, count: int) -> Array:
    """A mixture: any bits; exponents near 1; few significant bits (ties); near the smallest."""
    bits, fraction, bias = (32, 23, 127) if kind == "f4" else (64, 52, 1023)
    any_bits = rng.integers(0, 1 << bits, count, np.uint64, endpoint=False) if bits == 32 else (
        rng.integers(0, (1 << 64) - 1, count, np.uint64, endpoint=True)
    )  # fmt: skip
    mantissa = any_bits & np.uint64((1 << fraction) - 1)
    sign = any_bits & np.uint64(1 << (bits - 1))
    short = mantissa >> rng.integers(0, fraction + 1, count, np.uint64)
    short = short << rng.integers(0, fraction + 1, count, np.uint64) & np.uint64(
        (1 << fraction) - 1
    )
    near = rng.integers(bias - fraction - 8, bias + fraction + 9, count, np.uint64)
    closer = rng.integers(bias - 2, bias + 3, count, np.uint64)
    small = rng.integers(0, 2 * fraction + 6, count, np.uint64)
    shift = np.uint64(fraction)
    choices = [any_bits, sign | near << shift | mantissa, sign | closer << shift | short,
               sign | small << shift | mantissa, sign | near << shift | short]  # fmt: skip
    picked = np.choose(rng.integers(0, len(choices), count), choices)
    return picked.astype(f"u{bits // 8}").view(kind)


def _random_integers(rng: np.random.Generator, kind: str, count: int) -> Array:
    bits = 8 * np.dtype(kind).itemsize
    values = rng.integers(0, (1 << 64) - 1, count, np.uint64, endpoint=True) >> np.uint64(64 - bits)
    values >>= rng.integers(0, bits, count, np.uint64)
    negative = np.uint64(0) - values
    return (
        np.where(rng.integers(0, 3, count) == 0, negative, values)
        .astype(f"u{bits // 8}")
        .view(kind)
    )


def _pair_up(rng: np.random.Generator, kind: str, first: Array, second: Array) -> Array:
    """Second operands that nearly cancel, equal or scale the first to the edge of the range."""
    bits, fraction, bias = (32, 23, 127) if kind == "f4" else (64, 52, 1023)
    whole = np.dtype(f"u{bits // 8}")
    count = len(first)
    raw = first.view(whole)
    flip = rng.integers(0, 8, count).astype(whole)
    close = raw ^ flip ^ (rng.integers(0, 2, count).astype(whole) << whole.type(bits - 1))
    exponent = (raw >> whole.type(fraction)).astype(np.int64) & (2 * bias + 1)
    least = rng.integers(-2, fraction + 3, count)
    to_smallest = np.clip(bias - exponent - least + 1, 0, 2 * bias)
    edge = second.view(whole) & whole.type((1 << fraction) - 1)
    edge |= to_smallest.astype(whole) << whole.type(fraction)
    picked = np.choose(rng.integers(0, 4, count), [second.view(whole)] * 2 + [close, edge])
    return picked.astype(whole).view(kind)


def random(routine: Routine, rng: np.random.Generator, count: int) -> list[Array]:
    """About `count` random operands."""
    arrays = [
        _random_floats(rng, kind, count) if kind[0] == "f" else _random_integers(rng, kind, count)
        for kind in routine.args
    ]
    if len(arrays) == 2 and routine.args[0][0] == "f":
        arrays[1] = _pair_up(rng, routine.args[0], arrays[0], arrays[1])
    return _legal(routine, arrays)
