"""Scheduled modules mean what their program means, whatever the decisions; and the two orders of
primitives that TVM gets wrong are shown to be wrong, so that a fixed TVM would be noticed."""

from __future__ import annotations

import time

import numpy as np
import pytest
import serial
from tvm import te
from tvm.s_tir import Schedule

from atim.errors import UsageError
from atim.schedules import Sketch, design_space
from atim.schedules.rules import apply
from atim.schedules.shapes import SWITCHES
from atim.target import Target
from atim.workloads import WORKLOADS, Workload, get

TARGET = Target(dpus=2048)


def sketches(workload: Workload) -> dict[str, Sketch]:
    return {s.name: s for s in design_space(workload.func, TARGET, workload.resident)}


def check(workload: Workload, sketch: Sketch, decisions: dict[str, int]) -> None:
    """The scheduled module gives NumPy's output and touches nothing else."""
    arrays = workload.inputs(np.random.default_rng(7))
    expected = workload.reference(arrays)
    inputs = [arrays[t.op.name] for t in workload.args[:-1]]
    output = serial.run(apply(sketch, decisions), inputs, expected.shape, workload.dtype)
    rtol = 0 if expected.dtype.kind == "i" else 1e-4
    np.testing.assert_allclose(output, expected, rtol=rtol, err_msg=str(decisions))


def draw(sketch: Sketch, rng: np.random.Generator) -> dict[str, int]:
    """Random decisions around the grid, literal tiles included."""
    decisions = {d.name: int(rng.choice(d.values)) for d in sketch.decisions}
    return decisions | {"even": int(rng.integers(2))}


ROWS = {"tasklets": 5, "row_block": 2, "tile": 12, "unroll": 4, "multiply": 0}


@pytest.mark.parametrize("even", [0, 1])
@pytest.mark.parametrize("vector", [0, 1, 2])
@pytest.mark.parametrize("shape", [(1, 1), (13, 191)])
def test_mtv_rows(shape: tuple[int, int], vector: int, even: int) -> None:
    mtv = get("mtv", shape)
    decisions = ROWS | {"dpus_i": 7, "vector": vector, "even": even}
    check(mtv, sketches(mtv)["rows"], decisions)


@pytest.mark.parametrize("even", [0, 1])
@pytest.mark.parametrize("vector", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 1), (13, 191)])
def test_mtv_rows_split(shape: tuple[int, int], vector: int, even: int) -> None:
    mtv = get("mtv", shape)
    decisions = ROWS | {"dpus_i": 7, "vector": vector, "even": even, "pieces": 3}
    check(mtv, sketches(mtv)["rows_split"], decisions | {"host_threads": 3})


@pytest.mark.parametrize("even", [0, 1])
@pytest.mark.parametrize("cyclic", [0, 1])
@pytest.mark.parametrize("size", [1, 1021, 4096])
def test_va(size: int, cyclic: int, even: int) -> None:
    va = get("va", (size,))
    decisions = {"dpus_i": 7, "tasklets": 5, "tile": 24, "unroll": 4, "cyclic": cyclic}
    check(va, sketches(va)["elementwise"], decisions | {"even": even})


@pytest.mark.parametrize("name", ["va", "geva", "red", "mtv", "gemv", "ttv", "mmtv"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_random_decisions(name: str, dtype: str, rng: np.random.Generator) -> None:
    shape = {1: (1009,), 2: (61, 130), 3: (5, 23, 70)}[len(WORKLOADS[name].sizes)]
    workload = get(name, shape, dtype)
    for sketch in sketches(workload).values():
        for _ in range(2):
            check(workload, sketch, draw(sketch, rng))


def test_kernel_and_host_nests_are_where_code_generation_looks_for_them() -> None:
    mtv = get("mtv", (1000, 777))
    decisions = ROWS | {"dpus_i": 16, "vector": 2, "even": 1, "pieces": 4, "host_threads": 2}
    schedule = apply(sketches(mtv)["rows_split"], decisions)
    text = schedule.mod["main"].script()
    kernel, host = text.split("for i_0 in T.parallel(2)")
    for part in ("blockIdx.x", "blockIdx.y", "threadIdx.x", "local.wram", "shared.wram", "unroll"):
        assert part in kernel
        assert part not in host
    assert "y_rf = T.sblock_alloc_buffer((4, 1000)" in kernel


def test_scheduling_takes_milliseconds() -> None:
    mtv = get("mtv", (1000, 777))
    sketch = sketches(mtv)["rows_split"]
    decisions = ROWS | {"dpus_i": 16, "vector": 2, "even": 1, "pieces": 4, "host_threads": 2}
    apply(sketch, decisions)
    best = min(_seconds(sketch, decisions) for _ in range(5))
    assert best < 0.2, "the search schedules every candidate it measures"


def _seconds(sketch: Sketch, decisions: dict[str, int]) -> float:
    start = time.process_time()
    apply(sketch, decisions)
    return time.process_time() - start


def test_unknown_and_missing_decisions_are_named() -> None:
    sketch = sketches(get("va", (64,)))["elementwise"]
    with pytest.raises(UsageError, match="decisions unknown rows; missing cyclic, dpus_i"):
        apply(sketch, {"rows": 1, "tasklets": 1, "tile": 4, "unroll": 1, "even": 1})


def test_switches_are_decisions_of_some_sketch() -> None:
    known = {n for name in ("va", "mtv") for s in sketches(get(name)).values() for n in s.names}
    assert set(SWITCHES) <= known


def naive_rfactor(rows: int, columns: int, dpus: int, pieces: int) -> Schedule:
    """The spatial loop split before rfactor."""
    s = Schedule(get("mtv", (rows, columns)).func)
    block = s.get_sblock("y")
    i, k = s.get_loops(block)
    s.split(i, [dpus, -(-rows // dpus)])
    piece, _ = s.split(k, [pieces, -(-columns // pieces)])
    s.rfactor(piece, factor_axis=0)
    return s


def test_rfactor_after_a_spatial_split_writes_out_of_bounds_in_tvm() -> None:
    """100 rows on 7 DPUs are 7 x 15: the final block loses `i < 100` and writes 5 rows too many."""
    mtv = get("mtv", (100, 77))
    arrays = mtv.inputs(np.random.default_rng(7))
    with pytest.raises(AssertionError, match="outside of its output"):
        serial.run(naive_rfactor(100, 77, 7, 3), list(arrays.values()), (100,), "int32")


def naive_compute_at(size: int, dpus: int, tasklets: int) -> Schedule:
    """A sum with two rfactors, the inner one moved under the DPU loop by compute_at."""
    a = te.placeholder((size,), "int32", "A")
    k = te.reduce_axis((0, size), "k")
    s = Schedule(te.create_prim_func([a, te.compute((1,), lambda i: te.sum(a[k], axis=k), "b")]))
    block = s.get_sblock("b")
    _, k = s.get_loops(block)
    dpu, task, _ = s.split(k, [dpus, tasklets, -(-size // (dpus * tasklets))])
    partial = s.rfactor(dpu, factor_axis=0)
    _, dpu, task, _ = s.get_loops(partial)
    inner = s.rfactor(task, factor_axis=0)
    s.compute_at(inner, s.get_loops(partial)[1])
    return s


def test_compute_at_of_a_predicated_rfactor_block_loses_the_predicate_in_tvm() -> None:
    """1009 elements on 7 x 4 shares of 37: the clipped tail is summed as if it were there."""
    a = np.random.default_rng(7).integers(0, 50, 1009, dtype=np.int32)
    result = serial.run(naive_compute_at(1009, 7, 4), [a], (1,), "int32")
    assert result[0] != a.sum()
