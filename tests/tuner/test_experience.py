"""Model files keep what runs measured, and are refused when they do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from atim.errors import RecordError
from atim.tuner import experience
from atim.tuner.cost_model import CostModel, Samples

MODEL = CostModel(("a", "b"), "1")


def run_of(label: str, count: int = 3, first: float = 1.0) -> Samples:
    seconds = np.arange(first, first + count)
    seconds[-1] = np.inf  # a failure
    return Samples(label, np.arange(2.0 * count).reshape(count, 2), np.zeros(count), seconds)


def labels(path: Path) -> list[str]:
    return [run.label for run in experience.read(path, MODEL)]


def test_what_is_added_is_read_again(tmp_path):
    path = tmp_path / "new" / "model.json"
    assert experience.read(path, MODEL) == []
    assert experience.add(path, MODEL, run_of("mtv")) == path
    (found,) = experience.read(path, MODEL)
    assert found.label == "mtv"
    np.testing.assert_array_equal(found.features, run_of("mtv").features)
    np.testing.assert_array_equal(found.seconds, [1.0, 2.0, np.inf])
    assert [p.name for p in path.parent.iterdir()] == ["model.json"]  # nothing half-written is left


def test_a_run_replaces_its_older_self_and_the_oldest_go(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    for label in ("a", "b"):
        experience.add(path, MODEL, run_of(label))
    experience.add(path, MODEL, run_of("a", first=7.0))
    assert labels(path) == ["b", "a"]
    assert experience.read(path, MODEL)[1].seconds[0] == 7.0
    monkeypatch.setattr(experience, "RUNS_KEPT", 2)
    experience.add(path, MODEL, run_of("c"))
    assert labels(path) == ["a", "c"]


def test_long_runs_are_thinned(tmp_path):
    path = tmp_path / "model.json"
    experience.add(path, MODEL, run_of("long", 5000))
    (found,) = experience.read(path, MODEL)
    assert len(found.seconds) == experience.SAMPLES_KEPT
    assert found.seconds[0] == 1.0
    assert found.seconds[-1] == np.inf


def test_a_folder_holds_a_file_for_each_run(tmp_path):
    folder = tmp_path / "models"
    first = experience.add(folder, MODEL, run_of("mtv 4096x4096"))
    experience.add(folder, MODEL, run_of("va 8"))
    assert first == folder / "mtv-4096x4096.json"
    assert labels(folder) == ["mtv 4096x4096", "va 8"]


def test_another_feature_version_is_refused_by_name(tmp_path):
    path = tmp_path / "model.json"
    experience.add(path, MODEL, run_of("mtv"))
    newer = CostModel(("a", "b"), "2")
    message = "model.json: feature version 1, this software has 2"
    with pytest.raises(RecordError, match=message):
        experience.read(path, newer)
    with pytest.raises(RecordError, match=message):
        experience.read(tmp_path, newer)
    with pytest.raises(RecordError, match=message):
        experience.add(path, newer, run_of("va"))
    assert labels(path) == ["mtv"]  # and left as it was


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is damaged"),
        ("[1]", "not a cost model"),
        ('{"format": "atim cost model"}', "is damaged: 'version'"),
    ],
)
def test_damaged_files_are_refused(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=message):
        experience.read(path, MODEL)


def test_damaged_samples_are_refused(tmp_path):
    path = tmp_path / "model.json"
    experience.add(path, MODEL, run_of("mtv"))
    data = json.loads(path.read_text())
    for key, value in (("log_estimates", [1.0]), ("seconds", ["x"]), ("features", [[1.0]])):
        broken = json.loads(json.dumps(data))
        broken["runs"][0][key] = value
        path.write_text(json.dumps(broken))
        with pytest.raises(RecordError, match="is damaged"):
            experience.read(path, MODEL)


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="can't be written"):
        experience.add(tmp_path / "file" / "model.json", MODEL, run_of("mtv"))
