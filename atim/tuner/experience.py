"""The model file: what earlier runs measured, with the version of the features it is told in.

A file holds samples rather than trees: runs are added one by one, each replaces its older self, and
the trees are grown when a run starts. JSON, written whole or not at all. Another feature version is
refused: its numbers mean something else.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from atim.errors import RecordError
from atim.tuner.cost_model import CostModel, Samples

__all__ = ["RUNS_KEPT", "add", "read"]

FORMAT = "atim cost model"
RUNS_KEPT = 64  # in one file, the latest
SAMPLES_KEPT = 512  # of one run, evenly out of all


def read(path: Path, model: CostModel) -> list[Samples]:
    """Runs in a file, or in all the *.json files of a folder; none where there is nothing yet.

    Raises RecordError when a file is damaged, unreadable, or of another feature version than
    `model` is made for.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [run for file in files if file.exists() for run in _read(file, model)]


def add(path: Path, model: CostModel, samples: Samples) -> Path:
    """Keep a run in a file; in a folder (or PATH/), in a file named after its label. Returns the
    file; raises RecordError as `read` does, and when it can't be written."""
    if path.is_dir() or path.suffix != ".json":
        path = path / (re.sub(r"[^A-Za-z0-9.]+", "-", samples.label).strip("-") + ".json")
    runs = [r for r in read(path, model) if r.label != samples.label]
    kept = [*runs, _thinned(samples)][-RUNS_KEPT:]
    text = json.dumps(
        {
            "format": FORMAT,
            "version": model.version,
            "features": list(model.names),
            "runs": [_as_json(run) for run in kept],
        }
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(text)
        os.replace(file.name, path)
    except OSError as error:
        raise RecordError(f"cost model {path} can't be written: {error.strerror}") from error
    return path


def _read(path: Path, model: CostModel) -> list[Samples]:
    try:
        data = json.loads(path.read_text())
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError("not a cost model")
        version, names, runs = data["version"], tuple(data["features"]), data["runs"]
    except OSError as error:
        raise RecordError(f"cost model {path} can't be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"cost model {path} is damaged: {error}") from error
    if (version, names) != (model.version, model.names):
        raise RecordError(
            f"cost model {path}: feature version {version}, this software has {model.version}"
        )
    try:
        return [_from_json(run, len(names)) for run in runs]
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"cost model {path} is damaged: {error}") from error


def _thinned(samples: Samples) -> Samples:
    count = len(samples.seconds)
    rows = np.unique(np.linspace(0, count - 1, min(count, SAMPLES_KEPT)).astype(int))
    return Samples(
        samples.label, samples.features[rows], samples.log_estimates[rows], samples.seconds[rows]
    )


def _as_json(samples: Samples) -> dict[str, Any]:
    return {
        "label": samples.label,
        "features": samples.features.tolist(),
        "log_estimates": samples.log_estimates.tolist(),
        # JSON has no infinity
        "seconds": [s if np.isfinite(s) else None for s in samples.seconds.tolist()],
    }


def _from_json(run: dict[str, Any], width: int) -> Samples:
    seconds = np.array([np.inf if s is None else s for s in run["seconds"]], np.float64)
    features = np.array(run["features"], np.float64).reshape(len(seconds), width)
    estimates = np.array(run["log_estimates"], np.float64)
    if estimates.shape != seconds.shape:
        raise ValueError(f"{len(seconds)} times, {len(estimates)} estimates")
    return Samples(str(run["label"]), features, estimates, seconds)
