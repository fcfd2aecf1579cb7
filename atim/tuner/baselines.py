"""Searches to choose from: ours, random search, TVM's own, and ours with one idea taken away.

`make` gives any of them for the same space; the loop, measurement and records are the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from atim.tuner.arguments import SEARCHES, check_search
from atim.tuner.cost_model import CostModel
from atim.tuner.proposals import Candidate, Space, key, without
from atim.tuner.search import Observation, Options, Proposer, Search, known

__all__ = ["RandomSearch", "make"]


def make(name: str, space: Space, model: CostModel, options: Options) -> Proposer:
    """The search called `name`; UsageError lists the names when there is none."""
    check_search(name)
    if name == "random":
        return RandomSearch(space, options)
    if name == "tvm":
        from atim.tuner.tvm_search import TvmSearch

        return TvmSearch(space, options, len(model.names))
    return Search(space, model, replace(options, **SEARCHES[name][1]))


class RandomSearch:
    """Legal candidates, each sketch in equal share, until the trials or the space end."""

    early = True

    def __init__(self, space: Space, options: Options) -> None:
        self.space = space
        self.options = options

    def total(self) -> int:
        """Trials that can be made: as asked, or the size of the space."""
        size = self.space.size
        return self.options.trials if size is None else min(size, self.options.trials)

    def propose(
        self, history: Sequence[Observation], waiting: Sequence[Candidate] = ()
    ) -> tuple[list[Candidate], str]:
        """The next round, or none and the reason why the search is over."""
        done, options, space = len(history) + len(waiting), self.options, self.space
        if done >= options.trials:
            return [], "all trials done"
        rng = np.random.default_rng([options.seed, done])
        wanted = min(options.round_size, options.trials - done)
        if space.everything is not None:
            drawn = list(space.everything)
        else:
            drawn = [space.random(rng, n, wanted + done) for n in range(len(space.sketches))]
        fresh = without(drawn, known(history) | {key(candidate) for candidate in waiting})
        fresh = [matrix[rng.permutation(len(matrix))] for matrix in fresh]
        longest = max((len(matrix) for matrix in fresh), default=0)
        turns = [
            Candidate(sketch, tuple(matrix[n].tolist()))
            for n in range(longest)
            for sketch, matrix in enumerate(fresh)
            if n < len(matrix)
        ]
        return turns[:wanted], "" if turns else "the space is exhausted"
