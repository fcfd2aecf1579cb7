"""Tune a matrix-vector product of one's own and use what was found: the README's example."""

import numpy as np
from tvm import te

import atim

A = te.placeholder((1024, 777), "int32", "A")
x = te.placeholder((777,), "int32", "x")
k = te.reduce_axis((0, 777), "k")
y = te.compute((1024,), lambda i: te.sum(A[i, k] * x[k], axis=k), "y")

target = atim.Target("upmem-v1a", dpus=64)
run = atim.tune([A, x, y], target, trials=8, resident=["A"], work_dir="runs/example")
print(run.report())

mtv = run.best.build()  # callable on NumPy arrays
matrix, vector = np.ones((1024, 777), "int32"), np.arange(777, dtype="int32")
result, timing = mtv(matrix, vector)  # every DPU is simulated
assert (result == matrix @ vector).all()
print(f"{timing.total * 1e3:.3f} ms, {timing.kernel * 1e3:.3f} ms of it in the kernel")
