"""How a model arranges its outputs: tuples, lists and dictionaries, as text that needs no PyTorch.

A structure is a number (of a flat output), {"value": what is no tensor and always the same}, or
{"tuple" or "list": [...]}, {"dict": {...}}; None stands for one output, or a tuple of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Constant", "Structure", "arranged", "structure_of"]

Structure = Any  # what json gives and takes

_GONE = object()


@dataclass(frozen=True, slots=True)
class Constant:
    """An output that is no tensor: None, a number, a text."""

    value: Any


def structure_of(tree: Any) -> Structure:
    """Of nested outputs whose leaves are numbers or constants. ValueError for other containers.

    Named tuples are tuples, other mappings (such as the outputs of Hugging Face's models) are
    dictionaries.
    """
    if isinstance(tree, Constant):
        return {"value": tree.value}
    if isinstance(tree, int):
        return tree
    if isinstance(tree, Mapping):
        if not all(isinstance(key, str) for key in tree):
            raise ValueError("keys that are not strings")
        return {"dict": {key: structure_of(value) for key, value in tree.items()}}
    if isinstance(tree, tuple | list):
        kind = "tuple" if isinstance(tree, tuple) else "list"
        return {kind: [structure_of(value) for value in tree]}
    raise ValueError(f"{type(tree).__name__} is no tuple, list or dictionary")


def arranged(structure: Structure, outputs: Sequence[Any], without: set[int]) -> Any:
    """The outputs as the model arranges them; those `without` are left out, and a tuple of which
    one is left is that one."""
    result = _arranged(structure, outputs, without)
    if result is _GONE:
        return ()
    return result[0] if without and isinstance(result, tuple) and len(result) == 1 else result


def _arranged(structure: Structure, outputs: Sequence[Any], without: set[int]) -> Any:
    if isinstance(structure, int):
        return _GONE if structure in without else outputs[structure]
    ((kind, items),) = structure.items()
    if kind == "value":
        return items
    if kind == "dict":
        found = {key: _arranged(value, outputs, without) for key, value in items.items()}
        return {key: value for key, value in found.items() if value is not _GONE}
    values = (_arranged(value, outputs, without) for value in items)
    left = [value for value in values if value is not _GONE]
    return tuple(left) if kind == "tuple" else left
