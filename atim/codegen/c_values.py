"""C types and constants of TIR's types, and how tightly C's operators bind."""

from __future__ import annotations

import math

import numpy as np

from atim.errors import UnsupportedError

C_TYPES = {
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}

BUILTIN_FLOAT = {"float32": "f", "float64": ""}

# C precedence; higher binds tighter
PRIMARY, UNARY, PRODUCT, SUM, SHIFT, ORDER, EQUAL, BIT, AND, OR, CHOICE = range(15, 4, -1)


def c_type(dtype: str) -> str:
    if dtype not in C_TYPES:
        raise UnsupportedError(f"type {dtype}: known are {', '.join(C_TYPES)}")
    return C_TYPES[dtype]


def integer(value: int, dtype: str) -> tuple[str, int]:
    """An integer constant whose C type holds it; the lowest values have no literal of their own."""
    if dtype == "bool":
        return ("true" if value else "false"), PRIMARY
    if dtype in ("int32", "int64") and value == np.iinfo(dtype).min:
        return f"{dtype.upper()}_MIN", PRIMARY
    suffix = {"int64": "LL", "uint32": "u", "uint64": "ULL"}.get(dtype, "")
    return f"{value}{suffix}", PRIMARY if value >= 0 else UNARY


def floating(value: float, dtype: str) -> tuple[str, int]:
    """The shortest decimal that reads back as the same number; inf and nan as built-ins."""
    if dtype not in BUILTIN_FLOAT:
        raise UnsupportedError(f"type {dtype}: known are {', '.join(BUILTIN_FLOAT)}")
    suffix = BUILTIN_FLOAT[dtype]
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")', PRIMARY
    if math.isinf(value):
        text = f"__builtin_inf{suffix}()"
        return (f"-{text}", UNARY) if value < 0 else (text, PRIMARY)
    number = np.format_float_positional if 1e-4 <= abs(value) < 1e9 else np.format_float_scientific
    scalar = np.float32(value) if dtype == "float32" else np.float64(value)
    text = number(scalar, unique=True, trim="0") if value else repr(value)
    return f"{text}{suffix}", UNARY if text.startswith("-") else PRIMARY
