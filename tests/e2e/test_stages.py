"""Programs of several stages on simulated DPUs, equal to NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tvm import te, topi

from atim.target import Target
from atim.tuner.staged import build_stages, tune_stages

TARGET = Target(dpus=6)
SHAPE = (7, 21)
Array = np.ndarray


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x: Array, g: Array, b: Array) -> Array:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def rms_norm(x: Array, g: Array) -> Array:
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * g


def row(name: str) -> te.Tensor:
    return te.placeholder((SHAPE[1],), "float32", name)


def softmax_program(x: te.Tensor) -> list[te.Tensor]:
    return [x, topi.nn.softmax(x, axis=1)]


def layer_norm_program(x: te.Tensor) -> list[te.Tensor]:
    g, b = row("g"), row("b")
    return [x, g, b, topi.nn.layer_norm(x, g, b, [1])]


def rms_norm_program(x: te.Tensor) -> list[te.Tensor]:
    g = row("g")
    return [x, g, topi.nn.rms_norm(x, g, [1])]


@pytest.mark.parametrize(
    ("program", "reference"),
    [(softmax_program, softmax), (layer_norm_program, layer_norm), (rms_norm_program, rms_norm)],
)
def test_floats(
    program: Callable[[te.Tensor], list[te.Tensor]],
    reference: Callable[..., Array],
    rng: np.random.Generator,
) -> None:
    args = program(te.placeholder(SHAPE, "float32", "X"))
    shapes = [[int(n) for n in t.shape] for t in args[:-1]]
    inputs = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    output, timing = build_stages(args, TARGET)(*inputs)
    np.testing.assert_allclose(output, reference(*inputs), rtol=1e-5, atol=1e-6)
    assert timing.host > 0 < timing.kernel


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("last", [False, True])
def test_places_of_maxima_with_ties(axis: int, last: bool, rng: np.random.Generator) -> None:
    a = te.placeholder(SHAPE, "int32", "A")
    built = build_stages([a, topi.argmax(a, axis=axis, select_last_index=last)], TARGET)
    values = rng.integers(-3, 4, SHAPE).astype("int32")
    expected = values.argmax(axis)
    if last:
        expected = SHAPE[axis] - 1 - np.flip(values, axis).argmax(axis)
    np.testing.assert_array_equal(built(values)[0], expected)


@pytest.mark.slow
def test_every_stage_is_tuned_in_its_own_folder(tmp_path: Path, rng: np.random.Generator) -> None:
    x = te.placeholder(SHAPE, "float32", "X")
    options = {"work_dir": tmp_path, "progress": False, "workers": 1}
    tuned = tune_stages(softmax_program(x), TARGET, trials=1, **options)
    values = rng.standard_normal(SHAPE).astype("float32")
    np.testing.assert_allclose(tuned(values)[0], softmax(values), rtol=1e-5)
    assert len(list(tmp_path.iterdir())) == 3
