"""`tune` with a chosen search, and started from what earlier runs of other shapes measured."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tvm import te

import atim
from atim import workloads
from atim.schedules import design_space
from atim.schedules.canonical import canonical
from atim.schedules.terms import terms_of
from atim.schedules.verify import check
from atim.tuner import experience
from atim.tuner.baselines import make
from atim.tuner.cost_model import CostModel, Samples
from atim.tuner.database import Database
from atim.tuner.features import FEATURES, VERSION, describe
from atim.tuner.proposals import Space
from atim.tuner.search import Options

TARGET = atim.Target(dpus=8, tasklets=4)


def scaled(length: int):
    A = te.placeholder((length,), "int32", "A")
    return [A, te.compute((length,), lambda i: A[i] * 3, "y")]


def tune(length: int, folder, **options):
    return atim.tune(
        scaled(length),
        TARGET,
        trials=3,
        resident=["A"],
        work_dir=folder,
        progress=False,
        workers=1,
        **options,
    )


def test_a_run_starts_from_earlier_ones_and_is_added(tmp_path, capsys):
    file = tmp_path / "model.json"
    tune(64, tmp_path / "one", model=file)
    assert capsys.readouterr().err == ""
    atim.tune(
        scaled(96),
        TARGET,
        trials=3,
        resident=["A"],
        work_dir=tmp_path / "two",
        workers=1,
        model=file,
    )
    assert "starts from 3 trials of 1 earlier runs" in capsys.readouterr().err
    runs = experience.read(file, CostModel([f.name for f in FEATURES], VERSION))
    assert [run.label for run in runs] == ["y 64 int32 8 DPUs", "y 96 int32 8 DPUs"]
    # Another version of the features is refused before anything runs.
    file.write_text(file.read_text().replace(VERSION, "0-old"))
    with pytest.raises(
        atim.RecordError, match=f"feature version 0-old, this software has {VERSION}"
    ):
        tune(64, tmp_path / "three", model=file)
    assert not (tmp_path / "three").exists()


def test_searches_keep_records_of_their_own(tmp_path):
    tune(64, tmp_path, search="random")
    tune(64, tmp_path, search="evolutionary")
    with Database(tmp_path, write=False) as database:
        found = [
            (stored.key.objective, len(database.records(stored.id))) for stored in database.runs()
        ]
    assert [count for _, count in found] == [3, 3]
    assert "search random" in found[0][0]
    with pytest.raises(atim.UsageError, match="search: 'best' unknown"):
        tune(64, tmp_path, search="best")


def test_what_other_shapes_taught_finds_the_best_sooner():
    """A machine whose kernels take three times as long with more than 4 tasklets: the estimate does
    not know, a run of another shape does."""

    def space_of(shape):
        workload = workloads.get("mtv", shape)
        target = atim.Target(dpus=256)
        sketches = design_space(workload.func, target, workload.resident)
        return Space(sketches, canonical, lambda s, m: check(s, m, target)[0], describe)

    def seconds(space, sketch, matrix):
        _, estimates = space.describe(sketch, matrix)
        many = terms_of(space.sketches[sketch], matrix)["tasklets"] > 4
        return np.exp(estimates) * np.where(many, 3.0, 1.0)

    rng = np.random.default_rng(0)
    parts = []
    small = space_of((512, 256))
    for sketch in range(len(small.sketches)):
        matrix = small.random(rng, sketch, 60)
        parts.append((*small.describe(sketch, matrix), seconds(small, sketch, matrix)))
    earlier = Samples("small", *(np.concatenate(column) for column in zip(*parts, strict=True)))
    large = space_of((1000, 777))
    first = []
    for start in ([], [earlier]):
        model = CostModel([f.name for f in FEATURES], VERSION)
        model.start_from(start)
        search = make("evolutionary", large, model, Options(trials=64))
        rows = [(c.sketch, np.array([c.values])) for c in search.propose([])[0]]
        first.append(min(seconds(large, sketch, row)[0] for sketch, row in rows))
    assert first[1] < 0.8 * first[0]


def test_the_model_file_is_plain_json(tmp_path):
    file = tmp_path / "model.json"
    model = CostModel([f.name for f in FEATURES], VERSION)
    experience.add(file, model, Samples("x", np.zeros((1, len(FEATURES))), np.zeros(1), np.ones(1)))
    assert json.loads(file.read_text())["features"] == [f.name for f in FEATURES]
