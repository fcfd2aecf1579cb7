"""Measured candidates, kept from one benchmark to the next: decision vector -> seconds.

Measuring is deterministic, so what one search has measured serves every other. The file is
runs/measured/measured.db; its key holds program, target and software version, so nothing stale is
ever used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import tvm_ffi

from atim import Target
from atim.schedules.canonical import canonical
from atim.schedules.verify import check
from atim.tuner.cost_model import CostModel
from atim.tuner.features import FEATURES, VERSION, describe
from atim.tuner.measure import Problem
from atim.tuner.pool import Pool
from atim.tuner.proposals import Candidate, Space
from atim.tuner.search import Observation
from atim.tuner.trial import Measurement, Task
from atim.tuner.version import software_version
from atim.workloads import Workload

__all__ = ["FOLDER", "Given", "Measured", "Timing", "model"]

FOLDER = Path("runs") / "measured"
WORKERS = 2
TIME_LIMIT_S = 120.0

Timing = tuple[float, float, float, float]
Given = tuple[tuple[str, tuple[int, ...]], ...]  # inputs by name, with their values

SCHEMA = """
CREATE TABLE IF NOT EXISTS measured (
    problem TEXT, sketch TEXT, decisions TEXT,
    timing TEXT NOT NULL,  -- JSON: [h2d, kernel, d2h, host] in seconds, or null
    reason TEXT NOT NULL,  -- of a failure
    PRIMARY KEY (problem, sketch, decisions)
)
"""


def model(seed: int = 0) -> CostModel:
    """An untrained model of our features."""
    return CostModel([feature.name for feature in FEATURES], VERSION, seed)


class Measured:
    """The candidates of one workload on one target; a context manager. Inputs are random but for
    those given. groups: ranks may compute while others transfer, where it pays.

    fresh, cached: how many were measured now, and found. wall_s: spent measuring.
    """

    def __init__(
        self,
        workload: Workload,
        target: Target,
        folder: Path = FOLDER,
        given: Given = (),
        groups: bool = True,
    ) -> None:
        self.workload = workload
        self.target = target
        problem = Problem.of(workload.func, target, workload.resident)
        self.problem = replace(problem, given=given, choose_groups=groups)
        self.sketches = self.problem.sketches()
        self.space = Space(self.sketches, canonical, lambda s, m: check(s, m, target)[0], describe)
        facts = (
            tvm_ffi.structural_hash(workload.func),
            repr(target),
            workload.resident,
            software_version(),
            given,
            groups,
        )
        self._key = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(folder / "measured.db", timeout=60.0)
        self._file.execute(SCHEMA)
        self._pool = Pool(self.problem, workers=WORKERS, time_limit_s=TIME_LIMIT_S)
        self.fresh, self.cached, self.wall_s = 0, 0, 0.0
        self.failures: dict[str, int] = {}

    def __enter__(self) -> Measured:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.close()
        self._file.close()

    def timings(self, tasks: Sequence[tuple[str, Mapping[str, int]]]) -> list[Timing | None]:
        """Of (sketch, decisions): seconds of each phase, or None for what fails."""
        found = [self._known(sketch, decisions) for sketch, decisions in tasks]
        missing = [n for n, timing in enumerate(found) if timing is None]
        self.cached += len(tasks) - len(missing)
        began = time.perf_counter()
        with contextlib.closing(self._pool.run([Task(*tasks[n]) for n in missing])) as replies:
            for place, reply in replies:
                value = reply.value
                if not isinstance(value, Measurement):
                    value = Measurement("failed", reply.kind, str(value))
                self._keep(*tasks[missing[place]], value)
        self.wall_s += time.perf_counter() - began if missing else 0.0
        self.fresh += len(missing)
        return [self._read(sketch, decisions) for sketch, decisions in tasks]

    def observe(self, candidates: Sequence[Candidate]) -> list[Observation]:
        """Candidates of the space, measured."""
        timings = self.timings([self.task(c) for c in candidates])
        return [
            Observation(c, sum(t) if t is not None else float("inf"))
            for c, t in zip(candidates, timings, strict=True)
        ]

    def task(self, candidate: Candidate) -> tuple[str, dict[str, int]]:
        """(sketch, decisions) of a candidate."""
        sketch = self.sketches[candidate.sketch]
        return sketch.name, dict(zip(sketch.names, candidate.values, strict=True))

    def _known(self, sketch: str, decisions: Mapping[str, int]) -> str | None:
        row = self._file.execute(
            "SELECT timing FROM measured WHERE problem = ? AND sketch = ? AND decisions = ?",
            (self._key, sketch, json.dumps(dict(decisions))),
        ).fetchone()
        return None if row is None else str(row[0])

    def _read(self, sketch: str, decisions: Mapping[str, int]) -> Timing | None:
        text = self._known(sketch, decisions)
        assert text is not None, "measured just before"
        timing = json.loads(text)
        return None if timing is None else (timing[0], timing[1], timing[2], timing[3])

    def _keep(self, sketch: str, decisions: Mapping[str, int], value: Measurement) -> None:
        if value.timing is None:
            self.failures[value.reason] = self.failures.get(value.reason, 0) + 1
        with self._file:
            self._file.execute(
                "INSERT OR REPLACE INTO measured VALUES (?, ?, ?, ?, ?)",
                (
                    self._key,
                    sketch,
                    json.dumps(dict(decisions)),
                    json.dumps(None if value.timing is None else list(value.timing)),
                    f"{value.reason}: {value.message}" if value.timing is None else "",
                ),
            )
