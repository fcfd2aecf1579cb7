"""What a tuning run gives back: its records, its best schedule, and that schedule as a callable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import tirx
from tvm.s_tir import Schedule

from atim import pipeline, runtime, toolchain
from atim.codegen import Sources
from atim.errors import AtimError, UsageError
from atim.export import write_folder
from atim.runtime import Timing
from atim.schedules import Sketch
from atim.schedules.normal import shaped
from atim.schedules.rules import apply
from atim.tuner.database import Record, RunKey
from atim.tuner.display import PHASES, breakdown
from atim.tuner.loop import Result
from atim.tuner.measure import check_data
from atim.tuner.plan import Plan
from atim.tuner.proposals import Candidate
from atim.tuner.search import Observation
from atim.tuner.trial import told_failures

__all__ = ["Best", "Built", "Run", "array_of", "history_of", "run_of"]

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class Best:
    """The verified winner of a run."""

    record: Record
    sketch: Sketch
    title: str = ""
    sketches: tuple[Sketch, ...] = ()  # of the program, for `instead`

    def instead(self, record: Record) -> Best:
        """Another trial of the same run."""
        known = (self.sketch, *self.sketches)
        sketch = next(sketch for sketch in known if sketch.name == record.sketch)
        return replace(self, record=record, sketch=sketch)

    def __repr__(self) -> str:
        total = breakdown(self.record.timing) if self.record.timing else "not measured"
        return f"best of {self.title}: {total}; schedule {_chosen(self.record)}"

    @property
    def timing(self) -> Timing:
        assert self.record.timing is not None
        return Timing(*self.record.timing)

    @cached_property
    def schedule(self) -> Schedule:
        """The scheduled module; `.trace` can be read, edited and replayed with TVM alone."""
        return apply(self.sketch, self.record.decisions)

    def sources(self) -> Sources:
        """kernel_c, host_c and the transfer plan; no compiler runs."""
        sources = pipeline.compile(self.sketch, self.record.decisions, self.sketch.target)
        return replace(sources, plan=replace(sources.plan, groups=self.record.rank_groups))

    def build(self) -> Built:
        """Compile it, for use on arrays."""
        artifact = toolchain.build(self.sources(), self.sketch.target)
        return Built(artifact, self.sketch.program.original, self.sketch.resident, self.title)


@dataclass(frozen=True)
class Built:
    """A compiled program: call it with the inputs in order, or by name.

    It runs on simulated DPUs, or on DIMMs if its target is `on_hardware()`.
    """

    artifact: toolchain.Artifact
    func: tirx.PrimFunc
    resident: tuple[str, ...] = ()
    title: str = ""

    @property
    def sources(self) -> Sources:
        """kernel_c, host_c and the transfer plan."""
        return self.artifact.sources

    def __call__(self, *inputs: Any, threads: int = 2, **named: Any) -> tuple[Any, Timing]:
        """Run on NumPy arrays or DLPack tensors of the declared shapes and dtypes.

        All DPUs run. Returns the output (a tuple if there are several) and the Timing of
        the call. UsageError for wrong arrays.
        """
        names = [t.name for t in self.sources.plan.tensors if t.role == "input"]
        if len(inputs) + len(named) != len(names) or set(names[: len(inputs)]) & set(named):
            raise UsageError(f"{len(inputs) + len(named)} inputs given, needs {', '.join(names)}")
        given = {**dict(zip(names, inputs, strict=False)), **named}
        arrays = {n: shaped(self.func, n, array_of(value)) for n, value in given.items()}
        outcome = runtime.run(self.artifact, arrays, resident=self.resident, threads=threads)
        assert outcome.outputs is not None
        outputs = tuple(shaped(self.func, n, a, back=True) for n, a in outcome.outputs.items())
        return outputs[0] if len(outputs) == 1 else outputs, outcome.timing

    def export(self, folder: str | Path, *, data: bool = True) -> list[Path]:
        """Write kernel.c, host.c, a check program, a Makefile and a README into a folder.

        It builds with the UPMEM SDK or upmem_sim's tools of the same names, and needs no Python.
        With `data` also arrays for the check: inputs as those that tuning uses, and what NumPy
        makes of them. Returns the paths. RecordError when something can't be written.
        """
        title = self.title or str(self.func.params[-1].name)
        _, paths = write_folder(
            folder,
            self.sources,
            name=title.split()[0],
            title=title,
            resident=self.resident,
            data=check_data(self.func) if data else None,
        )
        return paths


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run. `facts` may hold the baseline: {"name": ..., "timing": (4 x seconds)}."""

    key: RunKey
    folder: Path
    records: tuple[Record, ...]
    winner: Record | None
    ended: str
    facts: Mapping[str, Any]
    sketches: Mapping[str, Sketch]

    def __repr__(self) -> str:
        """What a notebook shows: the records are thousands of lines."""
        return self.report()

    @property
    def best(self) -> Best:
        """The fastest schedule, verified on all DPUs. AtimError when nothing was valid."""
        if self.winner is None:
            raise AtimError(f"no valid candidate among {len(self.records)} trials")
        sketches = tuple(self.sketches.values())
        sketch = self.sketches[self.winner.sketch]
        return Best(self.winner, sketch, self.key.workload, sketches)

    def summary(self) -> dict[str, Any]:
        """The end of a run in plain values, as JSON lines have it."""
        winner = self.winner
        timing = None if winner is None or winner.timing is None else winner.timing
        return {
            "program": self.key.workload,
            "target": self.key.target,
            "version": self.key.version,
            "trials": len(self.records),
            "failed": sum(r.status == "failed" for r in self.records),
            "ended": self.ended,
            "folder": str(self.folder),
            "best": None if winner is None else winner.number,
            "total_s": None if timing is None else sum(timing),
            "timing_s": None if timing is None else dict(zip(PHASES, timing, strict=True)),
            "sketch": None if winner is None else winner.sketch,
            "decisions": None if winner is None else dict(winner.decisions),
            "rank_groups": None if winner is None else winner.rank_groups,
        }

    def report(self) -> str:
        """A few lines: the baseline, the best, their ratio, the decisions, trials by outcome."""
        lines = [f"{self.key.workload} on {self.key.target}"]
        baseline = self.facts.get("baseline")
        if baseline is not None:
            lines.append(f"{baseline['name']}: {breakdown(baseline['timing'])}")
        if self.winner is not None and self.winner.timing is not None:
            lines.append(f"best: {breakdown(self.winner.timing)}")
            if baseline is not None:
                ratio = sum(baseline["timing"]) / self.winner.objective_s
                lines.append(f"best is {ratio:.2f}x as fast as {baseline['name']}")
            lines.append(f"schedule: {_chosen(self.winner)}")
        failed = [(r.reason, r.message) for r in self.records if r.status == "failed"]
        count = f", {len(failed)} failed" if failed else ""
        lines.append(f"{len(self.records)} trials: {len(self.records) - len(failed)} valid{count}")
        lines += told_failures(failed)
        same = sum(r.same_as is not None for r in self.records)
        if same:
            lines.append(f"{same} of them had the C text of earlier ones, and were not run again")
        lines.append(f"ended: {self.ended}; records in {self.folder}")
        return "\n".join(lines)


