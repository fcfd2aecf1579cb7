"""What each DPU instruction computes and what each condition tests, in plain Python integers.

The tables of `interpreter.py`: results from operand values, and conditions on what an instruction
has seen. Written from the public descriptions of the instruction set (UPMEM SDK manual, page
201_DPU_ABI; upmem/qemu target/dpu conditions.h and helper.c), not from the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

M32 = 0xFFFF_FFFF


def signed(x: int, bits: int = 32) -> int:
    """The two's complement value of the low `bits` bits of x."""
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


# ------------------------------------------------------------------------------- plain results


def _rol(a: int, s: int) -> int:
    return ((a << s) | (a >> (32 - s))) & M32


def _hash(a: int, h: int) -> int:
    width = 7 + ((h & 15) >> 2)
    mask = (1 << width) - 1
    x = (a & mask) ^ ((a >> width) & mask)
    return x ^ ((a >> (2 * width)) & mask) if h & 1 else x


def _same_bytes(a: int, b: int) -> int:
    return sum(1 << i for i in range(0, 32, 8) if (a >> i) & 0xFF == (b >> i) & 0xFF)


def _leading(a: int, bit: int) -> int:
    """How many bits from bit 31 down equal `bit`."""
    n = 0
    while n < 32 and (a >> (31 - n)) & 1 == bit:
        n += 1
    return n


def _byte_product(name: str) -> Callable[[int, int], int]:
    left, right = name.removeprefix("mul_").split("_")

    def part(x: int, which: str) -> int:
        byte = (x >> (8 if which[1] == "h" else 0)) & 0xFF
        return signed(byte, 8) if which[0] == "s" else byte

    return lambda a, b: (part(a, left) * part(b, right)) & M32


# name -> (first operand, second operand, carry in) of the 32-bit adder, from (a, b, carry flag)
ADDER: dict[str, Callable[[int, int, int], tuple[int, int, int]]] = {
    "add": lambda a, b, c: (a, b, 0),
    "addc": lambda a, b, c: (a, b, c),
    "sub": lambda a, b, c: (a, b ^ M32, 1),
    "subc": lambda a, b, c: (a, b ^ M32, c),
    "rsub": lambda a, b, c: (b, a ^ M32, 1),
    "rsubc": lambda a, b, c: (b, a ^ M32, c),
}
_LEFTS = [f"{s}{p}" for s in "su" for p in "lh"]
BINARY: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "nand": lambda a, b: (a & b) ^ M32,
    "nor": lambda a, b: (a | b) ^ M32,
    "nxor": lambda a, b: a ^ b ^ M32,
    "andn": lambda a, b: (a ^ M32) & b,
    "orn": lambda a, b: (a ^ M32) | b,
    "hash": _hash,
    "cmpb4": _same_bytes,
    **{
        f"mul_{x}_{y}": _byte_product(f"mul_{x}_{y}")
        for x in _LEFTS
        for y in _LEFTS
        if (x[0], y[0]) != ("u", "s")
    },
}
SHIFT: dict[str, Callable[[int, int], int]] = {
    "lsl": lambda a, s: (a << s) & M32,
    "lsr": lambda a, s: a >> s,
    "asr": lambda a, s: (signed(a) >> s) & M32,
    "rol": _rol,
    "ror": lambda a, s: _rol(a, (32 - s) % 32),
    "lsl1": lambda a, s: ((a << s) | ((1 << s) - 1)) & M32,
    "lsr1": lambda a, s: ((a | (M32 << 32)) >> s) & M32,
    "lslx": lambda a, s: (a << s) >> 32,
    "lsrx": lambda a, s: (a << (32 - s)) & M32,
    "lsl1x": lambda a, s: (((a | (M32 << 32)) << s) >> 32) & M32,
    "lsr1x": lambda a, s: ((a << (32 - s)) | (M32 >> s)) & M32,
}
UNARY: dict[str, Callable[[int], int]] = {
    "clz": lambda a: _leading(a, 0),
    "clo": lambda a: _leading(a, 1),
    "cls": lambda a: _leading(a, a >> 31) - 1,
    "cao": lambda a: a.bit_count(),
    "extsb": lambda a: signed(a, 8) & M32,
    "extsh": lambda a: signed(a, 16) & M32,
    "extub": lambda a: a & 0xFF,
    "extuh": lambda a: a & 0xFFFF,
    "sats": lambda a: 0x7FFF_FFFF if a >> 31 else 0x8000_0000,
}
SHIFT_ADD: dict[str, tuple[str, int]] = {
    "lsl_add": ("lsl", 1),
    "lsl_sub": ("lsl", -1),
    "lsr_add": ("lsr", 1),
    "rol_add": ("rol", 1),
}

# -------------------------------------------------------------------------------- conditions


@dataclass(slots=True)
class Seen:
    """What a condition may look at: result x, source register value a, old ZF, adder inputs."""

    x: int
    a: int
    zf: int
    b: int = 0  # second source: shift amount, byte-product operand
    adder: tuple[int, int, int] = (0, 0, 0)
    maximum: int = 32

    @property
    def unsigned_sum(self) -> int:
        return sum(self.adder)

    @property
    def signed_sum(self) -> int:
        p, q, carry = self.adder
        return signed(p) + signed(q) + carry

    def low_carry(self, bits: int) -> bool:
        p, q, carry = self.adder
        mask = (1 << bits) - 1
        return (p & mask) + (q & mask) + carry > mask


def _ltu(s: Seen) -> bool:
    return s.unsigned_sum <= M32  # a - b without carry out is a borrow


def _lts(s: Seen) -> bool:
    return s.signed_sum < 0


def _overflow(s: Seen) -> bool:
    return s.signed_sum != signed(s.signed_sum)


def _both_zero(s: Seen) -> bool:
    return s.x == 0 and s.zf == 1


# (name, its opposite or "", predicate)
_PREDICATES: list[tuple[str, str, Callable[[Seen], bool]]] = [
    ("true", "false", lambda s: True),
    ("z", "nz", lambda s: s.x == 0),
    ("xz", "xnz", _both_zero),
    ("mi", "pl", lambda s: s.x >> 31 == 1),
    ("max", "nmax", lambda s: s.x == s.maximum),
    ("sz", "snz", lambda s: s.a == 0),
    ("smi", "spl", lambda s: s.a >> 31 == 1),
    ("ov", "nov", _overflow),
    ("c", "nc", lambda s: s.unsigned_sum > M32),
    *(("", f"nc{n}", lambda s, n=n: s.low_carry(n)) for n in range(5, 15)),
    ("ltu", "geu", _ltu),
    ("lts", "ges", _lts),
    ("les", "gts", lambda s: _lts(s) or s.x == 0),
    ("leu", "gtu", lambda s: _ltu(s) or s.x == 0),
    ("xles", "xgts", lambda s: _lts(s) or _both_zero(s)),
    ("xleu", "xgtu", lambda s: _ltu(s) or _both_zero(s)),
    ("e", "o", lambda s: s.x & 1 == 0),
    ("se", "so", lambda s: s.a & 1 == 0),
    ("nsh32", "sh32", lambda s: s.b >> 5 & 1 == 0),
    ("small", "large", lambda s: (s.a | s.b) >> 8 & 0xFF == 0),
]
CONDITION: dict[str, Callable[[Seen], bool]] = {"eq": lambda s: s.x == 0, "neq": lambda s: s.x != 0}
for _yes, _no, _test in _PREDICATES:
    CONDITION[_yes] = _test
    CONDITION[_no] = lambda s, test=_test: not test(s)  # type: ignore[misc]
