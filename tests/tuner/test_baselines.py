"""Every search proposes legal candidates once, deterministically, and says why it ends."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic import FEATURES, ROWS, SPLIT, canonical, check, describe, make_space, measure

from atim.errors import RecordError, UsageError
from atim.tuner.arguments import SEARCHES
from atim.tuner.baselines import RandomSearch, make
from atim.tuner.cost_model import CostModel
from atim.tuner.proposals import Space
from atim.tuner.search import Options

CHEAP = [name for name in SEARCHES if name != "tvm"]


def search(name: str, options: Options, space: Space | None = None):
    return make(name, space or make_space(), CostModel(FEATURES, "toy"), options)


def run(name: str, options: Options, space: Space | None = None):
    finder = search(name, options, space)
    history = []
    while proposed := finder.propose(history)[0]:
        history += measure(finder.space, proposed)
    return history, finder.propose(history)[1]


@pytest.mark.parametrize("name", SEARCHES)
def test_each_candidate_is_legal_and_proposed_once(name):
    trials = 20 if name == "tvm" else 40
    history, why = run(name, Options(trials=trials, batch=trials // 2, population=128))
    candidates = [o.candidate for o in history]
    assert len(set(candidates)) == len(candidates) == trials
    assert why == "all trials done"
    for candidate in candidates:
        sketch = (ROWS, SPLIT)[candidate.sketch]
        row = np.array([candidate.values], np.int64)
        assert check(sketch, row).all()
        np.testing.assert_array_equal(canonical(sketch, row), row)


@pytest.mark.parametrize("name", CHEAP)
def test_same_seed_same_candidates(name):
    options = Options(trials=16, batch=8, seed=4, population=64)
    assert run(name, options) == run(name, options)


def test_tvms_search_learns_and_goes_on_after_an_interruption():
    options = Options(trials=24, batch=8, seed=1, population=128)
    history, _ = run("tvm", options)
    rounds = [np.mean([o.seconds for o in history[n : n + 8]]) for n in (0, 16)]
    assert rounds[1] < 0.7 * rounds[0]
    # A new process replays what was measured and proposes the same.
    again = search("tvm", options)
    assert again.propose(history[:8])[0] == [o.candidate for o in history[8:16]]
    with pytest.raises(RecordError, match="not those of TVM's search"):
        search("tvm", options).propose(history[8:16])


def test_random_search_ends_with_the_space():
    space = Space([ROWS, SPLIT], canonical, lambda s, m: (m[:, 0] > 1000) & (m[:, 1] < 3), describe)
    small = Space([ROWS], canonical, lambda s, m: (m[:, 0] > 1000) & (m[:, 1] < 3), describe)
    finder = RandomSearch(small, Options(trials=1000))
    history = []
    while proposed := finder.propose(history)[0]:
        history += measure(small, proposed)
    assert len(history) == small.size == finder.total()
    assert finder.propose(history)[1] == "the space is exhausted"
    drawn, _ = RandomSearch(space, Options(trials=64, batch=20)).propose([])
    assert [c.sketch for c in drawn].count(0) == 10  # each sketch in equal share


def test_switches_switch():
    options = Options(trials=100, batch=20, population=256)
    plain, _ = run("unbalanced", options)
    balanced, _ = run("evolutionary", options)

    def kinds(history):
        return [o.candidate.sketch for o in history[:40]].count(0)

    assert abs(kinds(balanced) - 20) < abs(kinds(plain) - 20)
    assert search("constant-exploration", Options()).epsilon(0) == 0.05
    assert search("evolutionary", Options()).epsilon(0) == 0.5
    finder = search("no-model", Options(trials=40))
    finder.propose(run("random", Options(trials=16))[0])
    assert not finder.model.trained


def test_an_unknown_search_is_refused_with_the_names():
    with pytest.raises(UsageError, match="search: 'annealing' unknown, known: evolutionary, "):
        search("annealing", Options())