def run_of(plan: Plan, folder: Path, result: Result) -> Run:
    """What the caller gets. Raises ScheduleError when there was no candidate at all."""
    if not result.records:
        raise plan.nothing_legal()
    by_name = {sketch.name: sketch for sketch in plan.sketches}
    return Run(plan.key, folder, result.records, result.winner, result.ended, result.facts, by_name)


def history_of(plan: Plan, result: Result) -> list[Observation]:
    """The trials as a search sees them."""
    places = {sketch.name: n for n, sketch in enumerate(plan.sketches)}
    return [
        Observation(Candidate(places[r.sketch], tuple(r.decisions.values())), r.objective_s)
        for r in result.records
    ]


def _chosen(record: Record) -> str:
    chosen = ", ".join(f"{name} {value}" for name, value in record.decisions.items())
    if record.rank_groups > 1:
        chosen += f"; {record.rank_groups} groups of ranks, one after the other"
    return f"{record.sketch}: {chosen}"


def array_of(value: Any) -> Array:
    """A NumPy array of what has `numpy()`, DLPack or NumPy's own protocols."""
    if isinstance(value, np.ndarray):
        return value
    # TVM tensors copy themselves: NumPy's DLPack import crashes on some of them.
    if hasattr(value, "numpy"):
        return np.asarray(value.numpy())
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)
