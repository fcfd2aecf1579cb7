"""Gradient-boosted trees that rank candidates by predicted time.

In: features of measured candidates, an estimate of their time in closed form, and their times. The
trees learn the logarithm of measured over estimated time, so an untrained model ranks by the
estimate alone. Several models on resampled data tell how sure the prediction is. Failed candidates
(infinite time) are learned as worse than everything that worked. What earlier runs measured, of
other shapes and programs too, can be learned beforehand (see `experience`): the trees of this run
then correct that.
Least squares on logarithms put candidates in a better order than XGBoost's pairwise ranking did at
every sample size from 8 to 1000, hence the objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xgboost
from numpy.typing import NDArray

__all__ = ["CostModel", "Samples"]

Floats = NDArray[np.float64]

ROUNDS = 60
MEMBERS = 4
PARAMETERS = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_depth": 6,
    "eta": 0.2,
    "min_child_weight": 1.0,
    "lambda": 1.0,
    "subsample": 1.0,
    "nthread": 1,
    "verbosity": 0,
}
# A failed candidate is taken to be this much slower than the slowest one that worked.
FAILED_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Samples:
    """What a run measured, as the model sees it: features [n, f], log of estimated seconds [n],
    measured seconds [n] (infinite for failures). `label` says whose they are."""

    label: str
    features: Floats
    log_estimates: Floats
    seconds: Floats


class CostModel:
    """names: of the features, in order; version: of their meaning (see `features`)."""

    def __init__(self, names: Sequence[str], version: str, seed: int = 0) -> None:
        self.names = tuple(names)
        self.version = version
        self.seed = seed
        self._earlier: list[xgboost.Booster] = []
        self._members: list[xgboost.Booster] = []

    @property
    def trained(self) -> bool:
        """True when it knows more than the estimates."""
        return bool(self._members or self._earlier)

    def start_from(self, runs: Sequence[Samples]) -> None:
        """Learn from earlier runs. How far estimates are off on average differs from program to
        program and orders nothing, so each run counts relative to its median."""
        parts = []
        for run in runs:
            targets = _log_seconds(run.seconds)
            if targets is not None:
                residuals = targets - run.log_estimates
                parts.append((run.features, residuals - np.median(residuals)))
        self._earlier = []
        if parts:
            features, residuals = (np.concatenate(column) for column in zip(*parts, strict=True))
            self._earlier = self._grow(features, residuals)

    def fit(self, features: Floats, log_estimates: Floats, seconds: Floats) -> None:
        """Learn from n candidates: [n, f], [n] and [n]; times may be infinite, not all equal.

        With fewer than two different outcomes there is nothing to learn: the model stays untrained.
        """
        self._members = []
        targets = _log_seconds(seconds)
        if targets is None:
            return
        residuals = targets - log_estimates
        if self._earlier:
            residuals = residuals - _votes(self._earlier, features).mean(axis=0)
        self._members = self._grow(features, residuals)

    def predict(self, features: Floats, log_estimates: Floats) -> tuple[Floats, Floats]:
        """Log of predicted seconds, and its standard deviation over the members: [n] each."""
        mean, deviation = log_estimates, np.zeros(len(log_estimates))
        for members in (self._earlier, self._members) if len(features) else ():
            if members:
                votes = _votes(members, features)
                mean = mean + votes.mean(axis=0)
                deviation = votes.std(axis=0)  # of the last that know anything
        return mean, deviation

    def _grow(self, features: Floats, residuals: Floats) -> list[xgboost.Booster]:
        """Trees for the residuals; none when these are all the same: a constant orders nothing, and
        would move predictions away from the estimate."""
        count = len(residuals)
        if count < 2 or np.ptp(residuals) == 0:
            return []
        # Without names: XGBoost hands them over as text with every tree, which takes half the time.
        data = xgboost.DMatrix(_finite(features), residuals, nthread=1)
        rng = np.random.default_rng(self.seed)
        members = []
        for member in range(MEMBERS):
            # The first one sees everything once, the others a resampling.
            drawn = np.bincount(rng.integers(count, size=count), minlength=count)
            data.set_weight(np.ones(count) if member == 0 else drawn + 0.1)
            options = {**PARAMETERS, "seed": self.seed + member}
            members.append(xgboost.train(options, data, num_boost_round=ROUNDS))
        return members


def _log_seconds(seconds: Floats) -> Floats | None:
    """What is learned of measured times; None when nothing worked."""
    worked = np.isfinite(seconds) & (seconds > 0)
    if not worked.any():
        return None
    targets = np.full(len(seconds), np.log(FAILED_FACTOR * seconds[worked].max()))
    targets[worked] = np.log(seconds[worked])
    return targets


def _votes(members: Sequence[xgboost.Booster], features: Floats) -> Floats:
    """Residuals predicted by each member: [members, n]."""
    finite = _finite(features)
    votes = [m.inplace_predict(finite, validate_features=False) for m in members]
    return np.stack(votes).astype(np.float64)


def _finite(features: Floats) -> NDArray[np.float32]:
    limit = float(np.finfo(np.float32).max) / 2
    return np.nan_to_num(features, nan=0.0).clip(-limit, limit).astype(np.float32)
