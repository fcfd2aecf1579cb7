"""Ranks in groups, one computing while the next is fed: closed form, emitted program, records."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from atim import pipeline, runtime, toolchain, workloads
from atim.codegen import Sources, Tensor, Tile, TransferPlan
from atim.export import write_folder
from atim.outcome import Outcome, Timing
from atim.schedules import design_space
from atim.target import Target
from atim.timing import best_groups, call_timing, group_bounds, push_seconds
from atim.tuner.database import Record
from atim.tuner.result import Best
from upmem_sim import TransferModel
from upmem_sim.host import places

MODEL = TransferModel.preset("common")


def vector_plan(dpus: int, elements: int, groups: int = 1) -> TransferPlan:
    tensors = tuple(
        Tensor(name, (dpus * elements,), "int32", role)
        for name, role in (("A", "input"), ("B", "input"), ("C", "output"))
    )
    tiles = tuple(
        Tile(t.name, t.name, "int32", mode, t.shape, (elements,), (elements,), (0,), ((elements,),))
        for t, mode in zip(tensors, ("in", "in", "out"), strict=True)
    )
    return TransferPlan((dpus,), tensors, tiles, groups=groups)


def seconds(dpus: int, each: float) -> np.ndarray:
    return np.full(dpus, each)


def test_groups_are_whole_ranks() -> None:
    assert group_bounds(200, 1) == [0, 200]
    assert group_bounds(200, 2) == [0, 128, 200]
    assert group_bounds(200, 4) == [0, 64, 128, 192, 200]


def test_one_group_is_the_sum_of_its_parts() -> None:
    timing = call_timing(vector_plan(200, 1000), Target(dpus=200), (), seconds(200, 3e-3))
    assert timing.h2d == 2 * MODEL.to_dpus(4000, 200)
    assert timing.kernel == MODEL.launch(200) + 3e-3
    assert timing.d2h == MODEL.from_dpus(4000, 200)


def test_what_all_dpus_hold_is_broadcast_unless_others_would_get_it_too() -> None:
    tile = replace(vector_plan(1, 10_000).tiles[0], offset_coeffs=((0,),))
    size = tile.slice_bytes
    assert push_seconds(MODEL, tile, 64) == MODEL.broadcast(size, 64) < MODEL.to_dpus(size, 64)
    assert push_seconds(MODEL, tile, 64, some=True) == MODEL.to_dpus(size, 64)
    assert push_seconds(MODEL, tile, 1) == MODEL.to_dpus(size, 1)


def test_groups_hide_kernels_behind_transfers() -> None:
    """Two groups by hand: the second is fed while the first computes."""
    kernel = np.repeat([4e-3, 5e-3], [128, 72])
    timing = call_timing(vector_plan(200, 1000, groups=2), Target(dpus=200), (), kernel)
    push = [2 * MODEL.to_dpus(4000, n) for n in (128, 72)]
    pull = [MODEL.from_dpus(4000, n) for n in (128, 72)]
    first = push[0] + MODEL.launch(128) + 4e-3
    second = push[0] + push[1] + MODEL.launch(72) + 5e-3
    end = max(max(first, sum(push)) + pull[0], second) + pull[1]
    assert timing.total == pytest.approx(end, rel=1e-12)
    assert timing.h2d == pytest.approx(sum(push))
    assert timing.d2h == pytest.approx(sum(pull))


def test_groups_are_chosen_where_they_pay() -> None:
    """Where fewer DPUs fill the bus as well, pulls hide behind kernels; elsewhere they do not."""
    plan = vector_plan(2048, 50_000)
    saturated, common = Target(dpus=2048, transfer="upmem-2021.3-2048dpu"), Target(dpus=2048)
    assert best_groups(plan, saturated, (), seconds(2048, 0.1)) > 1
    assert best_groups(plan, saturated, (), seconds(2048, 1e-4)) == 1  # nothing to hide behind
    assert best_groups(plan, common, (), seconds(2048, 0.1)) == 1  # transfers of half are slower
    assert best_groups(vector_plan(64, 50_000), common, (), seconds(64, 0.1)) == 1


CASES = {
    "va": ("va", (100_003,), "", {"dpus_i": 200}),
    "mtv": ("mtv", (300, 500), "rows_split", {"dpus_i": 150, "pieces": 2}),
}


def compiled(case: str) -> tuple[workloads.Workload, Sources, Target]:
    name, shape, sketch_name, chosen = CASES[case]
    workload, target = workloads.get(name, shape, "int32"), Target(dpus=512)
    sketches = {s.name: s for s in design_space(workload.func, target)}
    sketch = sketches[sketch_name] if sketch_name else next(iter(sketches.values()))
    decisions = {d.name: min(d.values) for d in sketch.decisions}
    decisions |= {name: value for name, value in chosen.items() if name in decisions}
    return workload, pipeline.compile(sketch, decisions, target), target


@pytest.mark.parametrize(("case", "groups"), [("va", 4), ("mtv", 2), ("mtv", 3), ("mtv", 16)])
def test_emitted_program_does_the_same_in_the_same_time(
    case: str, groups: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{places.bin_dir()}{os.pathsep}{os.environ['PATH']}")
    workload, sources, target = compiled(case)
    arrays = workload.inputs(rng)
    groups_fit = min(groups, -(-sources.plan.dpus // 64))
    sources = replace(sources, plan=replace(sources.plan, groups=groups))
    artifact = toolchain.build(sources, target)
    measured = runtime.run(replace(artifact, target=target.on_hardware()), arrays)
    plan = replace(sources.plan, groups=groups_fit)
    simulated = runtime.run(replace(artifact, sources=replace(sources, plan=plan)), arrays)
    assert simulated.outputs is not None
    assert measured.outputs is not None
    for name, values in simulated.outputs.items():
        assert measured.outputs[name].tobytes() == values.tobytes()
        assert np.array_equal(values, workload.reference(arrays))
    assert measured.counters["cycles"] == simulated.counters["cycles"]
    assert measured.timing.kernel == pytest.approx(simulated.timing.kernel, abs=2e-9)
    # copies on the host are real and not modelled
    assert measured.timing.h2d >= simulated.timing.h2d - 2e-9
    assert measured.timing.d2h >= simulated.timing.d2h - 2e-9


def test_folder_with_groups_builds_without_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{places.bin_dir()}{os.pathsep}{os.environ['PATH']}")
    _, sources, _ = compiled("mtv")
    sources = replace(sources, plan=replace(sources.plan, groups=4))
    write_folder(tmp_path, sources, name="mtv", title="MTV", resident=["A"])
    flags = "CFLAGS=-std=c11 -O1 -fwrapv -Wall -Wextra -Werror"
    done = subprocess.run(["make", flags], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_chooses_and_the_record_carries_it(rng: np.random.Generator) -> None:
    workload = workloads.get("geva", (2048 * 2048,), "int32")
    target = Target(dpus=2048, transfer="upmem-2021.3-2048dpu")
    sketch = design_space(workload.func, target)[0]
    decisions = {d.name: min(d.values) for d in sketch.decisions} | {"dpus_i": 2048}
    artifact = toolchain.build(pipeline.compile(sketch, decisions, target), target, host=False)
    arrays = workload.inputs(rng)
    whole = runtime.run(artifact, arrays, representatives=True)
    chosen = runtime.run(artifact, arrays, representatives=True, choose_groups=True)
    assert whole.counters["rank_groups"] == 1
    assert chosen.counters["rank_groups"] == 2
    assert chosen.timing.total < whole.timing.total
    record = Record(0, 0, sketch.name, decisions, counters={"rank_groups": 2.0})
    assert Best(record, sketch).sources().plan.groups == 2


def test_hardware_measures_with_groups_where_they_may_pay(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is the faster there counts, not what the closed form says."""
    workload, sources, target = compiled("va")
    target = replace(target, transfer="upmem-2021.3-2048dpu").on_hardware()
    artifact = replace(toolchain.build(sources, target, host=False), target=target)
    faster = {1: 3e-3, 2: 2e-3, 4: 5e-3}

    def run(sources: Sources, *_: object, **__: object) -> Outcome:
        return Outcome(None, (), Timing(1e-3, faster[sources.plan.groups], 1e-3, 0.0), {})

    monkeypatch.setattr(runtime.hardware, "run", run)
    arrays = workload.inputs(rng)
    for said, taken in ((1, 1), (2, 2), (4, 1)):
        monkeypatch.setattr(runtime, "best_groups", Mock(return_value=said))
        outcome = runtime.run(artifact, arrays, choose_groups=True)
        assert outcome.counters["rank_groups"] == taken
        assert outcome.timing.kernel == faster[taken]
    assert runtime.run(artifact, arrays).counters["rank_groups"] == 1
