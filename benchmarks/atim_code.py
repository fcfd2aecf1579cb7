"""What ATiM's kernels are besides a schedule: buffers from the heap, sums kept there, its loops.

The C code that ATiM emits (yongwonshin/atim, artifact) allocates the WRAM of each tasklet: tasklet
0 empties the heap, all meet at a barrier, then each calls mem_alloc for every cache. Two things
follow that kernels with arrays of their own do not have. Allocating takes 4,000 cycles with 8
tasklets and 9,000 with 16. And to a compiler such buffers may overlap, so that a sum is stored
after every product. MTV by column pieces shows both on silicon (pieces.py): with them the published
times are 1.01 of the simulated ones and 0.29 ms, without 1.06 and 0.30.

`kernels` are the shipped schedules of MTV, TTV, MMTV and RED as one DPU runs them, loop for loop:
S S S R S R S R, the sums of all rows in WRAM between tiles. RED has a row for each tasklet, whose
sums one tasklet adds after a barrier; its short innermost loop is unrolled: LLVM's limit counts
instructions, and our clang's (RV32) are two for an addition of 64 bits where the DPU's is one pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import prod

import numpy as np
from tvm import te, tirx
from tvm.s_tir import Schedule

from atim import Target, pipeline, runtime, toolchain, workloads
from atim.codegen import Sources
from atim.target import ANNOTATE_ROLLED, SCOPE_TASKLET
from benchmarks.shipped import ATIM_WRAM_BYTES, Shipped
from upmem_sim import Dpu, compile_c

__all__ = [
    "INNER",
    "OUTER",
    "Loops",
    "from_heap",
    "kernels",
    "seconds",
    "start_up",
    "sums_of_tasklets",
]

SHORT = 32  # turns of a loop
OUTER, INNER = 4, 6  # levels of S S S R S R S R inside which the caches of the operands may sit
LEAST_DMA_BYTES = 8
_BUFFER = re.compile(r"    __dma_aligned (\w+) (\w+)((?:\[\d+\])+);.*\n")
_WRAM = re.compile(
    r"/\* WRAM of each tasklet \*/\nstatic struct \{\n((?:.*\n)+?)\} wram_of\[NR_TASKLETS\];\n"
)
_POINTER = re.compile(r"    __typeof__\(wram_of\[0\]\) \*const wram = .*\n")
_START = """#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>
BARRIER_INIT(ready, NR_TASKLETS);
__mram_noinit int64_t result;
__dma_aligned int64_t sums[NR_TASKLETS], sum;
int main(void) {
#if BUFFERS > 0
    if (me() == 0) mem_reset();
    barrier_wait(&ready);
    for (int i = 0; i < BUFFERS; i++) mem_alloc(8);
#endif
#ifdef SUMS
    sums[me()] = me();
    barrier_wait(&ready);
    if (me() == 0) {
        sum = 0;
        for (int i = 0; i < NR_TASKLETS; i++) sum += sums[i];
        mram_write(&sum, &result, 8);
    }
#endif
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Loops:
    """A matrix-vector product (int32), or sums of rows (int64), on one DPU: rows = tasklets x s2 x
    s3 x s4 (or fewer, then checked), columns = r0 x r1 x r2. unroll: statements that TVM may write
    out."""

    rows: int
    spatial: tuple[int, int, int, int]
    reduction: tuple[int, int, int]
    unroll: int = 0
    vector: bool = True

    @property
    def item_bytes(self) -> int:
        return 4 if self.vector else 8

    @property
    def tensors(self) -> tuple[te.Tensor, ...]:
        """Inputs, then the output."""
        shape = self.rows, prod(self.reduction)
        if self.vector:
            return workloads.get("mtv", shape, "int32").args
        a, k = te.placeholder(shape, "int64", "A"), te.reduce_axis((0, shape[1]), "k")
        return a, te.compute(shape[:1], lambda i: te.sum(a[i, k], axis=k), "y")

    @property
    def places(self) -> list[int]:
        """Where ATiM's rules allow the caches of the operands, one for each tile that differs."""
        tasklets, _, s3, s4 = self.spatial
        _, r1, r2 = self.reduction
        tiles = {INNER: (r2, s4), OUTER: (r1 * r2, s3 * s4)}
        if tiles[INNER] == tiles[OUTER]:
            del tiles[INNER]
        return [
            place
            for place, (columns, rows) in sorted(tiles.items())
            if (columns * (rows + self.vector) + s3 * s4) * self.item_bytes * tasklets
            <= ATIM_WRAM_BYTES
            and columns * self.item_bytes % LEAST_DMA_BYTES == 0
        ]

    def scheduled(self, place: int) -> tirx.PrimFunc:
        """The loops, with the operands cached inside the outer or the inner reduction loop."""
        s = Schedule(
            te.create_prim_func(list(self.tensors)), debug_mask="none", error_render_level="none"
        )
        block = s.get_sblock("y")
        row, k = s.get_loops(block)
        dpu, task, s2, s3, s4 = s.split(row, [1, *self.spatial])
        r0, r1, r2 = s.split(k, list(self.reduction))
        s.reorder(dpu, task, s2, r0, s3, r1, s4, r2)
        s.bind(dpu, "blockIdx.x")
        s.bind(task, "threadIdx.x")
        for loop in (s2, r0):
            s.annotate(loop, ANNOTATE_ROLLED, 1)
        for index in range(len(self.tensors) - 1):
            s.compute_at(s.cache_read(block, index, SCOPE_TASKLET), r0 if place == OUTER else r1)
        result_bytes = prod(self.spatial[2:]) * self.item_bytes
        write_at = s2 if result_bytes >= LEAST_DMA_BYTES else task
        s.reverse_compute_at(s.cache_write(block, 0, SCOPE_TASKLET), write_at)
        s.decompose_reduction(block, r0)
        copies = self.reduction[2]
        if copies <= (self.unroll if self.vector else max(self.unroll, SHORT)):
            s.unroll(r2)
        for loop in [s4] if place == INNER else [s4, r1, s3]:
            copies *= int(s.get(loop).extent)
            if copies > self.unroll:
                break
            s.unroll(loop)
        return s.mod["main"]


def kernels(shipped: Shipped) -> dict[int, float]:
    """Place of the caches -> seconds of a shipped schedule on one DPU, without launch."""
    if shipped.op == "red":
        _, _, (_, (r0, r1, r2)) = shipped.splits
        threads = shipped.tasklets
        loops = Loops(threads, (threads, 1, 1, 1), (r0, r1, r2), shipped.unroll, vector=False)
        last = sums_of_tasklets(threads)
        return {place: seconds(loops, place) + last for place in loops.places}
    spatial, reduction = [factors for kind, factors in shipped.splits if kind == "T"][-2:]
    _, s2, s3, s4 = spatial[1:]
    rows = prod(spatial[1:])
    _, r1, r2 = reduction
    loops = Loops(rows, (shipped.tasklets, s2, s3, s4), (reduction[0], r1, r2), shipped.unroll)
    return {place: seconds(loops, place) for place in loops.places}


def seconds(loops: Loops, place: int) -> float:
    """Of one DPU that computes on values 0 to 49, without launch; results compared with NumPy."""
    target = Target(dpus=1)
    sources = from_heap(pipeline.compile_func(loops.scheduled(place), target, pipeline.ATIM_LEVEL))
    rng = np.random.default_rng(0)
    arrays = {
        t.op.name: rng.integers(0, 50, [int(n) for n in t.shape], str(t.dtype))
        for t in loops.tensors[:-1]
    }
    outcome = runtime.run(toolchain.build(sources, target), arrays)
    assert outcome.outputs is not None
    expected = arrays["A"] @ arrays["x"] if loops.vector else arrays["A"].sum(axis=1)
    np.testing.assert_array_equal(outcome.outputs["y"], expected)
    return outcome.counters["cycles"] / (target.chip.clock_mhz * 1e6)


def from_heap(sources: Sources) -> Sources:
    """The same program with each tasklet's WRAM from the heap. AssertionError if it has none."""
    wram = _WRAM.search(sources.kernel_c)
    assert wram is not None, "a kernel with buffers of its tasklets"
    text = _WRAM.sub("BARRIER_INIT(ready, NR_TASKLETS);\n", sources.kernel_c)
    lines = ["if (me() == 0) mem_reset();", "barrier_wait(&ready);", *_allocations(wram[1])]
    start = "".join(f"    {line}\n" for line in lines)
    text, found = _POINTER.subn(lambda _: start, text)
    assert found == 1, "one pointer to them"
    headers = "#include <mram.h>\n"
    text = text.replace(headers, f"#include <alloc.h>\n#include <barrier.h>\n{headers}", 1)
    return replace(sources, kernel_c=text.replace("wram->", ""))


def _allocations(fields: str) -> Iterator[str]:
    """Definitions of pointers in the place of a structure's arrays."""
    for dtype, name, dimensions in _BUFFER.findall(fields):
        first, *inner = re.findall(r"\d+", dimensions)
        shape = "".join(f"[{n}]" for n in inner)
        pointer = f"(*{name}){shape}" if inner else f"*{name}"
        yield f"{dtype} {pointer} = mem_alloc({first} * sizeof *{name});"


@cache
def start_up(tasklets: int, buffers: int) -> float:
    """Seconds until all tasklets have emptied the heap, met and allocated."""
    return _run(tasklets, {"BUFFERS": buffers}) - _run(tasklets, {"BUFFERS": 0})


@cache
def sums_of_tasklets(tasklets: int) -> float:
    """Seconds until one tasklet has added what each has summed up."""
    return _run(tasklets, {"BUFFERS": 0, "SUMS": 1}) - _run(tasklets, {"BUFFERS": 0})


def _run(tasklets: int, defines: dict[str, int]) -> float:
    program = compile_c(_START, nr_tasklets=tasklets, defines=defines)
    return Dpu(program).run().cycles / (Target(dpus=1).chip.clock_mhz * 1e6)
