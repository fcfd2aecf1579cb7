"""Gradient-boosted trees that rank candidates by predicted time.

In: features of measured candidates, an estimate of their time in closed form, and their times. The
trees learn the logarithm of measured over estimated time, so an untrained model ranks by the
estimate alone. Several models on resampled data tell how sure the prediction is. Failed candidates
(infinite time) are learned as worse than everything that worked.
Least squares on logarithms put candidates in a better order than XGBoost's pairwise ranking did at
every sample size from 8 to 1000, hence the objective.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xgboost
from numpy.typing import NDArray

from atim.errors import RecordError

__all__ = ["CostModel"]

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
FORMAT = "atim cost model"


class CostModel:
    """names: of the features, in order; version: of their meaning (see `features`)."""

    def __init__(self, names: Sequence[str], version: str, seed: int = 0) -> None:
        self.names = tuple(names)
        self.version = version
        self.seed = seed
        self._members: list[xgboost.Booster] = []

    @property
    def trained(self) -> bool:
        return bool(self._members)

    def fit(self, features: Floats, log_estimates: Floats, seconds: Floats) -> None:
        """Learn from n candidates: [n, f], [n] and [n]; times may be infinite, not all equal.

        With fewer than two different outcomes there is nothing to learn: the model stays untrained.
        """
        self._members = []
        worked = np.isfinite(seconds) & (seconds > 0)
        if not worked.any():
            return
        targets = np.full(len(seconds), np.log(FAILED_FACTOR * seconds[worked].max()))
        targets[worked] = np.log(seconds[worked])
        residuals = targets - log_estimates
        # A constant offset orders nothing, and would move predictions away from the estimate.
        if len(seconds) < 2 or np.ptp(residuals) == 0:
            return
        # Without names: XGBoost hands them over as text with every tree, which takes half the time.
        data = xgboost.DMatrix(_finite(features), residuals, nthread=1)
        rng = np.random.default_rng(self.seed)
        for member in range(MEMBERS):
            # The first one sees everything once, the others a resampling.
            counts = np.bincount(
                rng.integers(len(seconds), size=len(seconds)), minlength=len(seconds)
            )
            data.set_weight(np.ones(len(seconds)) if member == 0 else counts + 0.1)
            options = {**PARAMETERS, "seed": self.seed + member}
            self._members.append(xgboost.train(options, data, num_boost_round=ROUNDS))

    def predict(self, features: Floats, log_estimates: Floats) -> tuple[Floats, Floats]:
        """Log of predicted seconds, and its standard deviation over the members: [n] each."""
        if not self._members or not len(features):
            return log_estimates, np.zeros(len(log_estimates))
        finite = _finite(features)
        residuals = np.stack(
            [m.inplace_predict(finite, validate_features=False) for m in self._members]
        )
        mean = np.asarray(log_estimates + residuals.mean(axis=0), np.float64)
        return mean, np.asarray(residuals.std(axis=0), np.float64)

    def save(self, path: Path) -> None:
        """Write the model and the version of its features. RecordError when that fails."""
        trees = [member.save_raw("json").decode() for member in self._members]
        text = json.dumps(
            {
                "format": FORMAT,
                "features": list(self.names),
                "version": self.version,
                "seed": self.seed,
                "trees": trees,
            }
        )
        try:
            path.write_text(text)
        except OSError as error:
            raise RecordError(f"cost model {path} can't be written: {error.strerror}") from error

    def load(self, path: Path) -> None:
        """Take over a saved model. RecordError unless it is whole and of this feature version."""
        try:
            data = json.loads(path.read_text())
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError("not a cost model")
            version, names, trees = data["version"], tuple(data["features"]), data["trees"]
        except OSError as error:
            raise RecordError(f"cost model {path} can't be read: {error.strerror}") from error
        except (ValueError, KeyError) as error:
            raise RecordError(f"cost model {path} is damaged: {error}") from error
        if (version, names) != (self.version, self.names):
            raise RecordError(
                f"cost model {path}: feature version {version}, this software has {self.version}"
            )
        try:
            self._members = [
                xgboost.Booster({"nthread": 1}, model_file=bytearray(tree, "utf8"))
                for tree in trees
            ]
        except xgboost.core.XGBoostError as error:
            raise RecordError(f"cost model {path} is damaged: trees unreadable") from error


def _finite(features: Floats) -> NDArray[np.float32]:
    limit = float(np.finfo(np.float32).max) / 2
    return np.nan_to_num(features, nan=0.0, posinf=limit, neginf=-limit).astype(np.float32)
