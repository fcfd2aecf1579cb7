"""The runtime on small hand-written kernels: right numbers, right times, stray writes seen."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import upmem_sim
from atim import toolchain
from atim.codegen import Sources, Tensor, Tile, TransferPlan
from atim.errors import MismatchError, ScheduleError, ToolchainError, UsageError
from atim.runtime import Timing, dpu_classes, host_times, run
from atim.target import Target

N, TILE, DPUS = 1021, 256, 5  # the fourth DPU is clipped, the fifth holds nothing
TARGET = Target(dpus=8)

KERNEL = """
#include <defs.h>
#include <mram.h>
#include <stdint.h>
__mram_noinit int32_t A[256];
__mram_noinit int32_t B[256];
__mram_noinit int32_t C[256];
__host int32_t grid[2];
static __dma_aligned int32_t a[NR_TASKLETS][32], b[NR_TASKLETS][32];
int main(void) {
    uint32_t t = me();
    for (uint32_t i = t * 32; i < 256; i += 32 * NR_TASKLETS) {
        mram_read(A + i, a[t], 128);
        mram_read(B + i, b[t], 128);
        for (uint32_t j = 0; j < 32; j++) a[t][j] = a[t][j] + b[t][j] + grid[0];
        mram_write(a[t], C + i, 128);
    }
    EXTRA
    return 0;
}
"""

HOST = """
#include <stdint.h>
#include <string.h>
static int64_t inside(uint32_t dpu) {
    int64_t left = 1021 - (int64_t)dpu * 256;
    return left < 0 ? 0 : left > 256 ? 256 : left;
}
static void pack(const int32_t *t, int32_t *s, const uint32_t *dpus, uint32_t count) {
    memset(s, 0, (size_t)count * 1024);
    for (uint32_t i = 0; i < count; i++)
        memcpy(s + i * 256, t + (size_t)dpus[i] * 256, (size_t)inside(dpus[i]) * 4);
}
#define MOVE const uint32_t *dpus, uint32_t count, uint32_t threads
void pack_A(const void *t, void *s, MOVE) { (void)threads; pack(t, s, dpus, count); }
void pack_B(const void *t, void *s, MOVE) { (void)threads; pack(t, s, dpus, count); }
void unpack_C(void *t, const void *s, MOVE) {
    (void)threads;
    for (uint32_t i = 0; i < count; i++)
        memcpy((int32_t *)t + (size_t)dpus[i] * 256, (const int32_t *)s + i * 256,
               (size_t)inside(dpus[i]) * 4);
}
void finish(void *const *tensors, uint32_t threads) {
    (void)threads;
    const int32_t *c = tensors[0];
    int64_t *total = tensors[1];
    *total = 0;
    for (int i = 0; i < 1021; i++) *total += c[i];
}
"""


def tile(name: str, mode: str) -> Tile:
    return Tile(name, name, "int32", mode, (N,), (TILE,), (TILE,), (0,), ((TILE,),))  # type: ignore[arg-type]


def plan(finish: bool = False) -> TransferPlan:
    role = "intermediate" if finish else "output"
    tensors = [
        Tensor("A", (N,), "int32", "input"),
        Tensor("B", (N,), "int32", "input"),
        Tensor("C", (N,), "int32", role),  # type: ignore[arg-type]
    ]
    if finish:
        tensors.append(Tensor("total", (1,), "int64", "output"))
    return TransferPlan(
        (DPUS,),
        tuple(tensors),
        (tile("A", "in"), tile("B", "in"), tile("C", "out")),
        grid_symbol="grid",
        finish="finish" if finish else None,
        finish_args=("C", "total") if finish else (),
    )


def sources(extra: str = "", finish: bool = False) -> Sources:
    return Sources(KERNEL.replace("EXTRA", extra), HOST, plan(finish), nr_tasklets=4)


@pytest.fixture(scope="module")
def artifact() -> toolchain.Artifact:
    return toolchain.build(sources(), TARGET)


@pytest.fixture
def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: rng.integers(0, 50, N, dtype=np.int32) for name in "AB"}


def expected(arrays: dict[str, np.ndarray]) -> np.ndarray:
    return arrays["A"] + arrays["B"] + np.arange(N, dtype=np.int32) // TILE


def test_all_dpus_give_the_output(artifact: toolchain.Artifact, arrays: dict) -> None:
    outcome = run(artifact, arrays)
    assert outcome.outputs is not None
    assert np.array_equal(outcome.outputs["C"], expected(arrays))
    assert outcome.counters["dpus_run"] == DPUS


def test_one_dpu_of_each_class_gives_its_piece(artifact: toolchain.Artifact, arrays: dict) -> None:
    outcome = run(artifact, arrays, representatives=True)
    assert outcome.outputs is None
    assert [p.dpu for p in outcome.pieces] == [1, 3, 4]
    assert [p.values.size for p in outcome.pieces] == [256, 253, 0]
    for piece in outcome.pieces:
        part = slice(piece.start[0], piece.start[0] + piece.values.size)
        assert np.array_equal(piece.values, expected(arrays)[part])


def test_representatives_cost_what_all_cost(artifact: toolchain.Artifact, arrays: dict) -> None:
    some = run(artifact, arrays, representatives=True)
    every = run(artifact, arrays)
    assert some.timing == every.timing
    assert some.counters["cycles"] == every.counters["cycles"] > 0


def test_host_finishes(arrays: dict) -> None:
    outcome = run(toolchain.build(sources(finish=True), TARGET), arrays)
    assert outcome.outputs is not None
    assert list(outcome.outputs) == ["total"]
    assert outcome.outputs["total"][0] == expected(arrays).sum()
    assert outcome.timing.host > 0


def test_timing_is_launch_cycles_and_transfers(artifact: toolchain.Artifact, arrays: dict) -> None:
    timing = run(artifact, arrays, resident=["A"]).timing
    cycles = run(artifact, arrays).counters["cycles"]
    model = upmem_sim.TransferModel.preset("common")
    assert timing.kernel == pytest.approx(model.launch(DPUS) + cycles / 350e6)
    assert timing.h2d == pytest.approx(model.to_dpus(1024, DPUS))
    assert timing.d2h == pytest.approx(model.from_dpus(1024, DPUS))
    assert timing.host == 0
    assert timing.total == timing.h2d + timing.kernel + timing.d2h


def test_resident_operands_and_preset_change_the_transfers() -> None:
    both = host_times(plan(), TARGET)[0]
    assert host_times(plan(), TARGET, resident=["A"])[0] == pytest.approx(both / 2)
    assert host_times(plan(), TARGET, resident=["A", "B"])[0] == 0
    other = Target(dpus=8, transfer="kern")
    assert host_times(plan(), other)[0] < both


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("if (t == 0) mram_write(a[0], C + 256, 8);", "wrote outside its tile of C"),
        ("if (t == 0) mram_write(a[0], A + 8, 8);", "changed its input tile of A"),
    ],
)
def test_stray_writes_are_mismatches(extra: str, message: str, arrays: dict) -> None:
    artifact = toolchain.build(sources(extra), TARGET, host=False)
    with pytest.raises(MismatchError, match=message):
        run(artifact, arrays, representatives=True)


def test_what_no_tasklet_wrote_is_not_zero(arrays: dict) -> None:
    lazy = sources()
    kernel = lazy.kernel_c.replace("mram_write(a[t], C + i, 128);", "")
    artifact = toolchain.build(
        Sources(kernel, HOST, lazy.plan, lazy.nr_tasklets), TARGET, host=False
    )
    piece = run(artifact, arrays, representatives=True).pieces[0]
    assert np.all(piece.values.view(np.uint8) == 0xA5)


def test_faults_of_the_kernel_come_through(arrays: dict) -> None:
    artifact = toolchain.build(sources("while (1);"), TARGET, host=False)
    with pytest.raises(upmem_sim.SimFault, match="cycle"):
        run(artifact, arrays, representatives=True, max_cycles=100_000)


def test_wrong_arrays_are_named(artifact: toolchain.Artifact, arrays: dict) -> None:
    with pytest.raises(UsageError, match="input B is missing: got A"):
        run(artifact, {"A": arrays["A"]})
    with pytest.raises(UsageError, match=r"input A: got int64\[1021\], needs int32\[1021\]"):
        run(artifact, arrays | {"A": arrays["A"].astype(np.int64)})
    with pytest.raises(UsageError, match="resident operand W is not an input: A, B"):
        run(artifact, arrays, resident=["W"])


def test_classes_gather_dpus_clipped_alike() -> None:
    edge = Tile("M", "M", "int32", "in", (10, 7), (4, 4), (4, 4), (-1, 0), ((4, 0), (0, 4)))
    grid = TransferPlan((3, 2), (Tensor("M", (10, 7), "int32", "input"),), (edge,))
    # rows -1..2 lose the first, 3..6 nothing, 7..10 the last; columns 4..7 lose the last
    assert [g.tolist() for g in dpu_classes(grid)] == [[0], [1], [2], [3], [4], [5]]
    whole = TransferPlan((4,), (), (tile("A", "in"),))
    assert [g.tolist() for g in dpu_classes(whole)] == [[0, 1, 2], [3]]


def test_artifacts_travel_between_processes(artifact: toolchain.Artifact, arrays: dict) -> None:
    copy = pickle.loads(pickle.dumps(artifact))
    assert run(copy, arrays).timing == run(artifact, arrays).timing


def test_host_half_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    toolchain.compile_host.cache_clear()
    first = toolchain.compile_host(HOST)
    toolchain.compile_host.cache_clear()
    monkeypatch.setattr(toolchain, "_run", lambda command: pytest.fail("compiled again"))
    assert toolchain.compile_host(HOST) == first
    toolchain.compile_host.cache_clear()


def test_no_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="no C compiler found on PATH"):
        toolchain.find_compiler()


def test_rejected_host_text_gives_the_compilers_line() -> None:
    with pytest.raises(ToolchainError, match="error:"):
        toolchain.compile_host("int f(void) { return missing; }")


def test_a_program_too_large_is_an_illegal_candidate() -> None:
    body = "".join(f"grid[{i % 2}] = grid[{(i + 1) % 2}] * {i + 3};" for i in range(3000))
    with pytest.raises(ScheduleError, match="IRAM"):
        toolchain.build(sources(f"volatile int32_t *g = grid; {body.replace('grid', 'g')}"), TARGET)


def test_frames_that_do_not_fit_the_stack_are_an_illegal_candidate() -> None:
    body = "volatile int32_t held[300]; held[grid[0] & 1] = grid[1]; grid[0] = held[0];"
    with pytest.raises(ScheduleError, match=r"stack: 1,?2\d\d bytes needed by each tasklet, limit"):
        toolchain.build(sources(f"volatile int32_t *g = grid; {body.replace('grid', 'g')}"), TARGET)


def test_timing_adds_up() -> None:
    assert Timing(1.0, 2.0, 3.0, 4.0).total == 10.0
