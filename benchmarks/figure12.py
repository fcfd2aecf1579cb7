"""ATiM's boundary study (ISCA 2025, Figure 12): kernel time at each level, beside silicon.

VA adds L x 100000 int32 on 32 DPUs in tiles of 64; MTV multiplies 256 x L, L x 256 and L x L. All
run 16 tasklets that take their buffers from the heap (atim_code.py). Levels: no optimisation (O0),
copies as DMA (O1), loop bounds tightened (O2), branches hoisted and reads sunk (O4); "prim" is the
schedule in PrIM's style with everything on.

What the source does not say of MTV is inferred from its times: they grow by 85 cycles a product at
O0, two DMAs of 8 bytes, so that a DPU holds a matrix of the size given; and they have a constant
part, which the launch of about 1,024 DPUs explains. One DPU is simulated, the launch of 1,024 is
added. VA needs no such thing: its constant part is the launch of 32 DPUs. Its elements are first
cut into equal shares of the DPUs: tightening gains as much on silicon at L = 2, where tiles of 64
divide the whole, as at L = 1, so that the checks must depend on the element there too.

Loops around other loops stay rolled: our clang would make four copies of a loop over four tiles,
and drop the checks from three of them, where the times measured at O1 have them in all (clang 12
copies them too, checks and all). And an address that is used under a check is computed there
(`addresses_where_used`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from tvm import tirx
from tvm.s_tir import Schedule

from atim import Target, pipeline, runtime, toolchain, workloads
from atim.codegen import Sources
from atim.schedules.manual import prim_style
from atim.target import ANNOTATE_ROLLED, SCOPE_TASKLET
from atim.workloads import Array
from benchmarks.atim_code import from_heap
from upmem_sim import TransferModel

DATA = Path(__file__).parent / "data" / "figure12.csv"
TASKLETS = 16
TILE = 64
STEP = 2  # elements of 8 bytes
LEVELS = (("o0", 0), ("o1", 1), ("o2", 2), ("o4", 4))
TIGHTENED = 2
STEPS = (
    ("DMA", "o0", "o1"),
    ("tightening", "o1", "o2"),
    ("hoisting", "o2", "o4"),
    ("PrIM/final", "prim", "o4"),
)
LAUNCHED = {True: 32, False: 1024}  # DPUs in the launch
Arrays = dict[str, Array]
QUICK = (72, 1)
LARGEST_VA = 16  # larger values of L are sizes of a matrix
MEAN_LIMIT, RATIO_LIMIT = 0.08, 0.10
ALL = "all"
_CHECKED_ZERO = re.compile(r" if \([^;{}]*\) \{\n +(\w+)\[([^;]+)\] = 0;\n")
_CHECKED_SUM = r"( if \([^;{}]*\) \{\n)( +)ARRAY\[INDEX\] (\+= [^;]+;\n)"


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the study: a shape by name and L."""

    name: str
    length: int

    @property
    def workload(self) -> workloads.Workload:
        if self.name == "VA":
            return workloads.get("va", (self.length * 100_000,), "int32")
        rows = self.length if self.name.startswith("MTV L") else 256
        columns = self.length if self.name.endswith("L") else 256
        return workloads.get("mtv", (rows, columns), "int32")

    @property
    def target(self) -> Target:
        return Target(dpus=32 if self.name == "VA" else 1)


def published() -> dict[Case, dict[str, float]]:
    """Case -> milliseconds by level."""
    lines = [line for line in DATA.read_text().splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines)
    return {
        Case(row["case"], int(row["L"])): {
            k: float(row[k]) for k in ("prim", "o0", "o1", "o2", "o4")
        }
        for row in rows
    }


