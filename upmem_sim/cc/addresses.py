"""Addresses of loads and stores take additions and constants into their 24-bit offset."""

from __future__ import annotations

from upmem_sim.cc.flow import Node, replace
from upmem_sim.cc.values import Const, State, copy_of, fits, sum_of


def _address(state: State, base: str | Const, off: Const) -> tuple[str | Const, Const]:
    """(base, offset) of the same address with additions moved into the offset."""
    value = state.get(base)
    if value is None or value.kind not in ("add", "const"):
        return base, off
    total = sum_of(value.off, off)
    if total is None or (isinstance(total, int) and not fits(total, 24)):
        return base, off
    return (value.reg or "zero"), total


def fold_load(state: State, node: Node) -> None:
    d, base, off = node.args
    assert not isinstance(off, str)
    base, off = _address(state, base, off)
    replace(node, node.op, d, base, off)


_IMMEDIATE_BITS = {"sb": 8, "sh": 16, "sw": 16}


def fold_store(state: State, node: Node) -> None:
    base, off, stored = node.args
    assert not isinstance(off, str)
    new_base, new_off = _address(state, base, off)
    stored = copy_of(state, stored, False)
    constant = _stored_constant(state, node.op, stored)
    if constant is not None and fits(new_off, 12):
        replace(node, node.op, new_base, new_off, constant)
    elif constant is not None and fits(off, 12):
        replace(node, node.op, base, off, constant)
    elif isinstance(stored, str):
        replace(node, node.op, new_base, new_off, stored)


def _stored_constant(state: State, op: str, stored: str | Const) -> int | None:
    if op == "sd":
        if isinstance(stored, int):
            return stored
        return _pair_constant(state, str(stored))
    constant = state.const(stored)
    if not isinstance(constant, int):
        return None
    bits = 8 * {"sb": 1, "sh": 2, "sw": 4}[op]
    constant &= (1 << bits) - 1
    constant -= (constant >> (bits - 1)) << bits
    return constant if fits(constant, _IMMEDIATE_BITS[op]) else None


def _pair_constant(state: State, name: str) -> int | None:
    """Value of a pair that is a sign-extended 16-bit constant."""
    number = int(name[1:])
    high, low = state.const(f"r{number}"), state.const(f"r{number + 1}")
    if isinstance(low, int) and isinstance(high, int) and fits(low, 16):
        return low if high == (-1 if low < 0 else 0) else None
    return None
