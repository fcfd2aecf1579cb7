"""Functions of one float, and where they can be computed; what reductions combine by.

DPUs have no floating-point unit: a kernel gets float32 functions as C of its own, which costs some
hundred to two thousand instructions a call. All others, and float64, are the host's.
"""

from __future__ import annotations

import numpy as np

__all__ = ["COMBINERS", "HOST", "KERNEL", "on_dpus", "on_host"]

# TVM's expression -> the same in NumPy
COMBINERS: dict[str, np.ufunc] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "And": np.logical_and,
    "Or": np.logical_or,
}

# calls that are no work of their own, or that C has for every type
_PLAIN = ("fabs", "abs", "if_then_else", "likely", "isnan", "isfinite", "isinf")
# with the issue slots of a call: means over arguments, measured by tests/codegen/test_math_c.py
KERNEL = {
    "trunc": 60,
    "floor": 120,
    "ceil": 120,
    "exp": 1400,
    "log": 2000,
    "sqrt": 600,
    "rsqrt": 1700,
    "tanh": 2200,
    "sigmoid": 2600,
    "erf": 2500,
}
# of C's math.h, for float32 and float64
HOST = (
    *("exp", "exp2", "log", "log2", "log10", "sqrt", "pow", "sin", "cos", "tan", "tanh", "sinh"),
    *("cosh", "asin", "acos", "atan", "atan2", "erf", "floor", "ceil", "trunc", "round"),
    *("nearbyint", "fmod"),
)
_HOST_TOO = ("rsqrt", "sigmoid")


def on_dpus(name: str, dtype: str) -> bool:
    """A kernel can compute it."""
    return name in _PLAIN or (name in KERNEL and dtype == "float32")


def on_host(name: str, dtype: str) -> bool:
    """Host code can compute it."""
    return name in _PLAIN or ((name in HOST or name in _HOST_TOO) and dtype.startswith("float"))
