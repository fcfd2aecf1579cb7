"""The cost model orders candidates, survives odd samples, and refuses files that do not fit."""

from __future__ import annotations

import json

import numpy as np
import pytest

from atim.errors import RecordError
from atim.tuner.cost_model import CostModel

NAMES = ("a", "b")


def samples(count: int):
    rng = np.random.default_rng(1)
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


def test_saved_and_loaded_it_predicts_the_same(tmp_path):
    model = CostModel(NAMES, "1")
    model.fit(*samples(100))
    model.save(tmp_path / "model.json")
    other = CostModel(NAMES, "1")
    other.load(tmp_path / "model.json")
    np.testing.assert_array_equal(model.predict(*samples(50)[:2]), other.predict(*samples(50)[:2]))
    CostModel(NAMES, "1").save(tmp_path / "empty.json")
    other.load(tmp_path / "empty.json")
    assert not other.trained


def test_a_file_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "model.json"
    CostModel(NAMES, "1").save(path)
    with pytest.raises(RecordError, match="feature version 1, this software has 2"):
        CostModel(NAMES, "2").load(path)
    with pytest.raises(RecordError, match="feature version 1, this software has 1"):
        CostModel(("a", "c"), "1").load(path)
    path.write_text("{")
    with pytest.raises(RecordError, match="is damaged"):
        CostModel(NAMES, "1").load(path)
    path.write_text("[1]")
    with pytest.raises(RecordError, match="not a cost model"):
        CostModel(NAMES, "1").load(path)
    path.write_text(
        json.dumps({"format": "atim cost model", "features": NAMES, "version": "1", "trees": ["{"]})
    )
    with pytest.raises(RecordError, match="trees unreadable"):
        CostModel(NAMES, "1").load(path)
    with pytest.raises(RecordError, match="can't be read: No such file"):
        CostModel(NAMES, "1").load(tmp_path / "none.json")
    with pytest.raises(RecordError, match="can't be written: No such file"):
        CostModel(NAMES, "1").save(tmp_path / "none" / "model.json")
