"""Closed forms against the scheduled module itself: DPUs, tasklets, buffers, tiles, DMA bytes."""

from __future__ import annotations

import time
from math import prod

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.s_tir import transform

from atim import pipeline, runtime, toolchain
from atim.schedules import Sketch, design_space
from atim.schedules.canonical import canonical
from atim.schedules.rules import apply
from atim.schedules.terms import TERMS, terms_of
from atim.schedules.verify import REASONS, check, explain
from atim.target import WRAM_RESERVE_BYTES, Target
from atim.workloads import get

TARGET = Target(dpus=2048)
CASES = [
    ("va", (4096,)),
    ("red", (4096,)),
    ("mtv", (96, 512)),
    ("gemv", (96, 512)),
    ("ttv", (6, 32, 128)),
    ("mmtv", (6, 32, 128)),
]


def sketches(name: str, shape: tuple[int, ...]) -> list[Sketch]:
    workload = get(name, shape)
    return design_space(workload.func, TARGET, workload.resident)


def matrix_of(sketch: Sketch, rng: np.random.Generator, n: int) -> np.ndarray:
    return np.stack([rng.choice(d.values, n) for d in sketch.decisions], axis=1)


def compacted(sketch: Sketch, decisions: dict[str, int]) -> tirx.PrimFunc:
    module = apply(sketch, decisions).mod
    for step in (
        transform.CanonicalizeLoop(),
        transform.LowerInitBlock(),
        transform.PlanAndUpdateBufferAllocationLocation(),
        transform.ConvertBlocksToOpaque(),
        transform.CompactBufferAllocation(),
    ):
        module = step(module)
    return module["main"]


