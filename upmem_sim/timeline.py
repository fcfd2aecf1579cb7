"""What each tasklet did when: the spans of a traced run, and a file that Perfetto opens.

In: the trace arrays of `RunResult` (dtype `SPAN`). Out: JSON in the Chrome trace event format, one
process a DPU and one thread a tasklet, read by https://ui.perfetto.dev.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upmem_sim.program import Program

__all__ = ["KINDS", "SPAN", "write_perfetto"]

SPAN = np.dtype(
    [
        ("begin", "<u8"),
        ("end", "<u8"),
        ("pc", "<u4"),
        ("bytes", "<u2"),
        ("tasklet", "u1"),
        ("kind", "u1"),
    ]
)
"""Cycles [begin, end), the instruction it began with, bytes of a transfer, index of KINDS."""

KINDS = ("run", "dma read", "dma write", "sleep", "lock")


def _events(dpu: int, trace: NDArray[np.void], program: Program, mhz: float) -> Iterator[Any]:
    yield {"ph": "M", "name": "process_name", "pid": dpu, "args": {"name": f"DPU {dpu}"}}
    for tasklet in np.unique(trace["tasklet"]).tolist():
        name = {"name": f"tasklet {tasklet}"}
        yield {"ph": "M", "name": "thread_name", "pid": dpu, "tid": tasklet, "args": name}
    for begin, end, pc, size, tasklet, kind in trace.tolist():
        args: dict[str, Any] = {"cycle": begin, "cycles": end - begin, "pc": pc}
        if pc < len(program.lines) and (line := program.lines[pc]) is not None:
            args["line"] = f"{line[0]}:{line[1]}"
        if size:
            args["bytes"] = size
        yield {
            "ph": "X",
            "name": KINDS[kind],
            "cat": KINDS[kind].split()[0],
            "pid": dpu,
            "tid": tasklet,
            "ts": begin / mhz,
            "dur": (end - begin) / mhz,
            "args": args,
        }


def write_perfetto(
    path: str | Path, traces: Mapping[int, NDArray[np.void]], program: Program, clock_mhz: float
) -> None:
    """Writes the traces of some DPUs (index -> spans) of one program; times in microseconds."""
    events = [e for dpu, trace in traces.items() for e in _events(dpu, trace, program, clock_mhz)]
    Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))
