"""Vector addition on simulated DPUs: a hand schedule, the C made of it, its output and its time."""

import numpy as np

from atim import Target, pipeline, runtime, toolchain, workloads
from atim.schedules import manual

workload = workloads.get("va", (1021,), "int32")
target = Target(dpus=8)
sketch, decisions = manual.prim_style(workload, target)

sources = pipeline.compile(sketch, decisions, target)
print(sources.kernel_c)

arrays = workload.inputs(np.random.default_rng(0))
outcome = runtime.run(toolchain.build(sources, target), arrays)
assert np.array_equal(outcome.outputs["C"], arrays["A"] + arrays["B"])
for phase in ("h2d", "kernel", "d2h", "host", "total"):
    print(f"{phase:6} {getattr(outcome.timing, phase) * 1e3:.3f} ms")
print(f"{outcome.counters['cycles']} cycles on the slowest of {sources.plan.dpus} DPUs")
