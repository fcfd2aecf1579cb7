"""`atim doctor` and `atim calibrate`, with the drop-in tools and without any."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from atim import Target, cli, hardware, pipeline, runtime, toolchain, workloads
from atim.errors import HardwareError, MismatchError, ToolchainError, UsageError
from atim.machine import calibrate, doctor
from atim.schedules import manual
from atim.tuner.compare import check_outputs
from atim.tuner.folder import open_best
from atim.tuner.measure import run_task, sample_inputs
from atim.tuner.plan import Plan
from atim.tuner.search import Options
from atim.tuner.trial import Task
from upmem_sim import TransferModel
from upmem_sim.host import places
from upmem_sim.host.home import write_home


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{places.bin_dir()}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DPU_SIM_DPUS", "256")


def test_doctor_finds_the_simulated_dpus(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^ok  DPUs +256 in 4 ranks can be allocated, simulated", text, re.M)
    assert "ready to tune on the simulator" in text


def test_doctor_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("UPMEM_HOME", "/nowhere/sdk")
    assert cli.run(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "--  UPMEM_HOME   /nowhere/sdk is no folder" in text
    assert "--  UPMEM tools  UPMEM_HOME=/nowhere/sdk is no folder; set it to" in text
    assert "missing for tuning: C compiler" in text
    assert "not ready to run on DIMMs" in text


def test_a_compiler_that_fails_and_no_dpus_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler = tmp_path / hardware.DPU_COMPILER
    compiler.write_text("#!/bin/sh\necho no licence >&2\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DPU_SIM_PRESET", "none")
    assert cli.run(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "--  UPMEM tools  dpu-upmem-dpurte-clang exited with 3: no licence" in text
    assert "no DPU can be allocated: dpu allocation error" in text
    assert "not ready to run on DIMMs" in text


def test_a_home_that_is_no_folder_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPMEM_HOME", "/nowhere/sdk")
    with pytest.raises(ToolchainError, match="UPMEM_HOME=/nowhere/sdk is no folder"):
        calibrate.measure(2)


def test_only_what_tuning_needs_decides() -> None:
    findings = [doctor.Finding("C compiler", "cc", True), doctor.Finding("DPUs", "", False, False)]
    assert "ready to tune" in doctor.text(findings)


def test_calibration_recovers_the_simulated_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPU_SIM_PRESET", "upmem-2021.3-2048dpu")
    path = tmp_path / "mine.json"
    options = ["--dpus", "128", "--repeats", "1", "--megabytes", "8"]
    assert cli.run(["calibrate", str(path), *options]) == 0
    assert f"wrote {path}" in capsys.readouterr().out
    model, real = (TransferModel.preset(n) for n in (str(path), "upmem-2021.3-2048dpu"))
    for size, dpus in ((32, 1), (2048, 64), (16384, 128), (1 << 20, 128)):
        assert model.to_dpus(size, dpus) == pytest.approx(real.to_dpus(size, dpus), rel=0.1)
        assert model.from_dpus(size, dpus) == pytest.approx(real.from_dpus(size, dpus), rel=0.1)
    assert model.from_wram(512, 64) == pytest.approx(real.from_wram(512, 64), rel=0.02)
    # the launch holds the cycles of an empty kernel
    assert model.launch(128) == pytest.approx(real.launch(128), rel=0.01)
    assert model.broadcast_gain == pytest.approx(real.broadcast_gain, rel=0.05)
    assert 0.01 < model.reduction.far_ns < 100
    target = Target(dpus=128, transfer=str(path))
    assert target.transfer == str(path)


def test_a_home_like_an_sdks_serves_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing on PATH but $UPMEM_HOME: doctor, a run through the exported program, calibration."""
    home = write_home(tmp_path / "sdk", "2025.1.0")
    monkeypatch.setenv("UPMEM_HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert cli.run(["doctor"]) == 0
    text = capsys.readouterr().out
    assert re.search(rf"^ok  UPMEM tools +{home}/bin/dpu-upmem-dpurte-clang", text, re.M)
    assert re.search(r"^ok  DPUs +256 in 4 ranks can be allocated, simulated", text, re.M)
    path = tmp_path / "mine.json"
    options = ["--dpus", "64", "--repeats", "1", "--megabytes", "1"]
    assert cli.run(["calibrate", str(path), *options]) == 0
    target = Target(dpus=5, transfer=str(path)).on_hardware()
    workload = workloads.get("va", (1001,))
    sketch, decisions = manual.prim_style(workload, target)
    artifact = toolchain.build(pipeline.compile(sketch, decisions, target), target)
    inputs = workload.inputs(np.random.default_rng(0))
    outcome = runtime.run(artifact, inputs)
    assert outcome.outputs is not None
    assert np.array_equal(outcome.outputs["C"], workload.reference(inputs))
    assert min(outcome.timing.h2d, outcome.timing.kernel, outcome.timing.d2h) > 0


def test_programs_of_an_older_compiler_are_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(dpus=2)
    workload = workloads.get("va", (16,))
    sources = pipeline.compile(*manual.prim_style(workload, target), target)
    tools, program = hardware.find_tools(), hardware.exported(sources, [])
    first, _ = hardware.build_program(tools, program)
    assert hardware.build_program(tools, program)[0] == first
    monkeypatch.setattr(hardware, "simulator_identity", lambda: "edited")
    edited, _ = hardware.build_program(tools, program)
    assert edited != first


def test_more_dpus_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match="DPUs: 300 requested, limit 256"):
        calibrate.measure(300)


