"""Rules, codes, order, faults, logs and times of the library, as C programs see them."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from host_shell import Shell

from upmem_sim.dpu import Dpu
from upmem_sim.elf import read_elf
from upmem_sim.errors import SimFault
from upmem_sim.log import read_log
from upmem_sim.params import DpuParams
from upmem_sim.transfer import TransferModel
from upmem_sim.transfer_file import write_preset

MODES = {"DIVIDE": 3, "WILD": 4, "DEADLOCK": 5, "FOREVER": 6, "other": 99}
LIMIT = 1_000_000


def test_every_rule_has_its_code(shell: Shell, probe: Path) -> None:
    damaged = shell.folder / "damaged"
    damaged.write_bytes(probe.read_bytes()[:3000])
    done = shell.run(shell.compile_check("errors"), str(probe), str(damaged))
    assert done.stdout == ""
    assert f"libdpu: {damaged}: " in done.stderr


def test_threads_callbacks_and_asynchronous_order(shell: Shell, probe: Path) -> None:
    command = shell.compile_check("threads")
    for _ in range(3):
        assert shell.run(command, str(probe)).stdout == ""


def test_what_a_stopped_dpu_holds_is_saved_and_put_back(shell: Shell, probe: Path) -> None:
    assert shell.run(shell.compile_check("checkpoints"), str(probe)).stdout == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("#include <dpu.h>\nint main(void) { return dpu_fifo_push_xfer(0, 1); }", "simulates v1A"),
        ("#include <dpu_fifo.h>", "dpu_fifo.h: FIFOs to running DPUs need chip v1B"),
        ("#include <dpu_bank_interface_pmc.h>", "counters of the bank interface need chip v1B"),
    ],
)
def test_what_another_chip_has_is_told_to_the_compiler(shell: Shell, line: str, says: str) -> None:
    shell.folder.joinpath("other.c").write_text(line + "\n")
    build = "gcc -c other.c $(dpu-pkg-config --cflags dpu)"
    assert says in shell.run("sh", "-c", build, expect=1).stderr


@pytest.mark.parametrize("standard", ["-std=c++11", "-std=c++20"])
def test_the_interface_of_cplusplus(shell: Shell, probe: Path, standard: str) -> None:
    assert shell.run(shell.compile_check("cplusplus", [standard]), str(probe)).stdout == ""


def test_a_single_processor_is_enough(shell: Shell, probe: Path) -> None:
    shell.run(shell.compile_check("threads"), str(probe), DPU_SIM_THREADS="1")


def python_run(probe: Path, mode: int) -> Dpu:
    dpu = Dpu(read_elf(probe))
    dpu.write("mode", np.uint32(mode))
    return dpu


def test_faults_and_logs_are_those_of_the_python_side(shell: Shell, probe: Path) -> None:
    command = shell.compile_check("faults")
    done = shell.run(command, str(probe), DPU_SIM_CYCLES=str(LIMIT), DPU_SIM_QUIET="1")
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    for (name, mode), line in zip(MODES.items(), lines, strict=False):
        with pytest.raises(SimFault) as caught:
            python_run(probe, mode).run(max_cycles=LIMIT)
        assert line == str(caught.value).replace("at DPU 0,", "at DPU 0x0,"), name
    dpu = python_run(probe, 2)
    dpu.run()
    text = f"=== DPU#0x0 ===\n{read_log(dpu)}"
    assert done.stdout.endswith(text + text)


def test_faults_are_told_on_standard_error(shell: Shell, probe: Path) -> None:
    done = shell.run(shell.compile_check("faults"), str(probe), DPU_SIM_CYCLES=str(LIMIT))
    assert "libdpu: program fault at DPU 0x0, tasklet 0, pc " in done.stderr
    assert "(and 1 more at fault)" in done.stderr


def times(shell: Shell, probe: Path, dpus: int, **variables: str) -> dict[str, float]:
    done = shell.run("./times", str(probe), str(dpus), **variables)
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def measured_file(folder: Path) -> Path:
    """A calibration with dips, which both readers make monotone."""
    rng = np.random.default_rng(1)
    kinds = ("to_mram", "from_mram", "to_wram", "from_wram")
    tables = {
        kind: {
            "bytes": [8, 512, 4096, 65536],
            "dpus": [64, 128, 512],
            "seconds": rng.uniform(1e-4, 1e-2, (4, 3)).tolist(),
        }
        for kind in kinds
    }
    numbers = {"broadcast_gain": 1.7, "launch_ms": 0.2, "launch_per_rank_ms": 0.01}
    host = dataclasses.asdict(TransferModel.preset("common").reduction)
    path = folder / "file.json"
    write_preset(path, {"name": "x", "source": '"quoted"', **tables, **numbers, "host": host})
    return path


@pytest.mark.parametrize(
    ("dpus", "preset"),
    [
        (1, "common"),
        (100, "common"),
        (2500, "common"),
        (130, "kern"),
        (40, "cloud-2024"),
        (130, "cloud-2024"),
        (200, "file.json"),
    ],
)
def test_times_are_those_of_the_python_model(
    shell: Shell, probe: Path, dpus: int, preset: str
) -> None:
    shell.compile_check("times")
    if preset == "file.json":
        preset = str(measured_file(shell.folder))
    t = times(shell, probe, dpus, DPU_SIM_PRESET=preset)
    model = TransferModel.preset(preset)
    cycles = python_run(probe, 0).run().cycles
    kernel = cycles / (DpuParams().clock_mhz * 1e6)
    expected = {
        "push.to_dpus": model.to_dpus(2048, dpus),
        "push.elapsed": model.to_dpus(2048, dpus),
        "pull.from_dpus": model.from_dpus(1024, dpus),
        "broadcast.to_dpus": model.broadcast(512, dpus),
        "wram.to_dpus": model.to_wram(4, dpus),
        "one.from_dpus": model.from_wram(8, 1),
        "launch.launches": model.launch(dpus),
        "launch.kernels": kernel,
        "launch.elapsed": model.launch(dpus) + kernel,
    }
    assert {k: t[k] for k in expected} == pytest.approx(expected, rel=1e-9)
    assert t["launch.cycles"] == cycles


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("cloud", "DPU_SIM_PRESET=cloud is unknown: common, "),
        ("none.json", "DPU_SIM_PRESET=none.json: cannot be read"),
        ("bad.json", "DPU_SIM_PRESET=bad.json: no value at byte 8"),
        ("less.json", 'DPU_SIM_PRESET=less.json: no "to_mram"'),
    ],
)
def test_a_preset_that_there_is_not_fails_the_allocation(
    shell: Shell, preset: str, message: str
) -> None:
    body = "struct dpu_set_t set; DPU_ASSERT(dpu_alloc(1, NULL, &set));"
    shell.folder.joinpath("one.c").write_text(f"#include <dpu.h>\nint main(void) {{ {body} }}\n")
    shell.run("sh", "-c", "gcc one.c -o one $(dpu-pkg-config --cflags --libs dpu)")
    shell.folder.joinpath("bad.json").write_text('{"name":')
    shell.folder.joinpath("less.json").write_text('{"name": "less"}')
    done = shell.run("./one", expect=1, DPU_SIM_PRESET=preset)
    told, refused = done.stderr.splitlines()
    assert told.startswith(f"libdpu: {message}")
    assert refused.endswith("DPU Error (dpu allocation error)")


def test_ranks_compute_side_by_side_when_they_are_asynchronous(shell: Shell, probe: Path) -> None:
    shell.compile_check("times")
    t = times(shell, probe, 256)
    model = TransferModel.preset("common")
    kernel = t["overlap.kernels"] / 4
    expected = model.broadcast(512, 256) + model.launch(64) + kernel
    assert t["overlap.elapsed"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("preset", ["common", "upmem-2021.3-2048dpu"])
def test_transfers_that_overlap_share_the_bus(shell: Shell, probe: Path, preset: str) -> None:
    command = shell.compile_check("bus")
    runs = {shell.run(command, str(probe), DPU_SIM_PRESET=preset).stdout for _ in range(5)}
    firsts = {run.split("threads")[0] + run.split("mixed")[1] for run in runs}
    assert len(firsts) == 1  # whatever the order in which ranks' threads really ran
    t = {name: float(v) for name, v in map(str.split, runs.pop().splitlines())}
    model = TransferModel.preset(preset)
    rest = 1 - model.to_dpus(1024, 128) / model.to_dpus(2048, 128)
    expected = {
        "apart": model.to_dpus(2048, 256),
        "waited": model.to_dpus(1024, 128),
        "beside": model.to_dpus(1024, 128) + rest * model.to_dpus(2048, 64),
    }
    assert {k: t[k] for k in expected} == pytest.approx(expected, rel=1e-9)
    # Threads that wait on their own know nothing of each other until they ask: no faster than one
    # transfer to all, and faster than one after the other.
    assert model.to_dpus(2048, 256) <= t["threads"] < 2 * model.to_dpus(2048, 256)
    assert model.to_wram(8, 256) <= t["callbacks"] < 2 * model.to_wram(8, 256)


def test_the_summary_comes_at_exit(shell: Shell, probe: Path) -> None:
    shell.compile_check("times")
    done = shell.run("./times", str(probe), "3", DPU_SIM_SUMMARY="1")
    assert done.stderr.startswith("libdpu: 3 DPUs: to DPUs ")
    assert done.stderr.count("\n") == 1


def test_a_program_needs_nothing_of_python(shell: Shell, probe: Path) -> None:
    command = shell.compile_check("times")
    tool = shutil.which("env")
    assert tool is not None
    done = shell.run(tool, "-i", command, str(probe), "2")
    assert "launch.cycles" in done.stdout
    assert "python" not in shell.run("ldd", command).stdout.replace("/python3", "")


def test_the_size_of_the_machine_can_be_set(shell: Shell, probe: Path) -> None:
    command = shell.compile_check("times")
    assert shell.run(command, str(probe), "70", expect=None, DPU_SIM_DPUS="64").returncode != 0
    shell.run(command, str(probe), "64", DPU_SIM_DPUS="64")
