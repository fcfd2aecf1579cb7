"""Speed of the cycle engine: instructions and DPU cycles a second, per loop program.

The programs are those that the speed of other UPMEM simulators is quoted for (add loop, DMA and add
loop). Timing is on; each figure is the best of several runs. The last column counts processor time
instead of wall time, for machines that do other work, and is for all threads.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from upmem_sim import Dpu, Program, System, run_many
from upmem_sim.bare import bare_program, booted

__all__ = ["run"]

_INNER = """
inner:
  lsl_add r3, r0, r2, 2
  lw r5, r3, 0
  add r5, r5, r1
  sw r3, 0, r5
  add r2, r2, 1
  jneq r2, 256, inner
"""
_HEAD = """
  lsl r0, id8, 8
  lsl r4, id8, 12
  move r1, {rounds}
outer:
  {read}
  move r2, 0
"""
_TAIL = """
  {write}
  add r1, r1, -1, nz, outer
end: stop true, end
"""


def add_loop(tasklets: int, rounds: int) -> Program:
    """256 int32 additions in WRAM, `rounds` times."""
    body = _HEAD.format(rounds=rounds, read="nop") + _INNER + _TAIL.format(write="nop")
    return bare_program(booted(body, tasklets), tasklets=tasklets)


def dma_add_loop(tasklets: int, rounds: int) -> Program:
    """The same on blocks of 1 KB that a DMA brings in and another takes back."""
    read, write = "ldma r0, r4, 127", "sdma r0, r4, 127"
    body = _HEAD.format(rounds=rounds, read=read) + _INNER + _TAIL.format(write=write)
    return bare_program(booted(body, tasklets), tasklets=tasklets)


@dataclass(frozen=True, slots=True)
class Case:
    """A line of the table: `dpus` DPUs over `threads` threads."""

    name: str
    build: Callable[[int, int], Program]
    tasklets: int
    rounds: int
    dpus: int = 1
    threads: int = 1
    plain: bool = False


_CASES = (
    Case("add loop", add_loop, 1, 6400),
    Case("add loop", add_loop, 16, 1600),
    Case("DMA + add loop", dma_add_loop, 16, 1600),
    Case("DMA + add loop, plain engine", dma_add_loop, 16, 100, plain=True),
    Case("DMA + add loop", dma_add_loop, 16, 100, dpus=64),
    Case("DMA + add loop", dma_add_loop, 16, 100, dpus=64, threads=2),
)


def _measure(case: Case, quick: bool) -> tuple[float, float, float]:
    """Best of some runs: instructions and cycles a second, and instructions a second of processor
    time, which other programs on the machine do not reduce, times the threads."""
    program = case.build(case.tasklets, max(1, case.rounds // (8 if quick else 1)))
    dpus = [Dpu(program, index=i) for i in range(case.dpus)]
    best = (0.0, 0.0)
    alone = 0.0
    for _ in range(2 if quick else 5):
        start, used = time.perf_counter(), time.process_time()
        if case.plain:
            results = [dpu.run(plain=True) for dpu in dpus]
        else:
            results = run_many(dpus, threads=case.threads)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        instructions = sum(r.instructions for r in results)
        best = max(best, (instructions / seconds, sum(r.cycles for r in results) / seconds))
        alone = max(alone, instructions / used * case.threads)
    return *best, alone


def memory() -> float:
    """Peak bytes of this process after it ran 2048 DPUs with 256 KB of data each, 512 MB in all."""
    program = dma_add_loop(16, 1)
    system = System(program, 2048)
    data = np.arange(1 << 16, dtype=np.int32)
    for dpu in system:
        dpu.mram[: data.nbytes] = data.view(np.uint8)
    system.run()
    for dpu in system:
        assert int(dpu.mram[7 << 15 :][:4].view(np.int32)[0]) == (7 << 13) + 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def run(quick: bool) -> int:
    """Prints the table; gives the exit status."""
    heads = ("tasklets", "DPUs", "threads", "M instr/s", "M cyc/s", "M /cpu s")
    print(f"{'program':<30}", *(f"{head:>9}" for head in heads))
    for case in _CASES:
        measured = _measure(case, quick)
        values = (case.tasklets, case.dpus, case.threads)
        rates = (f"{rate / 1e6:>9.1f}" for rate in measured)
        print(f"{case.name:<30}", *(f"{v:>9}" for v in values), *rates, flush=True)
    print(f"2048 DPUs with 512 MB of data: {memory() / 2**30:.2f} GB at most, limit 4 GB")
    return 0