def test_numbers_of_dpus_grow_by_ranks_to_all() -> None:
    assert calibrate.dpu_counts(2530) == (1, 8, 64, 128, 256, 512, 1024, 2048, 2530)
    assert calibrate.dpu_counts(60) == (1, 8, 60)


def test_bad_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json: No such file"):
        Target(transfer=str(tmp_path / "none.json"))
    (tmp_path / "bad.json").write_text(json.dumps({"name": "x"}))
    with pytest.raises(UsageError, match=r"bad\.json: 'source' is missing; atim calibrate writes"):
        Target(transfer=str(tmp_path / "bad.json"))
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(UsageError, match=r"bad\.json: no JSON object"):
        Target(transfer=str(tmp_path / "bad.json"))
    with pytest.raises(UsageError, match=r"kern, and files NAME\.json of atim calibrate"):
        Target(transfer="bad.txt")


@pytest.mark.slow
def test_tuning_measures_through_the_exported_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--shape", "60,64", "--dpus", "16", "--trials", "3", "--workers", "1", "--quiet"]
    assert cli.run(["tune", "mtv", *options, "--hardware", "--work-dir", str(tmp_path)]) == 0
    assert "measured on simulated DPUs" in capsys.readouterr().out
    best = open_best(tmp_path)
    assert best.sketch.target.hardware
    assert best.record.counters["repeats"] == 5
    built = best.build()
    rng = np.random.default_rng(0)
    a, x = rng.integers(0, 50, (60, 64), np.int32), rng.integers(0, 50, 64, np.int32)
    y, timing = built(a, x)
    assert (y == a @ x).all()
    # host copies and additions take real time, the rest is simulated and so repeats
    assert timing.kernel == pytest.approx(best.timing.kernel, rel=0.2)


def test_a_trial_on_hardware_is_checked_and_timed() -> None:
    target = Target(dpus=16).on_hardware()
    plan = Plan.of(workloads.get("va", (1001,)), target, Options(trials=1, seed=0))
    assert plan.key.target.endswith(", measured on simulated DPUs, through the exported program")
    (sketch,) = plan.sketches
    task = Task(sketch.name, {d.name: min(d.values) for d in sketch.decisions} | {"dpus_i": 5})
    arrays = sample_inputs(sketch.func)
    measured = run_task(sketch.func, sketch, task, arrays)
    assert measured.status == "ok", measured.message
    assert measured.timing is not None
    assert min(measured.timing[1:3]) > 0
    wrong = {**arrays, "A": arrays["A"] + 1}
    artifact = toolchain.build(pipeline.compile(sketch, task.decisions, target), target)
    outcome = runtime.run(artifact, wrong)
    assert outcome.outputs is not None
    with pytest.raises(MismatchError):
        check_outputs(sketch.func, arrays, outcome.outputs)


def test_faults_on_hardware_are_recorded_as_such(tmp_path: Path) -> None:
    target = Target(dpus=4).on_hardware()
    workload = workloads.get("va", (64,))
    sketch, decisions = manual.prim_style(workload, target)
    sources = pipeline.compile(sketch, decisions, target)
    broken = replace(sources, kernel_c=sources.kernel_c.replace("return 0;", '__asm__("fault 7");'))
    with pytest.raises(HardwareError, match=r"check exited with 1: .*fault"):
        hardware.run(broken, workload.inputs(np.random.default_rng(0)))
