"""The search finds a known optimum, in the same order whenever it is asked the same."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic import (
    ROWS,
    SPLIT,
    Choice,
    Toy,
    canonical,
    check,
    describe,
    make_space,
    measure,
    optimum,
    run,
    search,
    seconds,
)

from atim.target import Target
from atim.tuner import proposals
from atim.tuner.baselines import RandomSearch
from atim.tuner.plan import Plan
from atim.tuner.proposals import CHOICE_LIMIT, Space
from atim.tuner.search import Observation, Options
from atim.workloads import get


@pytest.fixture
def vast():
    """The space as it is: too large to be enumerated."""
    space = make_space()
    assert space.size is None
    return space


@pytest.fixture(scope="module")
def known():
    """The same space, enumerated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proposals, "ENUMERABLE", 1 << 17)
        space = make_space()
        assert space.size is not None
    return space


@pytest.fixture(scope="module")
def best(known) -> float:
    return optimum(known)


def test_finds_the_optimum_of_a_space_it_can_enumerate():
    space = make_space((ROWS,))
    assert space.size is not None
    history, why = run(Options(trials=48), space)
    assert why == "all trials done"
    assert min(o.seconds for o in history) <= 1.02 * optimum(space)


@pytest.mark.parametrize("seed", range(3))
def test_finds_the_optimum_of_a_space_it_cannot_enumerate(vast, best, seed):
    history, _ = run(Options(trials=96, seed=seed), vast)
    assert min(o.seconds for o in history) <= 1.02 * best


def test_beats_random_search(vast, best):
    rng = np.random.default_rng(0)
    drawn = [vast.random(rng, n, 48) for n in (0, 1)]
    random_best = min(seconds(s, m).min() for s, m in zip(vast.sketches, drawn, strict=True))
    history, _ = run(Options(trials=96), vast)
    assert min(o.seconds for o in history) < random_best


def test_same_seed_same_sequence_and_another_seed_another(vast):
    first, _ = run(Options(trials=40, seed=5), vast)
    assert first == run(Options(trials=40, seed=5), vast)[0]
    assert first != run(Options(trials=40, seed=6), vast)[0]


def test_an_interrupted_search_continues_as_if_it_had_not_been(vast):
    whole, _ = run(Options(trials=40), vast)
    half, _ = run(Options(trials=40), vast, stop_after=20)
    # A new process knows nothing but the history.
    assert search(Options(trials=40), vast).propose(half)[0] == [o.candidate for o in whole[20:25]]


@pytest.mark.parametrize("kind", [search, lambda options, space: RandomSearch(space, options)])
def test_what_is_waiting_counts_as_done_and_is_not_proposed_again(vast, kind):
    finder = kind(Options(trials=40), vast)
    first = finder.propose([])[0]
    history = measure(finder.space, first[:3])
    following = finder.propose(history, first[3:])[0]
    assert len(following) == len(first) == 5
    assert not set(following) & set(first)
    assert finder.propose(history, [first[3]] * 37) == ([], "all trials done")


def test_nothing_is_measured_twice_and_all_is_legal(vast):
    history, _ = run(Options(trials=200, patience=200), vast)
    candidates = [o.candidate for o in history]
    assert len(set(candidates)) == len(candidates) == 200
    for candidate in candidates:
        sketch = vast.sketches[candidate.sketch]
        row = np.array([candidate.values], np.int64)
        assert check(sketch, row).all()
        np.testing.assert_array_equal(canonical(sketch, row), row)


def test_the_first_round_holds_the_best_by_the_estimate(known):
    proposed, _ = search(Options(trials=64), known).propose([])
    estimates = [describe(known.sketches[n], m)[1].min() for n, m in enumerate(known.everything)]
    got = [
        describe(known.sketches[c.sketch], np.array([c.values], np.int64))[1][0] for c in proposed
    ]
    assert min(got) == min(estimates)


def test_both_kinds_are_drawn_equally_at_first_and_freely_later(vast):
    history, _ = run(Options(trials=100), vast)
    early = [o.candidate.sketch for o in history[:12]]
    assert 5 <= early.count(0) <= 7
    late = [o.candidate.sketch for o in history[12:]]
    assert late.count(1) > late.count(0)  # the optimum has a split reduction


def test_exploration_falls_from_a_half_to_a_twentieth():
    finder = search(Options(trials=80))
    assert finder.epsilon(0) == pytest.approx(0.5)
    assert finder.epsilon(5) == pytest.approx(0.275)
    assert finder.epsilon(10) == finder.epsilon(79) == pytest.approx(0.05)
    assert search(Options(trials=80, explored=0.4)).epsilon(16) == pytest.approx(0.275)


