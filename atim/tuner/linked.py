"""The stages of a tuned program as one chain: which of their schedules, and what it takes together.

In: the stages, each with its measured schedules or the host's code. Out: `Linked`, the schedules of
the fastest chain that fits a DPU, verified against NumPy with all DPUs running, and its time. Tuned
alone, each stage's winner may fill a DPU's memories; then the chains that are next in time are
tried (combinations.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from tvm import tirx

from atim.errors import MismatchError, ScheduleError
from atim.outcome import Timing
from atim.schedules.stages import Stage
from atim.target import Target
from atim.tuner.combinations import combinations
from atim.tuner.compare import check_outputs
from atim.tuner.database import Record
from atim.tuner.measure import staged_data
from atim.tuner.result import Best
from atim.tuner.staged import HostStep, KernelStep, Staged, ends_of

__all__ = ["Linked", "StagedBest", "first_that_fits", "total_of"]


@dataclass(frozen=True, repr=False)
class StagedBest:
    """The verified winners of all stages: what `build` puts together. `parts`: a Best for each
    stage of the DPUs, the host's code for the others. `timings`: of each stage within the chain,
    or of the chain as a whole where stages can't be told apart (on hardware)."""

    title: str
    func: tirx.PrimFunc
    stages: tuple[Stage, ...]
    target: Target
    resident: tuple[str, ...]
    parts: tuple[Best | HostStep, ...]
    timings: tuple[Timing, ...] = ()

    def __repr__(self) -> str:
        parts = ", ".join(
            "host" if isinstance(p, HostStep) else p.record.sketch for p in self.parts
        )
        return f"best of {self.title}: {self.timing.total * 1e3:.3f} ms; stages: {parts}"

    @property
    def timing(self) -> Timing:
        """Of all stages together."""
        return total_of(self.timings)

    def build(self) -> Staged:
        """Compile all stages, for use on arrays."""
        inputs, outputs = ends_of(self.func, self.stages, self.resident)
        steps = tuple(
            part if isinstance(part, HostStep) else KernelStep(stage, part.sources())
            for stage, part in zip(self.stages, self.parts, strict=True)
        )
        return Staged(inputs, outputs, steps, self.target, self.resident, self.func, self.title)


@dataclass(frozen=True)
class Linked:
    """`records`: of each stage the number of the trial whose schedule it has, None on the host.
    `timings` as those of `StagedBest`."""

    records: tuple[int | None, ...]
    timings: tuple[Timing, ...]

    def fact(self) -> Mapping[str, Any]:
        """As the database keeps it."""
        return {
            "records": list(self.records),
            "timings": [list(dataclasses.astuple(t)) for t in self.timings],
        }

    @staticmethod
    def of(fact: Mapping[str, Any]) -> Linked:
        return Linked(tuple(fact["records"]), tuple(Timing(*t) for t in fact["timings"]))


def total_of(timings: Sequence[Timing]) -> Timing:
    """Phase by phase."""
    columns = zip(*map(dataclasses.astuple, timings), strict=True)
    return Timing(*(reduce(add, column, 0.0) for column in columns))


def first_that_fits(best: StagedBest, measured: Sequence[Sequence[Record]]) -> Linked:
    """The fastest chain that one program can hold, and its time.
    `measured`: the valid trials of each stage of the DPUs.

    ScheduleError when none of some fits, MismatchError when the chain's numbers are wrong.
    """
    why = ""
    _, outputs = ends_of(best.func, best.stages, best.resident)
    chains = combinations(best.stages, best.parts, measured, best.target, outputs, best.resident)
    for records in chains:
        left = iter(records)
        parts = tuple(
            part if isinstance(part, HostStep) else part.instead(next(left)) for part in best.parts
        )
        built = dataclasses.replace(best, parts=parts).build()
        try:
            built.chain  # noqa: B018 (links the stages)
        except ScheduleError as error:
            why = why or str(error)
            continue
        numbers = tuple(p.record.number if isinstance(p, Best) else None for p in parts)
        return Linked(numbers, _verified(built))
    raise ScheduleError(f"{why} (no other schedules among those measured fit either)")


def _verified(built: Staged) -> tuple[Timing, ...]:
    """Times of the chain on the inputs that tuning uses, after its numbers were compared."""
    data = staged_data(built.func, [s.func for s in built.stages], built.outputs)
    given = {name: data.inputs[name] for name in built.chain.inputs}
    if not built.target.hardware:
        values, spent = built.chain.run(given)
        for stage in built.stages:
            check_outputs(stage.func, values, {name: values[name] for name in stage.outputs})
        return tuple(timing for timing, _ in spent)
    results, timing = built.chain(given)
    for name, result in zip(built.outputs, results, strict=True):
        wanted = data.expected[name].astype(np.float64)
        if not np.all(np.abs(result.astype(np.float64) - wanted) <= data.tolerances.get(name, 0.0)):
            raise MismatchError(f"{name}: the chain's values are not those of NumPy")
    return (timing,)
