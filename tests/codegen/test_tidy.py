"""Conditions and index arithmetic in a readable form."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from tvm import tirx

from atim.codegen.tidy import tidied

ROW, COLUMN = tirx.Var("i", "int32"), tirx.Var("j", "int32")
FLAG = tirx.Var("c", "bool")
RANGES = {ROW: (0, 9), COLUMN: (0, 9)}


def const(value: int) -> tirx.IntImm:
    return tirx.IntImm("int32", value)


QUOTIENT, REST = tirx.floordiv(ROW, const(4)), tirx.floormod(ROW, const(4))
CASES = [
    (tirx.LT(ROW * -4 - COLUMN, const(-4)), tirx.GE(ROW * 4 + COLUMN, const(5))),
    (tirx.LE(-1 * ROW, const(-4)), tirx.GE(ROW, const(4))),
    (tirx.GT(const(0), const(2) - ROW), tirx.GE(ROW, const(3))),
    (tirx.LT(QUOTIENT * -4 - REST, const(0)), tirx.GE(QUOTIENT * 4 + REST, const(1))),
    (tirx.LT(const(0), tirx.Cast("int32", FLAG)), FLAG),
    (tirx.Add(ROW * 2 + tirx.Mul(const(0), const(2)), COLUMN), ROW * 2 + COLUMN),
]
KEPT = [
    tirx.LT(QUOTIENT * 4 - REST, const(5)),
    tirx.LT(ROW * 4 + COLUMN, const(5)),
    tirx.LT(ROW - COLUMN, const(0)),
    tirx.LT(const(1), tirx.Cast("int32", FLAG)),
    tirx.Add(COLUMN, ROW * 2),
]


@pytest.mark.parametrize(("given", "wanted"), CASES, ids=str)
def test_rewritten(given: Any, wanted: Any) -> None:
    found = tidied(given, RANGES)
    assert tvm_ffi.structural_equal(found, wanted), found


@pytest.mark.parametrize("given", KEPT, ids=str)
def test_left_as_it_is(given: Any) -> None:
    assert tidied(given, RANGES) is given