@pytest.mark.parametrize("enumerable", [True, False])
def test_a_small_space_is_exhausted_and_says_so(monkeypatch, enumerable):
    if not enumerable:
        monkeypatch.setattr(proposals, "ENUMERABLE", 0)
    tiny = Toy(
        "rows", (Choice("dpus", (1, 1500, 1600)), *(Choice(n, (1, 2)) for n in "abc")), False
    )
    space = Space(
        [tiny],
        canonical,
        lambda s, m: m[:, 1] * m[:, 3] < 4,
        lambda s, m: (np.pad(m, ((0, 0), (0, 1))).astype(float), m[:, 0]),
    )
    finder = search(Options(trials=64), space)
    history = []
    while proposed := finder.propose(history)[0]:
        history += measure(space, proposed)
    assert len(history) == 12  # 24 rows, of which 1600 DPUs are 1500 again, less the illegal 4
    assert finder.propose(history)[1] == "the space is exhausted"
    if enumerable:
        assert finder.total() == 12


def test_stops_when_nothing_better_is_expected(vast):
    history, why = run(Options(trials=1000, patience=50), vast)
    assert why == "nothing better found in the last 50 trials"
    assert len(history) < 300


def test_survives_failures(vast):
    history = []
    finder = search(Options(trials=48), vast)
    while proposed := finder.propose(history)[0]:
        history += [Observation(c, float("inf")) for c in proposed]
    assert len(history) == 48


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((200_000, 4000), "MRAM: 800,281,536 bytes needed, limit 67,108,864 (dpus_i 4)"),
        ((16, 30_000_000), "MRAM: "),
    ],
)
def test_too_large_a_program_names_the_memory_that_it_exceeds_most(shape, says):
    plan = Plan.of(get("mtv", shape), Target(dpus=4), Options(trials=1, seed=0))
    assert str(plan.nothing_legal()).partition("no legal candidate: ")[2].startswith(says)


def test_a_space_without_legal_candidates_is_exhausted_at_once():
    space = Space([ROWS, SPLIT], canonical, lambda s, m: np.zeros(len(m), bool), describe)
    assert search(Options(), space).propose([]) == ([], "the space is exhausted")


def test_after_a_quarter_the_grid_is_left_and_better_found(vast, best):
    history, _ = run(Options(trials=96), vast)

    def off_grid(observation) -> bool:
        sketch = vast.sketches[observation.candidate.sketch]
        pairs = zip(observation.candidate.values, sketch.decisions, strict=True)
        return any(value not in decision.values for value, decision in pairs)

    assert not any(off_grid(o) for o in history[:24])
    assert sum(off_grid(o) for o in history[24:]) >= 24
    assert min(o.seconds for o in history) < best  # better than anything on the grid
    coarse, _ = run(Options(trials=96, refine=False), vast)
    assert not any(off_grid(o) for o in coarse)


def test_refinement_stays_within_a_step_of_the_grid():
    space = make_space()
    rng = np.random.default_rng(0)
    parents = space.random(rng, 1, 5)
    children = space.refine(rng, 1, parents, 400)
    assert children.shape == (400, 5)
    near = [
        min(space.distances(1, child[None], parent)[0] for parent in parents) for child in children
    ]
    assert max(near) <= len(SPLIT.decisions)
    for column, decision in enumerate(SPLIT.decisions):
        assert children[:, column].min() >= decision.values[0]
        assert children[:, column].max() <= decision.values[-1]
    off_grid = ~np.isin(children[:, 2], SPLIT.decisions[2].values)
    assert off_grid.any()


def test_refinement_moves_sizes_of_equal_value_together():
    space = make_space()
    rng = np.random.default_rng(0)
    parent = space.random(rng, 1, 1)
    one, other = [n for n, d in enumerate(SPLIT.decisions) if d.values[-1] > CHOICE_LIMIT][:2]
    parent[0, [one, other]] = 12
    children = space.refine(rng, 1, parent, 400)
    moved = children[(children[:, one] != 12) & (children[:, other] != 12)]
    together = (moved[:, one] == moved[:, other]).mean()
    assert len(moved) > 100
    assert together > 0.5
    assert ((children[:, one] != 12) & (children[:, other] == 12)).sum() > 20


def test_mutation_stays_on_the_grid_and_changes_something():
    space = make_space()
    rng = np.random.default_rng(0)
    parents = space.random(rng, 1, 200)
    children = space.mutate(rng, 1, parents)
    for column, decision in enumerate(SPLIT.decisions):
        assert set(children[:, column].tolist()) <= set(decision.values)
    assert (children != parents).any(axis=1).mean() > 0.8
    crossed = space.cross(rng, parents)
    for column in range(parents.shape[1]):
        assert set(crossed[:, column].tolist()) <= set(parents[:, column].tolist())