def measured(func: tirx.PrimFunc) -> dict[str, int]:
    """Thread extents and WRAM bytes as TVM sees them."""
    found = {"buffer_bytes": 0, "shared_bytes": 0}
    threads: dict[str, int] = {}

    def loop(node: tirx.For) -> None:
        if node.thread_binding is not None:
            tag = str(node.thread_binding.thread_tag)
            threads[tag] = max(threads.get(tag, 1), int(node.extent))

    def block(node: tvm.s_tir.SBlock) -> None:
        for buffer in node.alloc_buffers:
            *outer, inner = [int(n) for n in buffer.shape]
            size = -(-inner * np.dtype(str(buffer.dtype)).itemsize // 8) * 8
            size *= int(np.prod(outer))
            if buffer.scope() == "local.wram":
                found["buffer_bytes"] += size
            elif buffer.scope() == "shared.wram":
                found["shared_bytes"] += size

    tvm_ffi.structural_walk(func.body, [(tirx.For, loop), (tvm.s_tir.SBlock, block)])
    for name, prefix in (("dpus", "blockIdx"), ("tasklets", "threadIdx")):
        found[name] = prod(n for tag, n in threads.items() if tag.startswith(prefix))
    return found


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_terms_equal_the_scheduled_module(
    name: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    for sketch in sketches(name, shape):
        matrix = matrix_of(sketch, rng, 200)
        legal, _, _ = check(sketch, matrix, TARGET)
        for row in matrix[legal][:6]:
            decisions = dict(zip(sketch.names, map(int, row), strict=True))
            terms = terms_of(sketch, row[None])
            func = compacted(sketch, decisions)
            for key, value in measured(func).items():
                # TVM shortens a tile that is longer than the tensor, the closed form doesn't
                assert value <= terms[key][0] <= value * 1.1, (sketch.name, key, decisions)


def test_terms_of_a_known_schedule() -> None:
    """MTV 4096x4096, 64 x 32 DPUs of 64 rows x 128 columns, 16 tasklets of 4 rows, x resident."""
    (sketch,) = [s for s in sketches("mtv", (4096, 4096)) if s.split_reduction]
    decisions = {"dpus_i": 64, "pieces": 32, "tasklets": 16, "row_block": 4, "tile": 64}
    decisions |= {"vector": 2, "unroll": 4, "even": 1, "host_threads": 4, "multiply": 0}
    terms = {k: v[0] for k, v in terms_of(sketch, sketch.vector(decisions)).items()}
    expected = {
        "dpus": 2048,
        "pieces": 32,
        "tasklets": 16,
        "rows_per_dpu": 64,
        "rows_per_tasklet": 4,
        "row_block": 4,
        "tile": 64,
        "steps": 2,
        "work": 4 * 128,
        "balance": 1,
        # 2 tiles of 4 rows, all of x (by one tasklet), one result
        "dma_count": 8 + 1 + 1,
        "read_bytes": 4 * 128 * 4 + 128 * 4,
        "write_bytes": 4 * 4,
        "buffer_bytes": 4 * 64 * 4 + 4 * 4,
        "shared_bytes": 128 * 4,
        "mram_bytes": 64 * 128 * 4 + 128 * 4 + 64 * 4,
        "h2d_bytes": 128 * 4,
        "resident_bytes": 64 * 128 * 4,
        "d2h_bytes": 64 * 4,
        "finish_bytes": 32 * 4096 * 4,
        "wram_bytes": 16 * (1040 + TARGET.stack_bytes) + 512 + WRAM_RESERVE_BYTES,
        "misaligned": 0,
    }
    assert {k: terms[k] for k in expected} == expected


def test_work_covers_the_program_and_nothing_is_empty(rng: np.random.Generator) -> None:
    for name, shape in [("va", (1021,)), ("mtv", (61, 130)), ("ttv", (5, 23, 70))]:
        for sketch in sketches(name, shape):
            matrix = matrix_of(sketch, rng, 500)
            terms, asked = terms_of(sketch, matrix), sketch.columns(matrix)
            assert (terms["balance"] >= 1).all()
            most = asked["tasklets"] * asked.get("tasklets_outer", 1)
            assert (terms["tasklets"] <= most).all()
            if sketch.roles.spread is None and sketch.name != "reduce":
                last = terms["rows_per_tasklet"] * (terms["tasklets"] - 1)
                assert (last < terms["rows_per_dpu"]).all(), "the last tasklet has rows"


def test_canonical_rows_schedule_the_same(rng: np.random.Generator) -> None:
    for name, shape in [("va", (1021,)), ("mtv", (61, 130)), ("mmtv", (5, 23, 70))]:
        for sketch in sketches(name, shape):
            matrix = matrix_of(sketch, rng, 300)
            again = canonical(sketch, matrix)
            assert (canonical(sketch, again) == again).all()
            before, after = terms_of(sketch, matrix), terms_of(sketch, again)
            # one tasklet's buffer may as well be the DPU's
            for name in {term.name for term in TERMS} - {"buffer_bytes", "shared_bytes"}:
                np.testing.assert_array_equal(before[name], after[name], name)


def test_checks_tens_of_thousands_a_second(rng: np.random.Generator) -> None:
    (sketch,) = [s for s in sketches("mtv", (4096, 4096)) if s.split_reduction]
    matrix = matrix_of(sketch, rng, 5000)
    start = time.process_time()
    check(sketch, matrix, TARGET)
    assert time.process_time() - start < 0.25


LIMITS = [
    ({"dpus_i": 128, "pieces": 32}, "DPUs: 4,096 needed, limit 2,048 (dpus_i 128, pieces 32)"),
    ({"tasklets": 25}, "tasklets: 25 needed, limit 24 (tasklets 25)"),
    ({"dpus_i": 1, "row_block": 512}, "row block: 512 rows needed, limit 256 (row_block 512)"),
    ({"host_threads": 999}, "host threads: 999 needed, limit 256 (host_threads 999)"),
    (
        {"tile": 2048, "pieces": 2},
        "WRAM: 541,952 bytes needed, limit 65,536 (tasklets 16, row_block 4, tile 2048, vector 2)",
    ),
    (
        {"dpus_i": 1, "pieces": 1, "vector": 0},
        "MRAM: 67,207,168 bytes needed, limit 67,108,864 (dpus_i 1, pieces 1)",
    ),
    ({"pieces": 0}, "pieces: 0 given, 1 to 2,147,483,647 allowed"),
    ({"vector": 3}, "vector: 3 given, 0 to 2 allowed"),
]


@pytest.mark.parametrize(("change", "message"), LIMITS)
def test_rejections_name_limit_and_value(change: dict[str, int], message: str) -> None:
    (sketch,) = [s for s in sketches("mtv", (4096, 4096)) if s.split_reduction]
    decisions = {"dpus_i": 64, "pieces": 32, "tasklets": 16, "row_block": 4, "tile": 64}
    decisions |= {"vector": 2, "unroll": 4, "even": 1, "host_threads": 4, "multiply": 0}
    assert explain(sketch, decisions, TARGET) is None
    assert explain(sketch, decisions | change, TARGET) == message
    legal, reason, _ = check(sketch, sketch.vector(decisions | change), TARGET)
    assert not legal[0]
    assert REASONS[reason[0]].what in (message.split(":")[0], "decision")


def test_a_rejected_alignment_names_its_step() -> None:
    a, k = te.placeholder((64, 16), "int8", "A"), te.reduce_axis((0, 64), "k")
    y = te.compute((16,), lambda j: te.sum(a[k, j], axis=k), "y")
    sketch = design_space(te.create_prim_func([a, y]), TARGET)[0]
    decisions = {"dpus_j": 1, "tasklets": 6, "row_block": 9, "tile": 43}
    decisions |= {"vector": 0, "unroll": 1, "even": 1}
    assert explain(sketch, decisions, TARGET) == (
        "DMA alignment: copies would start 9 bytes apart, multiple of 8 needed"
        " (dpus_j 1, row_block 9, tile 43)"
    )


@pytest.mark.parametrize(("dpus", "pieces", "same"), [(64, 1, 4096 * 4), (64, 2, 0), (1, 1, 0)])
def test_operands_that_all_dpus_hold_are_told_apart(dpus: int, pieces: int, same: int) -> None:
    """The vector of a matrix-vector product, unless its pieces are on different DPUs."""
    (sketch,) = [s for s in sketches("mtv", (4096, 4096)) if s.split_reduction]
    decisions = {"dpus_i": dpus, "pieces": pieces, "tasklets": 16, "row_block": 4, "tile": 64}
    decisions |= {"vector": 2, "unroll": 4, "even": 1, "host_threads": 4, "multiply": 0}
    assert terms_of(sketch, sketch.vector(decisions))["h2d_same_bytes"] == same


def test_unrolled_code_beyond_the_instruction_memory_is_rejected() -> None:
    (sketch,) = [s for s in sketches("mtv", (4096, 4096)) if s.split_reduction]
    decisions = {"dpus_i": 64, "pieces": 32, "tasklets": 2, "row_block": 8, "tile": 128}
    decisions |= {"vector": 2, "unroll": 128, "even": 1, "host_threads": 4, "multiply": 0}
    message = explain(sketch, decisions, TARGET)
    assert message is not None
    assert message.startswith("IRAM: ")
    assert "limit 4,096" in message


def test_results_are_written_in_multiples_of_8_bytes(rng: np.random.Generator) -> None:
    """The rule behind it: int32 and float32 rows of a tasklet are rounded up to even numbers."""
    for name, shape in [("mtv", (61, 130)), ("ttv", (5, 23, 70)), ("va", (1021,))]:
        for sketch in sketches(name, shape):
            terms = terms_of(sketch, matrix_of(sketch, rng, 300))
            assert (terms["rows_per_tasklet"] * 4 % 8 == 0).all()
            assert (terms["tile_bytes"] % 8 == 0).all()
            assert (terms["write_bytes"] % 8 == 0).all()


@pytest.mark.parametrize(
    ("dtype", "unroll"), [("int8", 8), ("int8", 4), ("int16", 8), ("int16", 32)]
)
def test_sums_of_narrow_elements(dtype, unroll):
    size, target = 4096, Target(dpus=1)
    (sketch,) = design_space(get("va", (size,), dtype).func, target)
    decisions = {d.name: d.values[0] for d in sketch.decisions}
    decisions |= {"tile": 512, "unroll": unroll}
    sources = pipeline.compile(sketch, decisions, target)
    artifact = toolchain.build(sources, target, host=False)
    arrays = {t.name: np.ones(size, dtype) for t in sources.plan.tensors if t.role == "input"}
    counted = runtime.run(artifact, arrays, representatives=True).counters["instructions"]
    estimate = terms_of(sketch, sketch.vector(decisions))["instructions"][0]
    assert estimate == pytest.approx(counted, rel=0.12)
