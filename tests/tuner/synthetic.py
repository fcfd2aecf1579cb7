"""A space with a known optimum that looks like a matrix-vector product on DPUs.

Builder processes import this file too: what only the tests need is imported where it is used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from atim.tuner.trial import Measurement, Task

if TYPE_CHECKING:
    from atim.tuner.proposals import Candidate, Space
    from atim.tuner.search import Observation, Options, Search

FEATURES = ("dpus", "tasklets", "tile", "unroll", "pieces")


@dataclass(frozen=True)
class Choice:
    name: str
    values: tuple[int, ...]


@dataclass(frozen=True)
class Toy:
    name: str
    decisions: tuple[Choice, ...]
    split_reduction: bool


def _powers(top: int) -> tuple[int, ...]:
    return tuple(2**n for n in range(top + 1))


COMMON = (
    Choice("dpus", (*_powers(10), 1500, 1600)),
    Choice("tasklets", (1, 2, 4, 6, 8, 10, 11, 12, 14, 16, 20, 24)),
    Choice("tile", _powers(9)),
    Choice("unroll", _powers(5)),
)
ROWS = Toy("rows", COMMON, False)
SPLIT = Toy("split", (*COMMON, Choice("pieces", _powers(6)[1:])), True)


def canonical(sketch, matrix):
    """As in the real space: DPUs that have no work are not launched."""
    result = matrix.copy()
    result[:, 0] = np.minimum(result[:, 0], 1500)
    return result


def check(sketch, matrix):
    """At most 1500 DPUs, and WRAM for the tiles of all tasklets."""
    pieces = matrix[:, 4] if sketch.split_reduction else 1
    return (matrix[:, 0] * pieces <= 1500) & (matrix[:, 1] * matrix[:, 2] <= 4096)


def describe(sketch, matrix):
    pieces = matrix[:, 4] if sketch.split_reduction else np.ones(len(matrix))
    columns = [matrix[:, 0] * pieces, matrix[:, 1], matrix[:, 2], matrix[:, 3], pieces]
    features = np.stack([np.asarray(c, np.float64) for c in columns], axis=1)
    # A crude estimate, as the real one is: no unrolling, no transfer.
    return features, np.log(1.0 / features[:, 0] + 1e-3)


def seconds(sketch, matrix):
    dpus, tasklets, tile, unroll = (matrix[:, n].astype(float) for n in range(4))
    pieces = matrix[:, 4].astype(float) if sketch.split_reduction else np.ones(len(matrix))
    total = dpus * pieces
    loop = (6 + 8 / unroll + (unroll > 8) * unroll / 4) * (11 / np.minimum(tasklets, 11))
    kernel = (loop + 400 / tile * (1 + tasklets / 8)) / total
    transfer = 6e-3 / pieces + 4e-4 * pieces + 1e-4 * dpus / 1500
    return kernel + transfer + 1e-3


def measure(space: Space, candidates: list[Candidate]) -> list[Observation]:
    from atim.tuner.search import Observation

    rows = [(c, np.array([c.values], np.int64)) for c in candidates]
    return [Observation(c, float(seconds(space.sketches[c.sketch], r)[0])) for c, r in rows]


def make_space(sketches=(ROWS, SPLIT)) -> Space:
    from atim.tuner.proposals import Space

    return Space(sketches, canonical, check, describe)


def optimum(space: Space) -> float:
    assert space.everything is not None
    return min(seconds(space.sketches[n], m).min() for n, m in enumerate(space.everything))


def search(options: Options, space: Space | None = None) -> Search:
    from atim.tuner.cost_model import CostModel
    from atim.tuner.search import Search

    return Search(space or make_space(), CostModel(FEATURES, "toy"), options)


def run(options: Options, space: Space | None = None, stop_after: int | None = None):
    """(history, reason): propose and measure until the search is over."""
    finder = search(options, space)
    history: list[Observation] = []
    while stop_after is None or len(history) < stop_after:
        proposed, why = finder.propose(history)
        if not proposed:
            return history, why
        history += measure(finder.space, proposed)
    return history[:stop_after], "stopped"


@dataclass(frozen=True)
class ToyJob:
    """Builders of the toy space: times by formula, failures where `failing` says so.

    log: a file to which every measured candidate is appended. slow_s: sleeps in each trial.
    wrong_tasklets: candidates with so many are found wrong when all their DPUs run. alike:
    candidates that differ in unrolling only are the same kernel.
    """

    log: str = ""
    failing: str = ""
    slow_s: float = 0.0
    wrong_tasklets: int = 0
    alike: bool = False

    def prepare(self):
        sketches = {"rows": ROWS, "split": SPLIT}

        def work(task: Task) -> Measurement:
            digest = ""
            if self.alike:
                task = replace(task, decisions={**task.decisions, "unroll": 4})
                digest = f"{task.sketch} {tuple(task.decisions.values())}"
                if digest in task.known:
                    return Measurement("same", digest=digest)
            if self.log:
                with open(self.log, "a") as file:
                    file.write(f"{task.whole} {task.sketch} {tuple(task.decisions.values())}\n")
            time.sleep(self.slow_s)
            if self.failing == "all":
                return Measurement("failed", "toolchain", "no compiler")
            if task.whole and task.decisions["tasklets"] == self.wrong_tasklets:
                return Measurement("failed", "mismatch", "y[3] is 0, should be 1")
            if self.failing == "some" and task.decisions["tasklets"] % 3 == 0:
                return Measurement("failed", "fault", "memory fault")
            if self.failing == "disk" and task.decisions["tasklets"] > 11:
                return Measurement("failed", "disk", "No space left on device")
            row = np.array([tuple(task.decisions.values())], np.int64)
            total = float(seconds(sketches[task.sketch], row)[0])
            timing = (0.25 * total, 0.5 * total, 0.25 * total, 0.0)
            return Measurement("ok", timing=timing, digest=digest)

        return work
