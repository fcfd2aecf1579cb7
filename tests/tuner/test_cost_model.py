"""The cost model orders candidates, survives odd samples, and can start from earlier runs."""

from __future__ import annotations

import numpy as np
import pytest

from atim.tuner.cost_model import CostModel, Samples

NAMES = ("a", "b")


def samples(count: int, seed: int = 1):
    rng = np.random.default_rng(seed)
    features = rng.integers(1, 100, (count, 2)).astype(np.float64)
    return features, np.zeros(count), features[:, 0] * 1e-3 + 5.0 / features[:, 1]


def order_agreement(predicted, truth) -> float:
    ranks = [np.argsort(np.argsort(values)) for values in (predicted, truth)]
    return float(np.corrcoef(*ranks)[0, 1])


def test_orders_what_it_has_not_seen():
    model = CostModel(NAMES, "1")
    features, estimates, seconds = samples(400)
    model.fit(features[:200], estimates[:200], seconds[:200])
    predicted, _ = model.predict(features[200:], estimates[200:])
    assert order_agreement(predicted, seconds[200:]) > 0.95


def test_untrained_it_orders_by_the_estimate():
    model = CostModel(NAMES, "1")
    estimates = np.array([3.0, 1.0, 2.0])
    mean, deviation = model.predict(np.ones((3, 2)), estimates)
    np.testing.assert_array_equal(mean, estimates)
    np.testing.assert_array_equal(deviation, 0)
    assert model.predict(np.ones((0, 2)), np.ones(0))[0].shape == (0,)


@pytest.mark.parametrize(
    "seconds",
    [
        [],
        [1.0],
        [2.0, 2.0, 2.0],
        [np.inf],
        [np.inf, np.inf],
        [1.0, np.inf],
        [0.0, 1.0],
        [np.nan, 1],
    ],
)
def test_survives_odd_samples(seconds):
    model = CostModel(NAMES, "1")
    count = len(seconds)
    features = np.arange(2.0 * count).reshape(count, 2)
    model.fit(features, np.zeros(count), np.array(seconds, np.float64))
    assert np.isfinite(model.predict(np.ones((4, 2)), np.zeros(4))).all()


def test_is_surer_of_what_it_has_seen():
    model = CostModel(NAMES, "1")
    features, estimates, seconds = samples(60)
    model.fit(features, estimates, seconds)
    far = np.array([[150.0, 0.5], [1.0, 300.0]])
    seen = model.predict(features, estimates)[1].mean()
    assert model.predict(far, np.zeros(2))[1].mean() > seen > 0


def test_survives_infinite_and_missing_features():
    model = CostModel(NAMES, "1")
    features, estimates, seconds = samples(20)
    features[3] = [np.inf, np.nan]
    model.fit(features, estimates, seconds)
    assert np.isfinite(model.predict(features, estimates)).all()


def test_failed_candidates_are_worse_than_slow_ones():
    model = CostModel(NAMES, "1")
    features, estimates, seconds = samples(200)
    seconds[features[:, 0] > 80] = np.inf
    model.fit(features, estimates, seconds)
    predicted, _ = model.predict(features, estimates)
    failed = ~np.isfinite(seconds)
    assert predicted[failed].min() > predicted[~failed].max()


def test_same_samples_same_model():
    one, two = CostModel(NAMES, "1", seed=3), CostModel(NAMES, "1", seed=3)
    for model in (one, two):
        model.fit(*samples(100))
    np.testing.assert_array_equal(one.predict(*samples(50)[:2]), two.predict(*samples(50)[:2]))


def run_of(label: str, count: int, offset: float = 0.0, seed: int = 1) -> Samples:
    features, estimates, seconds = samples(count, seed)
    return Samples(label, features, estimates - offset, seconds)


def test_what_earlier_runs_measured_orders_before_anything_is_measured():
    model = CostModel(NAMES, "1")
    # The second run's estimates are all wrong by the same factor, which must order nothing.
    model.start_from([run_of("one", 100), run_of("two", 100, offset=5.0, seed=2)])
    assert model.trained
    features, estimates, seconds = samples(200, seed=3)
    mean, deviation = model.predict(features, estimates)
    assert order_agreement(mean, seconds) > 0.95
    assert (deviation > 0).any()


def test_a_run_corrects_what_it_started_from():
    model = CostModel(NAMES, "1")
    wrong = run_of("wrong", 200)
    model.start_from([Samples("wrong", wrong.features, wrong.log_estimates, 1 / wrong.seconds)])
    features, estimates, seconds = samples(400, seed=3)
    assert order_agreement(model.predict(features, estimates)[0], seconds) < 0
    model.fit(features[:200], estimates[:200], seconds[:200])
    predicted, _ = model.predict(features[200:], estimates[200:])
    assert order_agreement(predicted, seconds[200:]) > 0.9


def test_starting_from_nothing_or_from_failures_alone_changes_nothing():
    model = CostModel(NAMES, "1")
    failed = run_of("failed", 4)
    nothing = Samples("x", failed.features, failed.log_estimates, np.full(4, np.inf))
    for runs in ([], [nothing], [run_of("single", 1)]):
        model.start_from(runs)
        assert not model.trained
