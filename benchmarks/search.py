"""Trials that each search needs to come within 5 % of the best known, by workload and shape.

All searches propose from the same space and are measured alike; what one has measured is kept for
the others and for a run that goes on after an interruption (see `measured`). The best known is the
fastest candidate that any search found: ours makes all its trials with every seed, TVM's and random
search with the first one; all others stop when they are near. A search that never comes near is
counted with all its trials. "earlier-runs" is ours, started from what it measured of the other
workloads.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from atim import Target, workloads
from atim.tuner.baselines import make
from atim.tuner.cost_model import Samples
from atim.tuner.proposals import Candidate
from atim.tuner.search import Observation, Options, Proposer, propose_early, samples_of
from benchmarks.measured import Measured, model

NEAR = 1.05
OURS, TVM, EARLIER = "evolutionary", "tvm", "earlier-runs"
TO_THE_END = (TVM, "random")
GOAL = 2.0  # times fewer trials than TVM's search


@dataclass(frozen=True, slots=True)
class Case:
    """A workload, a shape and the DPUs that may be used."""

    workload: str
    shape: tuple[int, ...]
    dpus: int = 2048

    @property
    def title(self) -> str:
        return f"{self.workload} {'x'.join(map(str, self.shape))}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run: the cases, the seeds, trials of each search."""

    cases: tuple[Case, ...]
    seeds: int
    trials: int


CASES = (
    Case("mtv", (1000, 777)),
    Case("ttv", (32, 64, 512)),
    Case("mmtv", (28, 128, 256)),
    Case("mtv", (1024, 1024)),
    Case("red", (524288,)),
    Case("gemv", (1024, 1024)),
    Case("va", (1048576,)),
    Case("mtv", (4096, 4096)),
    Case("mmtv", (128, 256, 512)),
    Case("red", (8388608,)),
)
FULL = Plan(CASES, 5, 64)
QUICK = Plan((CASES[0], CASES[2], CASES[7]), 2, 48)
VARIANTS = (
    OURS,
    TVM,
    "unbalanced",
    "constant-exploration",
    "long-exploration",
    "no-model",
    "random",
)


