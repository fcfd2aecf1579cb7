"""Calls one run-time routine of the DPU on whole arrays: a driver in assembly, 16 tasklets.

In: a `Routine` and NumPy arrays. Out: the results as an array, and the instructions inside the
routine. Records of 16 bytes travel through MRAM, so that a million operands take one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upmem_sim.asm import assemble
from upmem_sim.dpu import Dpu
from upmem_sim.link import link
from upmem_sim.objfile import Unit
from upmem_sim.program import Program

TASKLETS = 16
CHUNK = 64  # records of a transfer: 1 KB
RESULTS = 32 << 20  # MRAM offset of the results
COUNT = 0x800  # WRAM address of the number of chunks
LOOP = 7  # instructions around a call
MAX_RECORDS = RESULTS // 16

_DRIVER = """
    .text
    .globl __bootstrap
__bootstrap:
    jgeu id, {last}, .Lready
    boot id, 1
.Lready:
    lsl r19, id, 11
    add r19, r19, 0x1000
    add r22, r19, 2048
    move r16, id
    lw r17, zero, {count}
.Lchunk:
    jgeu r16, r17, .Lend
    lsl r0, r16, 10
    add r0, r0, 0x08000000
    ldma r19, r0, 127
    move r14, r19
    add r15, r19, 1024
    add r18, r19, 1024
.Lrecord:
    ld d2, r14, 8
    ld d0, r14, 0
    call r23, {name}
    sd r15, 0, d0
    add r14, r14, 16
    add r15, r15, 8
    jneq r14, r18, .Lrecord
    add r1, r19, 1024
    lsl r0, r16, 9
    add r0, r0, {results}
    sdma r1, r0, 63
    add r16, r16, {tasklets}, true, .Lchunk
.Lend:
    stop true, .Lend
"""


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine of the run time with the dtypes of its arguments and result."""

    name: str
    args: tuple[str, ...]
    result: str


@cache
def runtime() -> tuple[Unit, ...]:
    folder = files("upmem_sim") / "cc" / "rt"
    sources = sorted(p.name for p in folder.iterdir() if p.name.startswith("arith_"))
    return tuple(assemble((folder / name).read_text(), name) for name in sources)


@cache
def program(name: str) -> Program:
    """The driver linked with routine `name`."""
    text = _DRIVER.format(
        name=name,
        last=TASKLETS - 1,
        tasklets=TASKLETS,
        count=COUNT,
        results=0x08000000 + RESULTS,
    )
    return link([assemble(text, "driver"), *runtime()], nr_tasklets=TASKLETS)


def _records(routine: Routine, arrays: tuple[NDArray[Any], ...], chunks: int) -> NDArray[Any]:
    """Operands as the driver loads them: 32-bit ones r1, r0; 64-bit ones d0, d2."""
    kinds = [np.dtype(kind) for kind in routine.args]
    records = np.zeros((chunks * CHUNK, 4), np.uint32)
    narrow = all(kind.itemsize == 4 for kind in kinds)
    for i, (kind, array) in enumerate(zip(kinds, arrays, strict=True)):
        column = i if narrow else 2 * i
        words = np.ascontiguousarray(array, kind).view(np.uint32).reshape(len(array), -1)
        records[: len(array), column : column + words.shape[1]] = words
    return records


def call(routine: Routine, *arrays: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Results for arrays of equal length, and the mean instructions inside the routine.

    Raises SimFault if the routine faults; at most 2,097,152 operands a call.
    """
    count = len(arrays[0])
    if not 0 < count <= MAX_RECORDS:
        raise ValueError(f"records: {count}, limit 1 to {MAX_RECORDS}")
    chunks = -(-count // CHUNK)
    records = _records(routine, arrays, chunks)
    records[count:] = records[count - 1]  # what pads the last chunk must be legal too
    dpu = Dpu(program(routine.name))
    dpu.mram[: records.nbytes] = records.reshape(-1).view(np.uint8)
    dpu.wram[COUNT : COUNT + 4] = np.array([chunks], np.uint32).view(np.uint8)
    run = dpu.run()
    # outside the records: start of each tasklet, the rest of each chunk, one test at the end
    outside = TASKLETS * (1 + 5 + 1 + 1) + TASKLETS - 1 + chunks * (1 + 6 + 5)
    inside = (run.instructions - outside) / (chunks * CHUNK) - LOOP
    kind = np.dtype(routine.result)
    results = dpu.mram[RESULTS : RESULTS + 8 * count].reshape(count, 8)[:, : kind.itemsize]
    return np.ascontiguousarray(results).view(kind).reshape(-1), inside
