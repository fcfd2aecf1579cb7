"""The evolutionary search over decision vectors, one round at a time.

A round is a pure function of what has been measured so far, what is waiting to be, the seed and the
number of trials: an interrupted search continues as if it had not been, and the number of workers
changes nothing. Two ideas are ATiM's (ISCA 2025): at first designs with and without a split
reduction are drawn in equal numbers, and the share of random candidates falls from 0.5 to 0.05.
ATiM does so for 40 % of the trials; an eighth is enough here, where the estimate orders candidates
before anything is measured. Values come from the coarse grids at first; after a quarter of the
trials half of what is promising refines the best few between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from atim.tuner.cost_model import CostModel, Samples
from atim.tuner.proposals import Batch, Candidate, Matrix, Scores, Space, key, keys, without

__all__ = [
    "Observation",
    "Options",
    "Proposed",
    "Proposer",
    "Search",
    "early_end",
    "known",
    "propose_early",
    "samples_of",
]

MUTATED = 0.85  # of the children; the others are crossed
IMPROVEMENT = 1e-3  # relative, below which a better result counts as none
OPTIMISM = 1.0  # standard deviations by which a candidate may be better than predicted
HOPELESS = 3.0  # times the best prediction, beyond which not even exploration looks
NEAR = 2.0  # grid steps: members of one round are further apart while there are others
NEAR_FINE = 0.3  # the same among refined ones
LEAST_EPSILON = 0.05  # TVM's constant share of random candidates
COARSE_SHARE = 0.25  # of the trials; then the best few are refined off the grid
FEW = 4  # candidates that are refined
FIRST = 8  # times the population, for the first round
FINE_GENERATIONS = 2
WAITING = 4  # trials, at most, that are still being measured when the next round is proposed


@dataclass(frozen=True, slots=True)
class Options:
    """trials: in all; batch: measured in a round, 0 for a number that suits `trials`.

    patience: trials without improvement after which nothing better is expected, 0 for half of the
    trials but at least 64. population, generations: of the evolution between two rounds.
    explored: share of the trials during which both kinds of designs are drawn in equal numbers and
    exploration falls. The switches are for ablation: balanced drawing, adaptive exploration (else a
    constant share), learning from measurements, starting from the closed-form estimate, refinement
    off the grid.
    """

    trials: int = 64
    seed: int = 0
    batch: int = 0
    patience: int = 0
    population: int = 1024
    generations: int = 4
    explored: float = 0.125
    balanced: bool = True
    adaptive: bool = True
    learn: bool = True
    estimate: bool = True
    refine: bool = True

    @property
    def round_size(self) -> int:
        return self.batch or min(64, max(4, self.trials // 8))

    @property
    def patience_trials(self) -> int:
        return self.patience or max(64, self.trials // 2)


@dataclass(frozen=True, slots=True)
class Observation:
    """A measured candidate; seconds is infinite when it failed."""

    candidate: Candidate
    seconds: float


class Proposer(Protocol):
    """What the tuning loop needs of a search.

    early: True when rounds can be proposed while some of what was proposed before is `waiting` to
    be measured.
    """

    early: bool

    @property
    def space(self) -> Space: ...
    @property
    def options(self) -> Options: ...
    def total(self) -> int: ...
    def propose(
        self, history: Sequence[Observation], waiting: Sequence[Candidate] = ()
    ) -> tuple[list[Candidate], str]: ...


Proposed = tuple[list[Candidate], str]
"""A round; or none, and the reason why the search is over."""


def early_end(count: int, last: int) -> int:
    """Of `count` trials, the last `last` of them one round: those whose results must be known when
    the next round is proposed early. The others are measured in the meantime; not more than that
    takes, for what isn't known costs trials."""
    return count - min(WAITING, last // 4)


def propose_early(search: Proposer, history: Sequence[Observation], last: int) -> Proposed:
    """The next round as if it had been proposed early; from all results when that gives none."""
    if search.early:
        end = early_end(len(history), last)
        early = search.propose(history[:end], [o.candidate for o in history[end:]])
        if early[0]:
            return early
    return search.propose(history)


class Search:
    """Proposes what to measure next, and says when to stop."""

    early = True

    def __init__(self, space: Space, model: CostModel, options: Options) -> None:
        self.space = space
        self.model = model
        self.options = options

    def total(self) -> int:
        """Trials that can be made: as asked, or the size of the space."""
        size = self.space.size
        return self.options.trials if size is None else min(size, self.options.trials)

    def propose(
        self, history: Sequence[Observation], waiting: Sequence[Candidate] = ()
    ) -> tuple[list[Candidate], str]:
        """The next round, or none and the reason why the search is over."""
        done, options = len(history) + len(waiting), self.options
        if done >= options.trials:
            return [], "all trials done"
        if self._stale(history):
            return [], f"nothing better found in the last {options.patience_trials} trials"
        rng = np.random.default_rng([options.seed, done])
        self._learn(history)
        measured = known(history) | _taken(waiting)
        pool, fresh = self._pools(rng, history, measured)
        wanted = min(options.round_size, options.trials - done)
        explored = int(np.floor(wanted * self.epsilon(done) + rng.random()))
        chosen: list[Candidate] = []
        if self._fine(history, done):
            refined = without(self._refined(rng, history), measured)
            count = (wanted - explored + 1) // 2
            chosen = self._best(refined, count, done, waiting, NEAR_FINE)
        pool = without(pool, _taken(chosen))
        others = [*waiting, *chosen]
        chosen += self._best(pool, wanted - explored - len(chosen), done, others)
        chosen += self._any(rng, without(fresh, _taken(chosen)), wanted - len(chosen), done)
        others = [*waiting, *chosen]
        chosen += self._best(without(pool, _taken(chosen)), wanted - len(chosen), done, others)
        return chosen, "" if chosen else "the space is exhausted"

    def epsilon(self, done: int) -> float:
        """Share of random candidates after `done` trials."""
        if not self.options.adaptive:
            return LEAST_EPSILON
        return max(LEAST_EPSILON, 0.5 - 0.45 * done / (self.options.explored * self.options.trials))

    def _balanced(self, done: int) -> bool:
        early = self.options.balanced and done < self.options.explored * self.options.trials
        return early and len(self.space.groups) > 1

    def _fine(self, history: Sequence[Observation], done: int) -> bool:
        """True when values between those of the grid are looked at too: after a share of the
        trials, or when the grid has nothing better to give."""
        options = self.options
        if not options.refine or self.space.everything is not None:
            return False
        late = done >= COARSE_SHARE * options.trials
        return late or _idle(history) > options.patience_trials // 2

    def _stale(self, history: Sequence[Observation]) -> bool:
        return _idle(history) > self.options.patience_trials

    def _learn(self, history: Sequence[Observation]) -> None:
        if not self.options.learn:
            return
        samples = samples_of(self.space, "", history)
        if samples is not None:
            estimates = samples.log_estimates
            start = estimates if self.options.estimate else np.zeros_like(estimates)
            self.model.fit(samples.features, start, samples.seconds)

    def _score(self, sketch: int, matrix: Matrix) -> Scores:
        features, estimates = self.space.describe(sketch, matrix)
        start = estimates if self.options.estimate else np.zeros_like(estimates)
        mean, deviation = self.model.predict(features, start)
        return mean - OPTIMISM * deviation

    # --- the population ---

    def _pools(
        self,
        rng: np.random.Generator,
        history: Sequence[Observation],
        measured: set[tuple[int, bytes]],
    ) -> tuple[Batch, Batch]:
        """Unmeasured candidates: an evolved population, and a random sample."""
        everything = self.space.everything
        if everything is not None:
            rest = without(everything, measured)
            return rest, self._hopeful(rest)
        harder = 1 if history else FIRST  # the estimate is all that is known yet: find its best
        share = harder * self.options.population // len(self.space.sketches)
        fresh = [self.space.random(rng, n, share) for n in range(len(self.space.sketches))]
        parents = self._parents(history)
        evolved = []
        for sketch, matrix in enumerate(fresh):
            start = np.concatenate([parents[sketch], matrix])
            evolved.append(self._evolve(rng, sketch, start, share))
        return without(evolved, measured), self._hopeful(without(fresh, measured))

    def _hopeful(self, batch: Batch) -> Batch:
        """The batch without what is predicted to be many times slower than its best."""
        scores = [self._score(sketch, matrix) for sketch, matrix in enumerate(batch)]
        limit = min((s.min() for s in scores if len(s)), default=0.0) + np.log(HOPELESS)
        return [matrix[s <= limit] for matrix, s in zip(batch, scores, strict=True)]

    def _parents(self, history: Sequence[Observation]) -> Batch:
        """Measured candidates that worked: the best ones of each sketch."""
        width = [len(sketch.decisions) for sketch in self.space.sketches]
        parents = [np.empty((0, w), np.int64) for w in width]
        for sketch, matrix, seconds in _by_sketch(history, len(width)):
            order = np.argsort(seconds, kind="stable")
            order = order[np.isfinite(seconds[order])]
            parents[sketch] = matrix[order[: self.options.population // 8]]
        return parents

    def _evolve(self, rng: np.random.Generator, sketch: int, start: Matrix, size: int) -> Matrix:
        """The best of a population after some generations of change and selection."""
        population, scores = start, self._score(sketch, start)
        for _ in range(self.options.generations if len(start) else 0):
            # Rank selection: the best is a parent about twice as often as the median.
            weights = 1.0 / (10.0 + np.argsort(np.argsort(scores, kind="stable")))
            picks = rng.choice(len(population), size=size, p=weights / weights.sum())
            cut = int(size * MUTATED)
            mutated = self.space.mutate(rng, sketch, population[picks[:cut]])
            crossed = self.space.cross(rng, population[picks[cut:]])
            children = self.space.legal(sketch, np.concatenate([mutated, crossed]))
            present = set(keys(population))
            children = children[np.array([k not in present for k in keys(children)], bool)]
            population = np.concatenate([population, children])
            scores = np.concatenate([scores, self._score(sketch, children)])
            kept = np.argsort(scores, kind="stable")[:size]
            population, scores = population[kept], scores[kept]
        return population

    def _refined(self, rng: np.random.Generator, history: Sequence[Observation]) -> Batch:
        """Unmeasured neighbours of the best few, off the grid; the promising ones go further."""
        best = sorted(history, key=lambda o: o.seconds)[:FEW]
        size = self.options.population // 2
        batch = []
        for sketch, described in enumerate(self.space.sketches):
            rows = [o.candidate.values for o in best if o.candidate.sketch == sketch]
            found = np.array(rows, np.int64).reshape(len(rows), len(described.decisions))
            start = found
            for _ in range(FINE_GENERATIONS if len(rows) else 0):
                near = self.space.legal(sketch, self.space.refine(rng, sketch, start, size))
                found = np.concatenate([found, near])
                start = near[np.argsort(self._score(sketch, near), kind="stable")[: 4 * FEW]]
            batch.append(self.space.legal(sketch, found))
        return batch

    # --- picking a round out of it ---

    def _best(
        self,
        pool: Batch,
        count: int,
        done: int,
        already: Sequence[Candidate],
        apart: float = NEAR,
    ) -> list[Candidate]:
        """The `count` most promising, different from each other as long as there are others."""
        if count <= 0:
            return []
        ranked = self._rank(pool, done)
        chosen: list[Candidate] = []
        near: list[Candidate] = []
        for candidate in ranked:
            if len(chosen) == count:
                break
            alike = self._near(candidate, [*already, *chosen], apart)
            (near if alike else chosen).append(candidate)
        return chosen + near[: count - len(chosen)]

    def _rank(self, pool: Batch, done: int) -> list[Candidate]:
        """The promising part of the pool, best first, kinds in turn while they are balanced."""
        limit = 16 * self.options.round_size
        lists, best = [], []
        for group in self.space.groups if self._balanced(done) else [range(len(pool))]:
            rated: list[tuple[float, int, int]] = []
            for sketch in group:
                scores = self._score(sketch, pool[sketch])
                order = np.argsort(scores, kind="stable")[:limit]
                rated += [(float(scores[n]), sketch, int(n)) for n in order]
            if rated:
                rated.sort()
                lists.append([_candidate(s, pool[s][n]) for _, s, n in rated[:limit]])
                best.append(rated[0][0])
        # A kind that is hopeless as a whole gets no share.
        hope = min(best, default=0.0) + np.log(HOPELESS)
        return _in_turn([part for part, b in zip(lists, best, strict=True) if b <= hope])

    def _near(self, candidate: Candidate, others: Sequence[Candidate], apart: float) -> bool:
        same = [o.values for o in others if o.sketch == candidate.sketch]
        if not same:
            return False
        row = np.array(candidate.values, np.int64)
        distances = self.space.distances(candidate.sketch, np.array(same, np.int64), row)
        return bool((distances < apart).any())

    def _any(self, rng: np.random.Generator, pool: Batch, count: int, done: int) -> list[Candidate]:
        """`count` random ones, kinds in turn while they are balanced."""
        lists = []
        for group in self.space.groups if self._balanced(done) else [range(len(pool))]:
            members = [(sketch, n) for sketch in group for n in range(len(pool[sketch]))]
            order = rng.permutation(len(members))[:count]
            lists.append([_candidate(s, pool[s][n]) for s, n in (members[i] for i in order)])
        return _in_turn(lists)[:count]


def _candidate(sketch: int, row: NDArray[np.int64]) -> Candidate:
    return Candidate(sketch, tuple(row.tolist()))


def _in_turn(lists: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    longest = max((len(part) for part in lists), default=0)
    return [part[n] for n in range(longest) for part in lists if n < len(part)]


def known(history: Sequence[Observation]) -> set[tuple[int, bytes]]:
    return _taken([o.candidate for o in history])


def _taken(candidates: Sequence[Candidate]) -> set[tuple[int, bytes]]:
    return {key(candidate) for candidate in candidates}


def _idle(history: Sequence[Observation]) -> int:
    """Trials since the last improvement."""
    best, since = np.inf, 0
    for n, observation in enumerate(history):
        if observation.seconds < best * (1 - IMPROVEMENT):
            best, since = observation.seconds, n
    return len(history) - since


def samples_of(space: Space, label: str, history: Sequence[Observation]) -> Samples | None:
    """What was measured, as the cost model sees it; None when nothing was."""
    parts = [
        (*space.describe(sketch, matrix), seconds)
        for sketch, matrix, seconds in _by_sketch(history, len(space.sketches))
    ]
    if not parts:
        return None
    return Samples(label, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _by_sketch(
    history: Sequence[Observation], sketches: int
) -> list[tuple[int, Matrix, NDArray[np.float64]]]:
    """(sketch, decisions, seconds) of the sketches that were measured."""
    found = []
    for sketch in range(sketches):
        own = [o for o in history if o.candidate.sketch == sketch]
        if own:
            matrix = np.array([o.candidate.values for o in own], np.int64)
            found.append((sketch, matrix, np.array([o.seconds for o in own], np.float64)))
    return found