def scheduled(case: Case, level: int) -> tirx.PrimFunc:
    """The study's schedule: all tasklets bound, tiles of 64 that need not divide, rows in pairs and
    the elements of a DPU in steps of 8 bytes. Loops are rolled, but for the one that LLVM unrolls
    by itself: free of calls and, once its bound is tightened, of branches."""
    s = Schedule(case.workload.func, debug_mask="none", error_render_level="none")
    block = s.get_sblock("C" if case.name == "VA" else "y")
    if case.name == "VA":
        (i,) = s.get_loops(block)
        share = -(-case.workload.shape[0] // (STEP * case.target.dpus)) * STEP
        dpu, rest = s.split(i, [case.target.dpus, share])
        task, step, element = s.split(rest, [TASKLETS, None, TILE])
        write_at, around = step, [step]
        if level >= TIGHTENED:
            s.unroll(element)
    else:
        row, k = s.get_loops(block)
        dpu, task, pair, one = s.split(row, [1, TASKLETS, None, STEP])
        step, _ = s.split(k, [None, TILE])
        write_at, around = task, [pair, one, step]
    for loop in around:
        s.annotate(loop, ANNOTATE_ROLLED, 1)
    s.bind(dpu, "blockIdx.x")
    s.bind(task, "threadIdx.x")
    for index in range(2):
        s.compute_at(s.cache_read(block, index, SCOPE_TASKLET), step)
    s.reverse_compute_at(s.cache_write(block, 0, SCOPE_TASKLET), write_at)
    if case.name != "VA":
        s.decompose_reduction(block, step)
    return s.mod["main"]


def prim(case: Case) -> Sources:
    """PrIM's schedule. Its matrix is padded: as many row pairs for each tasklet, no row checks."""
    workload, target = case.workload, case.target
    if case.name != "VA":
        rows, columns = workload.shape
        pairs = -(-rows // (2 * TASKLETS))
        workload = workloads.get("mtv", (2 * TASKLETS * pairs, columns + columns % 2), "int32")
    return pipeline.compile(*prim_style(workload, target), target)


def addresses_where_used(sources: Sources) -> Sources:
    """The same program with the address of a sum computed under the check, for every product, if
    its zeroing is under a check as well.

    UPMEM's target lets clang believe that any sum of registers is an address, for free. LLVM
    (CodeGenPrepare) then moves the computation into the block that loads, and moves it out again
    (MachineLICM, MachineCSE) only if that block runs in each turn, or one before it has the same
    address. clang 12 and 13 for RV32 with 8 registers that a call preserves, given such addresses,
    do what was measured: 2 slots a product more under the check of a row (an addition, and a
    pointer that these registers have no room for), none in a loop without one, and none where a
    column alone is checked.
    """
    text = sources.kernel_c
    for zero in _CHECKED_ZERO.finditer(text):
        array, index = zero.groups()
        pattern = _CHECKED_SUM.replace("ARRAY", array).replace("INDEX", re.escape(index))
        lines = (
            "int32_t *sum;",
            f'__asm__("lsl_add %0, %1, %2, 2" : "=r"(sum) : "r"({array}), "r"({index}));',
            "*sum ",
        )
        under_check = r"\1" + "\n".join(rf"\2{line}" for line in lines) + r"\3"
        text = re.sub(pattern, under_check, text)
    return replace(sources, kernel_c=text)


def measure(case: Case) -> dict[str, float]:
    """Simulated kernel milliseconds by level; the outputs are compared with NumPy."""
    workload = case.workload
    times = {}
    for name, level in LEVELS:
        sources = pipeline.compile_func(scheduled(case, level), case.target, level)
        code = from_heap(sources)
        times[name] = kernel_ms(addresses_where_used(code), case, workload.reference)
    times["prim"] = kernel_ms(from_heap(prim(case)), case, workload.reference)
    return times


def kernel_ms(sources: Sources, case: Case, reference: Callable[[Arrays], Array]) -> float:
    """Kernel milliseconds of one program on random values 0 to 49."""
    rng = np.random.default_rng(0)
    inputs = {
        t.name: rng.integers(0, 50, t.shape).astype(t.dtype)
        for t in sources.plan.tensors
        if t.role == "input"
    }
    outcome = runtime.run(toolchain.build(sources, case.target), inputs)
    assert outcome.outputs is not None
    (output,) = outcome.outputs.values()
    np.testing.assert_array_equal(output, reference(inputs), str(case))
    model = TransferModel.preset(case.target.transfer)
    more = model.launch(LAUNCHED[case.name == "VA"]) - model.launch(sources.plan.dpus)
    return (outcome.timing.kernel + more) * 1e3


def in_order(times: dict[str, float]) -> bool:
    """O0 slower than O1, and no later step slower than the one before it by more than 1.5 %, which
    published rows are too."""
    steps = [times[name] for name, _ in LEVELS]
    return all(b <= 1.015 * a for a, b in pairwise(steps))


def ratios(rows: Iterable[dict[str, float]]) -> dict[str, float]:
    """Geometric mean of each step over some rows."""
    chosen = list(rows)
    logs = {step: [np.log(t[a] / t[b]) for t in chosen] for step, a, b in STEPS}
    return {step: float(np.exp(np.mean(values))) for step, values in logs.items()}


def table(measured: dict[Case, dict[str, float]], known: dict[Case, dict[str, float]]) -> str:
    """A line a row: simulated, published and error of every level; then the steps' means."""
    order = ("o0", "o1", "o2", "o4", "prim")
    heads = "".join(f"{name:>10} silicon error" for name in order)
    lines = [f"{'':15}{heads}  order"]
    for case, times in measured.items():
        cells = ""
        for name in order:
            silicon = known.get(case, {}).get(name)
            cells += f"{times[name]:10.3f}"
            cells += f"{silicon:8.3f}{times[name] / silicon - 1:+6.1%}" if silicon else " " * 14
        lines.append(
            f"{case.name:10} {case.length:3} {cells}  {'yes' if in_order(times) else 'NO'}"
        )
    return "\n".join(lines)


def judge(measured: dict[Case, dict[str, float]], known: dict[Case, dict[str, float]]) -> bool:
    """Print the means of published rows, by case and of all; True when orders, the mean error and
    the geometric mean of each step are within the limits: over all rows, and over those of each
    case, if all of them were measured."""
    both = {case: times for case, times in measured.items() if case in known}
    good = all(in_order(times) for times in measured.values())
    if not both:
        return good
    off = [abs(times[k] / known[case][k] - 1) for case, times in both.items() for k in times]
    print(f"\nkernel times: mean absolute error {np.mean(off):.1%}, largest {max(off):.1%}")
    good = good and float(np.mean(off)) <= MEAN_LIMIT
    print("geometric means of the steps, simulated / published:")
    for name in (*dict.fromkeys(case.name for case in both), ALL):
        chosen = [case for case in both if name in (case.name, ALL)]
        ours, theirs = (ratios(rows[case] for case in chosen) for rows in (both, known))
        errors = {step: value / theirs[step] - 1 for step, value in ours.items()}
        cells = [f"{n} {ours[n]:.2f} / {theirs[n]:.2f} ({e:+.0%})" for n, e in errors.items()]
        print(f"  {name:10} {',  '.join(cells)}")
        if name == ALL or len(chosen) == sum(case.name == name for case in known):
            good = good and max(map(abs, errors.values())) <= RATIO_LIMIT
    return good


def cases_of(lengths: Sequence[int], quick: bool) -> list[Case]:
    """The published rows, or those of the lengths asked for (up to 16: VA)."""
    known = list(published())
    if not lengths:
        return [c for c in known if not quick or c.length in QUICK]
    names = dict.fromkeys(c.name for c in known)
    return [Case(n, size) for n in names for size in lengths if (n == "VA") == (size <= LARGEST_VA)]


def run(quick: bool = False, lengths: Sequence[int] = ()) -> int:
    """Print the study; 1 when an order or a mean is outside of its limit."""
    known = published()
    measured = {case: measure(case) for case in cases_of(lengths, quick)}
    print("kernel milliseconds, int32, 16 tasklets; o0 none, o1 DMA, o2 tightening, o4 hoisting")
    print(table(measured, known))
    return int(not judge(measured, known))
