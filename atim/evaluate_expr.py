"""Values of `te` expressions over a chunk of a block's iteration space, in NumPy.

In: an expression, the block's axis variables with their ranges, windows of the tensors it reads.
Out: an array whose axis n belongs to the block's axis n and has length 1 where the expression does
not depend on it. Every node is computed in its own type, as two's complement C integers would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atim.errors import UnsupportedError

Array = NDArray[Any]
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """Part of a tensor: `data[0, ...]` is the element at `origin`."""

    data: Array
    origin: tuple[int, ...]


def _truncated_divide(a: Array, b: Array) -> Array:
    if np.issubdtype(np.result_type(a, b), np.floating):
        return np.asarray(np.true_divide(a, b))
    quotient = np.floor_divide(a, b)
    inexact = quotient * b != a
    return np.asarray(quotient + (inexact & ((a < 0) != (b < 0))))


def _truncated_remainder(a: Array, b: Array) -> Array:
    return np.asarray(np.fmod(a, b))


def _special(name: str) -> Callable[[Array], Array]:
    """A function of scipy.special, which takes long to import and is rarely needed."""
    return lambda values: np.asarray(getattr(import_module("scipy.special"), name)(values))


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _truncated_divide,
    "Mod": _truncated_remainder,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Min": np.minimum,
    "Max": np.maximum,
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "LShift": np.left_shift,
    "RShift": np.right_shift,
}


def _round(a: Array) -> Array:
    """To the nearest integer, halves away from zero, as C and TVM do."""
    whole = np.trunc(a)
    return np.asarray(whole + np.copysign(np.abs(a - whole) >= 0.5, a))


# names of TVM that are also NumPy's
_SAME = (
    *("exp", "exp2", "log", "log2", "log10", "sqrt", "tanh", "sin", "cos", "tan", "sinh", "cosh"),
    *("floor", "ceil", "trunc", "fmod", "fabs", "isnan", "isinf", "isfinite"),
)
CALLS: dict[str, Callable[..., Array]] = {
    **{name: getattr(np, name) for name in _SAME},
    "abs": np.abs,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sigmoid": _special("expit"),
    "erf": _special("erf"),
    "pow": np.power,
    "round": _round,
    "nearbyint": np.rint,
}


class Scope:
    """Values of expressions over one chunk; axis n of a result is the block's axis n or 1."""

    __slots__ = ("_guarded", "_ranges", "_variables", "_windows")

    def __init__(
        self, variables: Sequence[Any], ranges: Sequence[Range], windows: Mapping[Any, Window]
    ) -> None:
        self._variables = variables
        self._ranges = ranges
        self._windows = windows
        self._guarded = 0

    def value(self, expression: Any) -> Array:
        name = type(expression).__name__
        binary = BINARY.get(name)
        if binary is not None:
            return binary(self.value(expression.a), self.value(expression.b))
        method = getattr(self, "_" + name.lower(), None)
        if method is None:
            raise UnsupportedError(f"evaluate: no rule for {name} in {expression}")
        return np.asarray(method(expression))

    def _intimm(self, e: Any) -> Array:
        return np.asarray(int(e.value), np.dtype(str(e.ty)))

    def _floatimm(self, e: Any) -> Array:
        return np.asarray(float(e.value), np.dtype(str(e.ty)))

    def _cast(self, e: Any) -> Array:
        return self.value(e.value).astype(np.dtype(str(e.ty)))

    def _not(self, e: Any) -> Array:
        return np.logical_not(self.value(e.a))

    def _bitwisenot(self, e: Any) -> Array:
        return np.invert(self.value(e.a))

    def _var(self, e: Any) -> Array:
        for n, variable in enumerate(self._variables):
            if variable.same_as(e):
                shape = [1] * len(self._ranges)
                shape[n] = -1
                return np.arange(*self._ranges[n], dtype=np.dtype(str(e.ty))).reshape(shape)
        if e in self._windows:
            return self._windows[e].data.astype(np.dtype(str(e.ty)))
        raise UnsupportedError(f"evaluate: no value for {e.name}")

    def _select(self, e: Any) -> Array:
        return self._choose(e.condition, e.true_value, e.false_value)

    def _call(self, e: Any) -> Array:
        if e.op.name == "prim.if_then_else":
            return self._choose(*e.args)
        function = CALLS.get(e.op.name.rpartition(".")[2])
        if function is None:
            raise UnsupportedError(f"evaluate: no rule for a call of {e.op.name}")
        return function(*map(self.value, e.args)).astype(np.dtype(str(e.ty)))

    def _choose(self, condition: Any, yes: Any, no: Any) -> Array:
        # Both sides are evaluated: what a guard protects may read outside its tensor.
        self._guarded += 1
        chosen = np.where(self.value(condition), self.value(yes), self.value(no))
        self._guarded -= 1
        return chosen

    def _tensorload(self, e: Any) -> Array:
        window = self._windows.get(e.source)
        if window is None:
            raise UnsupportedError(f"evaluate: no array given for {e.source.name}")
        fast = self._slice(e, window)
        if fast is not None:
            return fast
        indices: list[Array] = []
        for dim, index in enumerate(e.indices):
            local = self.value(index).astype(np.int64) - window.origin[dim]
            size = window.data.shape[dim]
            if self._guarded:
                local = np.clip(local, 0, size - 1)
            elif local.size and (local.min() < 0 or local.max() >= size):
                raise IndexError(f"evaluate: {e} reads outside {e.source.name}, axis {dim}")
            indices.append(local)
        return window.data[tuple(indices)]

    def _slice(self, e: Any, window: Window) -> Array | None:
        """The load as a view when its indices are different axes of the block."""
        order = []
        for index in e.indices:
            match = [n for n, v in enumerate(self._variables) if v.same_as(index)]
            if not match or match[0] in order:
                return None
            order.append(match[0])
        cut = []
        for dim, n in enumerate(order):
            start, stop = (bound - window.origin[dim] for bound in self._ranges[n])
            if start < 0 or stop > window.data.shape[dim]:
                return None
            cut.append(slice(start, stop))
        view = window.data[tuple(cut)].transpose(np.argsort(order))
        shape = [1] * len(self._ranges)
        for n in order:
            shape[n] = self._ranges[n][1] - self._ranges[n][0]
        return view.reshape(shape)
