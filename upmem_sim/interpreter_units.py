"""What the instructions of hypothetical cores compute, in Python numbers of twice their precision.

No UPMEM chip has them; they are those of isa.py's `UNITS`. A double holds the sum, difference,
product or quotient of two float32 well enough that rounding it once more, to float32, gives what
IEEE-754 asks for. Used by `interpreter.py`; written from the meaning, not from the engine.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from upmem_sim.interpreter_alu import M32, signed

_NAN, _INFINITY, _SIGN = 0x7FC0_0000, 0x7F80_0000, 0x8000_0000


def _value(word: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", word))[0]
    return value


def _word(value: float) -> int:
    """Bits of the nearest float32, ties to even; all NaN are one."""
    if math.isnan(value):
        return _NAN
    try:
        word: int = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return _INFINITY | (_SIGN if value < 0 else 0)
    return word


def _divide(a: float, b: float) -> float:
    if b or math.isnan(b):
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _arithmetic(operation: Callable[[float, float], float]) -> Callable[[int, int], int]:
    return lambda a, b: _word(operation(_value(a), _value(b)))


def _least(a: int, b: int, largest: bool) -> int:
    x, y = _value(a), _value(b)
    if math.isnan(x):
        return b
    if math.isnan(y):
        return a
    first, second = (x, math.copysign(1.0, x)), (y, math.copysign(1.0, y))
    return a if (first >= second if largest else first < second) else b


def _class(a: int) -> int:
    x, negative = _value(a), a >> 31
    if math.isnan(x):
        return 1 << (9 if a >> 22 & 1 else 8)
    sizes = (x == 0, abs(x) < 2.0**-126, not math.isinf(x), True)
    size = sizes.index(True)
    return 1 << (3 - size if negative else 4 + size)


def _integer(low: int, high: int) -> Callable[[int], int]:
    def convert(a: int) -> int:
        x = _value(a)
        if math.isnan(x) or math.isinf(x):
            return (low if a >> 31 else high) & M32
        return min(max(int(x), low), high) & M32

    return convert


UNIT: dict[str, Callable[..., int]] = {
    "mul32": lambda a, b: a * b & M32,
    "mulhs32": lambda a, b: signed(a) * signed(b) >> 32 & M32,
    "mulhsu32": lambda a, b: signed(a) * b >> 32 & M32,
    "mulhu32": lambda a, b: a * b >> 32,
    "fadd": _arithmetic(lambda a, b: a + b),
    "fsub": _arithmetic(lambda a, b: a - b),
    "fmul": _arithmetic(lambda a, b: a * b),
    "fdiv": _arithmetic(_divide),
    "feq": lambda a, b: int(_value(a) == _value(b)),
    "flt": lambda a, b: int(_value(a) < _value(b)),
    "fle": lambda a, b: int(_value(a) <= _value(b)),
    "fmin": lambda a, b: _least(a, b, False),
    "fmax": lambda a, b: _least(a, b, True),
    "fsgnj": lambda a, b: a & ~_SIGN | b & _SIGN,
    "fclass": _class,
    "f2s": _integer(-(1 << 31), (1 << 31) - 1),
    "f2u": _integer(0, M32),
    "s2f": lambda a: _word(float(signed(a))),
    "u2f": lambda a: _word(float(a)),
}
