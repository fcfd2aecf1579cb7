"""Workloads: the expression and the NumPy reference of each row agree; bad use is one clear
line."""

from __future__ import annotations

import numpy as np
import pytest
import tvm

from atim.errors import UsageError
from atim.workloads import WORKLOADS, get

SMALL = {1: (37,), 2: (13, 29), 3: (3, 7, 19)}


@pytest.mark.parametrize(
    ("name", "dtype"), [(n, d) for n, r in WORKLOADS.items() for d in r.dtypes]
)
def test_expression_equals_reference(name: str, dtype: str, rng: np.random.Generator) -> None:
    workload = get(name, SMALL[len(WORKLOADS[name].sizes)], dtype)
    arrays = workload.inputs(rng)
    expected = workload.reference(arrays)
    module = tvm.compile(workload.func, target="llvm")
    sums = "int32" if dtype == "int8" and len(WORKLOADS[name].sizes) > 1 else dtype
    output = tvm.runtime.empty(expected.shape, sums)
    module(*[tvm.runtime.tensor(arrays[t.op.name]) for t in workload.args[:-1]], output)
    assert expected.dtype == sums
    np.testing.assert_allclose(output.numpy(), expected, rtol=1e-4 if dtype[0] == "f" else 0)


def test_integer_references_wrap_like_c() -> None:
    mtv = get("mtv", (1, 2))
    big = np.array([[2**30, 2**30]], dtype=np.int32)
    x = np.array([3, 3], dtype=np.int32)
    assert mtv.reference({"A": big, "x": x})[0] == np.int32(-(2**31))


def test_inputs_follow_the_seed_and_stay_below_50() -> None:
    workload = get("mtv", (40, 50))
    first = workload.inputs(np.random.default_rng(5))
    again = workload.inputs(np.random.default_rng(5))
    assert list(first) == ["A", "x"]
    assert all((first[n] == again[n]).all() for n in first)
    assert first["A"].min() == 0
    assert first["A"].max() == 49


def test_resident_operands_are_inputs() -> None:
    for name in WORKLOADS:
        workload = get(name, SMALL[len(WORKLOADS[name].sizes)])
        assert set(workload.resident) <= {t.op.name for t in workload.args[:-1]}


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "message"),
    [
        (
            "mtvv",
            None,
            None,
            "workload 'mtvv' is unknown, did you mean mtv? (known: va, geva, red, mtv, gemv, "
            "ttv, mmtv)",
        ),
        ("mtv", (3,), None, "mtv: shape of 2 (M,K) sizes needed, 1 given"),
        ("mtv", (3, -4), None, "mtv: size K is -4, at least 1 needed"),
        ("va", (0,), None, "va: size N is 0, at least 1 needed"),
        ("va", (1.5,), None, "va: size N is 1.5, integer needed"),
        ("va", (2**31,), None, "va: 2,147,483,648 elements requested, limit 2,147,483,647"),
        (
            "mtv",
            None,
            "complex64",
            "mtv: dtype 'complex64' not supported, supported: int32, int8, int64, float32, float64",
        ),
    ],
)
def test_bad_use(name: str, shape: object, dtype: str | None, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        get(name, shape, dtype)  # type: ignore[arg-type]
    assert str(caught.value) == message
