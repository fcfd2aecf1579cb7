"""Loops that the passes over DPU code rewrite give what the C says."""

from __future__ import annotations

import numpy as np
import pytest

from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu

SWEEP = """\
#include <mram.h>
#include <stdint.h>
__host int32_t values[16], results[8], limit;
__attribute__((noinline)) int32_t f(int32_t a) { return a * a / 3; }
int main(void) {
    const int32_t *v = values + (limit & 1), n = limit, s = v[0], t = v[1], u = v[2], w = v[3];
    int32_t a = 0, b = 0, c = 0, d = 0, e = 0;
    for (int32_t i = 0; i < n; i++) {
        a += f(v[i] - s);
        b += f(v[i] - t);
        c += f(v[i] - u);
        d += f(v[i] - w);
        e += f(v[i]);
    }
    results[0] = a; results[1] = b; results[2] = c; results[3] = d; results[4] = e;
    return 0;
}
"""


@pytest.mark.parametrize("opt", ["-O1", "-O2", "-Os"])
def test_a_limit_on_the_stack_counts_the_loop(opt: str) -> None:
    dpu = Dpu(compile_c(SWEEP, opt=opt))
    values = np.arange(3, 51, 3, dtype=np.int32)
    dpu.write("values", values)
    for n in (1, 6, 9):
        dpu.write("limit", np.int32(n))
        dpu.run(max_cycles=1_000_000)
        some = values[n & 1 :]
        expected = [int(((some[:n] - s) ** 2 // 3).sum()) for s in (*some[:4], 0)]
        assert dpu.read("results", np.int32, 5).tolist() == expected
