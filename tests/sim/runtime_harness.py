"""Programs that use the DPU's headers and leave 64-bit results in `out`."""

from __future__ import annotations

import numpy as np

from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu, RunResult

HEADERS = """
#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>
#include <defs.h>
#include <mram.h>
#include <alloc.h>
#include <barrier.h>
#include <mutex.h>
#include <sem.h>
#include <handshake.h>
#include <perfcounter.h>
#include <string.h>
#include <stdlib.h>
#include <errno.h>
#include <assert.h>
__host int64_t out[64];
"""


def run(body: str, tasklets: int = 1, stack: int = 1024, opt: str = "-O2") -> tuple[Dpu, RunResult]:
    program = compile_c(HEADERS + body, nr_tasklets=tasklets, stack_bytes=stack, opt=opt)
    dpu = Dpu(program)
    return dpu, dpu.run(max_cycles=50_000_000)


def out(dpu: Dpu, count: int = 64) -> list[int]:
    return [int(x) for x in dpu.read("out", np.int64, count)]
