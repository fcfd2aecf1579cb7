"""Index maps that no tile follows: quotients, remainders, a tensor read twice, gathers by data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tvm import te, tirx, topi

from atim.target import Target
from atim.tuner.staged import build_stages

TARGET = Target(dpus=6)
M, N = 9, 14
Array = np.ndarray
Made = tuple[list[te.Tensor], Callable[..., Array]]


def tensor(*shape: int, name: str = "A", dtype: str = "int32") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def with_its_transposed() -> Made:
    a = tensor(N, N)
    return [a, te.compute((N, N), lambda i, j: a[i, j] + 2 * a[j, i], "y")], lambda a: a + 2 * a.T


def gram_matrix() -> Made:
    a = tensor(M, N)
    return [a, topi.matmul(a, a, False, True)], lambda a: a @ a.T


def each_row_three_times() -> Made:
    a = tensor(M, N)
    y = te.compute((3 * M - 1, N), lambda i, j: a[i // 3, j], "y")
    return [a, y], lambda a: np.repeat(a, 3, 0)[:-1]


def tiled() -> Made:
    a = tensor(M, N)
    return [a, topi.tile(a, (2, 2))], lambda a: np.tile(a, (2, 2))


def flat() -> Made:
    a = tensor(M, N)
    return [a, topi.reshape(a, (M * N,))], lambda a: a.reshape(-1)


def cut_in_rows_and_summed() -> Made:
    a, k = tensor(M * N), te.reduce_axis((0, N), "k")
    y = te.compute((M,), lambda i: te.sum(a[(i * N + k) // 1], axis=k), "y")
    return [a, y], lambda a: a.reshape(M, N).sum(1, dtype="int32")


def rolled_rows_of_a_sum() -> Made:
    a, k = tensor(M, N), te.reduce_axis((0, N), "k")
    y = te.compute((M,), lambda i: te.sum(a[i, (k + i) % N] * k, axis=k), "y")

    def reference(a: Array) -> Array:
        rolled = np.stack([np.roll(row, -i) for i, row in enumerate(a)])
        return (rolled * np.arange(N)).sum(1, dtype="int32")

    return [a, y], reference


def by_another_tensor() -> Made:
    a, at = tensor(M, N), tensor(N, name="at")
    y = te.compute((N, N), lambda i, j: a[at[i] % M, j] + 1, "y")
    return [a, at, y], lambda a, at: a[at % M] + 1


def behind_a_guard() -> Made:
    a = tensor(N)

    def value(i: tirx.Var) -> tirx.PrimExpr:
        inside = tirx.all(i >= 4, i < 4 + 2 * N)
        return tirx.if_then_else(inside, a[(i - 4) // 2], tirx.const(-1, "int32"))

    y = te.compute((2 * N + 8,), value, "y")
    return [a, y], lambda a: np.pad(np.repeat(a, 2), 4, constant_values=-1)


PROGRAMS = [
    with_its_transposed,
    gram_matrix,
    each_row_three_times,
    tiled,
    flat,
    cut_in_rows_and_summed,
    rolled_rows_of_a_sum,
    by_another_tensor,
    behind_a_guard,
]


@pytest.mark.parametrize("make", PROGRAMS)
def test_equal_to_numpy(make: Callable[[], Made], rng: np.random.Generator) -> None:
    args, reference = make()
    inputs = [
        rng.integers(0, 1000, [int(n) for n in t.shape]).astype(str(t.dtype)) for t in args[:-1]
    ]
    output, _ = build_stages(args, TARGET)(*inputs)
    np.testing.assert_array_equal(output, reference(*inputs))


@pytest.mark.parametrize("name", ["any", "all"])
def test_any_and_all(name: str, rng: np.random.Generator) -> None:
    a = tensor(M, 3, dtype="bool")
    values = rng.random((M, 3)) < 0.5
    output, _ = build_stages([a, getattr(topi, name)(a, axis=1)], TARGET)(values)
    np.testing.assert_array_equal(output, getattr(np, name)(values, 1))
