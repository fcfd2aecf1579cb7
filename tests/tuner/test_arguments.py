"""What `tune` is given: mistakes are answered in its own words, before anything is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tvm import te, tirx

import atim
from atim.errors import UnsupportedError, UsageError

Program = Callable[[], list[te.Tensor]]


def _one() -> te.Tensor:
    return te.placeholder((8,), "int32", "A")


def _left_out() -> list[te.Tensor]:
    a, x = _one(), te.placeholder((8,), "int32", "x")
    return [a, te.compute((8,), lambda i: a[i] + x[i], "y")]


def _no_result() -> list[te.Tensor]:
    return [_one(), te.placeholder((8,), "int32", "x")]


def _half() -> list[te.Tensor]:
    a = te.placeholder((8,), "float16", "A")
    return [a, te.compute((8,), lambda i: a[i] + a[i], "y")]


@pytest.mark.parametrize(
    ("program", "kind", "message"),
    [
        (list, UsageError, "no te tensors given"),
        (_left_out, UsageError, "x is used, but not among the tensors given"),
        (_no_result, UsageError, "the last tensor, x, is no result of the others"),
        (_half, UnsupportedError, "block y: y is float16, known are bool, int8"),
    ],
)
def test_programs_that_are_none(
    tmp_path: Path, program: Program, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        atim.tune(program(), atim.Target(dpus=8), trials=1, work_dir=tmp_path, progress=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trials": 1.5}, "trials: 1.5 is no integer"),
        ({"trials": "4"}, "trials: '4' is no integer"),
        ({"trials": 10**30}, "limit 1000000"),
        ({"seed": "a"}, "seed: 'a' is no integer"),
        ({"workers": 100_000}, "workers: 100000 requested, limit 256"),
        ({"target": "upmem-v1a"}, "target: 'upmem-v1a' is no Target"),
    ],
)
def test_arguments_of_other_types_or_sizes(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    a = _one()
    program = [a, te.compute((8,), lambda i: a[i] + a[i], "y")]
    target = arguments.pop("target", atim.Target(dpus=8))
    with pytest.raises(UsageError, match=message):
        atim.tune(program, target, work_dir=tmp_path, progress=False, **arguments)


def test_an_operand_inside_a_negation_is_seen(tmp_path: Path) -> None:
    a = te.placeholder((8,), "bool", "A")
    program = [a, te.compute((8,), lambda i: tirx.Not(a[i]), "y")]
    run = atim.tune(program, atim.Target(dpus=2), trials=1, work_dir=tmp_path, progress=False)
    assert run.best.timing.kernel > 0


def test_a_tensor_given_twice_is_named():
    a = te.placeholder((16,), "int32", "A")
    with pytest.raises(atim.UsageError, match="tune: A is given twice, each tensor is needed once"):
        atim.tune([a, a, te.compute((16,), lambda i: a[i] + 1, "y")], atim.Target(dpus=2))
