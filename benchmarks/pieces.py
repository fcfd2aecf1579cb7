"""MTV 8192 x 8192 on 2048 DPUs by number of column pieces, beside the times measured for ATiM.

The kernel is PrIM-like (16 tasklets, 1024-byte blocks, rolled loop, vector re-read for each row)
in the code that ATiM emits (atim_code.py), simulated with data on one DPU. The pieces' partial
results are added by one host thread; transfers and host are the model fitted to the same system.

A straight line through the times of 1 to 32 pieces over the simulated cycles tells what of the
published times does not depend on the kernel, which is the launch, and whether the loop is as long.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from atim import Target, pipeline, runtime, toolchain, workloads
from atim.runtime import Timing
from atim.schedules import manual
from benchmarks import atim_code
from benchmarks.atim_code import OUTER
from upmem_sim import TransferModel

DATA = Path(__file__).parent / "data" / "mtv_pieces.csv"
SIZE, DPUS = 8192, 2048
TILE = manual.BLOCK_BYTES // 4
PRESET = "upmem-2021.3-2048dpu"  # the system the table was measured on
JUDGED = 256  # beyond, rows are shorter than 32 columns and the code around the loop decides
QUICK = (1, 8, 64)
FITTED = 32  # pieces: beyond, silicon takes a little longer
KERNEL_LIMIT = 0.05  # mean absolute error, 1 to 256 pieces
MINIMUM = range(8, 33)  # pieces with the smallest sum


@dataclass(frozen=True, slots=True)
class Row:
    """Simulated and measured times of one number of pieces."""

    pieces: int
    ours: Timing
    measured: Timing

    @property
    def kernel_error(self) -> float:
        return self.ours.kernel / self.measured.kernel - 1


def published() -> dict[int, Timing]:
    """Pieces -> measured seconds of each phase."""
    lines = [line for line in DATA.read_text().splitlines() if not line.startswith("#")]
    phases = ("h2d", "kernel", "d2h", "host")
    return {
        int(row["pieces"]): Timing(*(float(row[phase]) * 1e-3 for phase in phases))
        for row in csv.DictReader(lines)
    }


def measure(workload: workloads.Workload, inputs: dict[str, np.ndarray], pieces: int) -> Timing:
    """Build and run one number of pieces."""
    target = Target(dpus=DPUS, transfer=PRESET)
    sketch, decisions = manual.prim_pieces(workload, target, pieces)
    artifact = toolchain.build(pipeline.compile(sketch, decisions, target), target, host=False)
    outcome = runtime.run(artifact, inputs, representatives=True, resident=workload.resident)
    launch = TransferModel.preset(PRESET).launch(DPUS)
    return replace(outcome.timing, kernel=launch + atim_code.seconds(loops(pieces), OUTER))


def loops(pieces: int) -> atim_code.Loops:
    """What one DPU computes; results are written in pairs."""
    rows, columns = SIZE * pieces // DPUS, SIZE // pieces
    tile = min(TILE, columns)
    each = max(2, rows // manual.TASKLETS)
    return atim_code.Loops(rows, (manual.TASKLETS, each, 1, 1), (columns // tile, 1, tile))


def table(rows: list[Row]) -> str:
    """The rows side by side, milliseconds."""
    lines = ["pieces |  h2d         kernel              d2h         host          sum"]
    lines.append("       | sim  meas   sim   meas error   sim  meas   sim   meas   sim   meas")
    for row in rows:
        a, b = row.ours, row.measured
        lines.append(
            f"{row.pieces:6} |{_ms(a.h2d)}{_ms(b.h2d)}{_ms(a.kernel, 7)}{_ms(b.kernel, 6)}"
            f"{row.kernel_error:+6.1%}{_ms(a.d2h, 6)}{_ms(b.d2h)}{_ms(a.host, 6)}{_ms(b.host, 6)}"
            f"{_ms(a.total, 7)}{_ms(b.total, 7)}"
        )
    return "\n".join(lines)


def _ms(seconds: float, width: int = 5) -> str:
    return f"{seconds * 1e3:{width}.2f}"


def run(quick: bool = False) -> int:
    """Print the table and what it is judged by; 1 when a judgement fails."""
    workload = workloads.get("mtv", (SIZE, SIZE), "int32")
    inputs = workload.inputs(np.random.default_rng(0))
    rows = []
    for pieces, measured in published().items():
        if quick and pieces not in QUICK:
            continue
        rows.append(Row(pieces, measure(workload, inputs, pieces), measured))
    print(f"MTV {SIZE} x {SIZE} int32, {DPUS} DPUs, milliseconds; transfer model {PRESET}")
    print(table(rows))
    judged = [abs(row.kernel_error) for row in rows if row.pieces <= JUDGED]
    error = float(np.mean(judged))
    launch = TransferModel.preset(PRESET).launch(DPUS)
    fitted = [row for row in rows if row.pieces <= FITTED]
    slope, left = np.polyfit(
        [row.ours.kernel - launch for row in fitted], [row.measured.kernel for row in fitted], 1
    )
    print(
        f"measured kernels: {slope:.3f} x simulated + {left * 1e3:.3f} ms;"
        f" launch {launch * 1e3:.3f}"
    )
    best = min(rows, key=lambda row: row.ours.total)
    fastest = min(rows, key=lambda row: row.measured.total)
    print(f"kernel: mean absolute error {error:.1%} for 1 to {JUDGED} pieces")
    print(f"smallest sum: {best.pieces} pieces (measured: {fastest.pieces})")
    return int(error > KERNEL_LIMIT or best.pieces not in MINIMUM)