Open = tuple[Proposer, list[Observation], list[Candidate]]
"""A search, what it has measured, and its last round."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Seconds of each trial of one search, in order."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds, default=float("inf"))

    def needed(self, limit: float, trials: int) -> int:
        """Trials until one takes at most `limit`, all of them when none does."""
        reached = np.flatnonzero(np.array(self.seconds) <= limit)
        return int(reached[0]) + 1 if len(reached) else trials


class Runs:
    """Every search of one case, measured through one pool."""

    def __init__(self, measured: Measured, plan: Plan) -> None:
        self.measured = measured
        self.plan = plan
        self.traces: dict[tuple[str, int], Trace] = {}
        self.experience: list[Samples] = []
        self._open: dict[tuple[str, int], Open] = {}

    @property
    def best(self) -> float:
        return min((trace.best for trace in self.traces.values()), default=float("inf"))

    def run(self, name: str, seed: int, enough: float = 0.0, start: Sequence[Samples] = ()) -> None:
        """One search, until it has a candidate that takes at most `enough` seconds."""
        if (name, seed) not in self._open:
            self._open[name, seed] = self._begin(name, seed, start)
        search, history, proposed = self._open[name, seed]
        while min((o.seconds for o in history), default=np.inf) > enough:
            proposed, _ = propose_early(search, history, len(proposed))
            if not proposed:
                break
            history += self.measured.observe(proposed)
        self._open[name, seed] = search, history, proposed
        self.traces[name, seed] = Trace(tuple(o.seconds for o in history))
        if name == OURS and seed == 0:
            samples = samples_of(self.measured.space, "", history)
            self.experience = [] if samples is None else [samples]

    def _begin(self, name: str, seed: int, start: Sequence[Samples]) -> Open:
        trees, trials = model(seed), self.plan.trials
        trees.start_from(start)
        options = Options(trials=trials, seed=seed, patience=trials)
        kind = OURS if name == EARLIER else name
        return make(kind, self.measured.space, trees, options), [], []

    def compare(self, names: Sequence[str]) -> None:
        """Ours to its end, and the first seed of TVM's and random search; the rest until near the
        best known, further when that has changed."""
        for seed in range(self.plan.seeds):
            self.run(OURS, seed)
        for name in names:
            if name in TO_THE_END:
                self.run(name, 0)
        before = np.inf
        while self.best < before:
            before = self.best
            for name in names:
                for seed in range(self.plan.seeds):
                    if not self._done(name, seed):
                        self.run(name, seed, enough=NEAR * self.best)

    def _done(self, name: str, seed: int) -> bool:
        """True when a run is near what is the best known now, or has made all its trials."""
        trace = self.traces.get((name, seed), Trace(()))
        return trace.best <= NEAR * self.best or len(trace.seconds) >= self.plan.trials

    def needed(self, name: str) -> float:
        """Geometric mean over the seeds."""
        limit, trials = NEAR * self.best, self.plan.trials
        counts = [self.traces[name, s].needed(limit, trials) for s in range(self.plan.seeds)]
        return geometric(counts)

    def worst_end(self) -> float:
        """Ours at its end, over the best known; the worst seed."""
        return max(self.traces[OURS, s].best for s in range(self.plan.seeds)) / self.best


def geometric(values: Sequence[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def measure(plan: Plan, variants: Sequence[str] = VARIANTS) -> dict[Case, Runs]:
    """All cases, then ours from the experience of the others."""
    done: dict[Case, Runs] = {}
    others = [name for name in variants if name != OURS]
    for case in plan.cases:
        began = time.perf_counter()
        workload = workloads.get(case.workload, case.shape)
        with Measured(workload, Target(dpus=case.dpus)) as measured:
            runs = done[case] = Runs(measured, plan)
            runs.compare(others)
        text = f"{measured.fresh} measured in {measured.wall_s:.0f} s, {measured.cached} known"
        spent = time.perf_counter() - began
        print(f"{case.title}: {text}; {spent:.0f} s in all", file=sys.stderr)
        print(*table({case: runs}, variants)[0][:2], sep="\n", file=sys.stderr, flush=True)
    for case, runs in done.items():
        start = [s for other, r in done.items() if other != case for s in r.experience]
        if start:
            with Measured(runs.measured.workload, runs.measured.target) as measured:
                runs.measured = measured
                for seed in range(plan.seeds):
                    runs.run(EARLIER, seed, enough=NEAR * runs.best, start=start)
    return done


def table(done: dict[Case, Runs], names: Sequence[str]) -> tuple[list[str], dict[str, float]]:
    """Lines of the table, and the geometric mean of each search over all cases."""
    lines = [f"{'':20}  best ms " + "".join(f"{name[:13]:>14}" for name in names) + "   worst end"]
    for case, runs in done.items():
        cells = "".join(f"{runs.needed(name):14.1f}" for name in names)
        lines.append(f"{case.title:20} {runs.best * 1e3:8.3f} {cells}{runs.worst_end():11.3f}x")
    means = {name: geometric([runs.needed(name) for runs in done.values()]) for name in names}
    lines.append(f"{'geometric mean':29} " + "".join(f"{means[name]:14.1f}" for name in names))
    return lines, means


def run(quick: bool = False) -> int:
    """Print the table and what it is judged by; 1 when a judgement fails."""
    plan = QUICK if quick else FULL
    done = measure(plan)
    names = [*VARIANTS, *([EARLIER] if len(done) > 1 else [])]
    print(f"trials to come within {NEAR - 1:.0%} of the best known, of {plan.trials};")
    print(f"geometric mean of {plan.seeds} seeds, 2048 DPUs; worst end: ours after all its trials")
    lines, means = table(done, names)
    print("\n".join(lines))
    ratio = means[TVM] / means[OURS]
    worst = max(runs.worst_end() for runs in done.values())
    print(f"TVM's search needs {ratio:.2f} times the trials of ours (goal {GOAL:.0f})")
    print(f"ours ends {worst:.3f}x above the best known at worst (goal {NEAR})")
    return int(ratio < GOAL or worst > NEAR)
