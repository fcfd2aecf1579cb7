"""What the Python interface takes: a wrong argument is one line with its name, what was given and
what is allowed; TypeError for the kind of value, ValueError for the value."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["array_bytes", "instance", "item_type", "names", "number", "pieces", "whole"]

_NO_ITEM_SIZE = (str, bool, float, complex, list, tuple, dict, set, type(None))
_SHOWN = 40  # characters of a value in a message


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return f"{type(value).__name__} {text}"


def whole(name: str, value: object, low: int | None = None, high: int | None = None) -> int:
    """An integer (Python's or NumPy's) from `low` to `high`; no bool, no float."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: {_shown(value)} given, an integer is needed")
    if (low is not None and value < low) or (high is not None and value > high):
        limit = f"at least {low}" if high is None else f"{low} to {high}"
        raise ValueError(f"{name}: {value}, limit {limit}")
    return int(value)


def number(name: str, value: object, whole_only: bool) -> None:
    """Refuses what is no real number, or no integer where one is needed."""
    if whole_only:
        whole(name, value)
    elif not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name}: {_shown(value)} given, a number is needed")


def instance(name: str, value: object, kinds: type | tuple[type, ...]) -> None:
    """Refuses what is none of the kinds."""
    if not isinstance(value, kinds):
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        needed = " or ".join(kind.__name__ for kind in wanted)
        raise TypeError(f"{name}: {_shown(value)} given, {needed} is needed")


def names(name: str, value: str | Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Some of the known names; a string is one name."""
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, Iterable):
        raise TypeError(f"{name}: {_shown(value)} given, names are needed: {', '.join(known)}")
    given = tuple(given)
    if unknown := [item for item in given if item not in known]:
        shown = ", ".join(sorted(map(str, unknown)))
        raise ValueError(f"{name}: {shown} unknown, known are {', '.join(known)}")
    return given


def pieces(name: str, data: object) -> None:
    """Refuses what does not hold a value for each DPU."""
    if isinstance(data, str | bytes) or not np.iterable(data) or not hasattr(data, "__len__"):
        raise TypeError(
            f"{name}: {_shown(data)} given, a list or array with one piece per DPU needed"
        )


def item_type(name: str, dtype: object) -> np.dtype[Any]:
    """A NumPy type that memory can be read as."""
    try:
        kind = np.dtype(dtype) if dtype is not None else None  # type: ignore[call-overload]
    except (TypeError, ValueError):
        kind = None
    if kind is None:
        raise TypeError(f"{name}: {_shown(dtype)} given, a NumPy type is needed")
    if kind.kind not in "biufcSV" or kind.hasobject or not kind.itemsize:
        raise TypeError(f"{name}: {kind} given, a type of numbers of at least 1 byte is needed")
    return kind  # type: ignore[no-any-return]


def array_bytes(name: str, data: object) -> NDArray[np.uint8]:
    """The bytes of an array or NumPy number, as they lie in memory (little-endian), or of bytes.

    Python's floats, bools and lists do not say how large an item is.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return np.frombuffer(bytes(data), np.uint8)
    if isinstance(data, _NO_ITEM_SIZE) and not isinstance(
        data, np.generic
    ):  # np.float64 is a float
        raise TypeError(
            f"{name}: {_shown(data)} given, an integer, a NumPy array or number, or bytes needed"
        )
    array = np.ascontiguousarray(data)
    if array.dtype.kind not in "biufcSV" or array.dtype.hasobject:
        raise TypeError(f"{name}: {_shown(data)} given, an array of numbers is needed")
    return array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8)
