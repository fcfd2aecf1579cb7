"""Exported programs: the Python runtime's numbers and cycles, built by tools of the SDK's names."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from atim import Target, hardware, pipeline, runtime, toolchain, workloads
from atim.codegen import Sources
from atim.errors import ToolchainError
from atim.export import Data, write_folder
from atim.schedules import design_space
from upmem_sim.host import places

# name, shape, dtype, sketch, decisions other than the smallest
CASES = [
    ("va", (5000,), "int32", "elementwise", {"dpus_i": 7, "tasklets": 3}),
    ("geva", (1021,), "int8", "elementwise", {"dpus_i": 4, "tasklets": 2}),
    ("red", (100_003,), "int64", "reduce", {"dpus_i": 1, "pieces": 66, "tasklets": 4}),
    ("mtv", (70, 130), "int32", "rows", {"dpus_i": 9, "tasklets": 2}),
    ("mtv", (64, 128), "float32", "rows_split", {"dpus_i": 4, "pieces": 4, "host_threads": 2}),
    ("gemv", (33, 257), "int64", "rows_split", {"dpus_i": 3, "pieces": 3, "tasklets": 2}),
    ("ttv", (6, 10, 40), "int32", "rows", {"dpus_i": 2, "dpus_j": 5}),
    ("mmtv", (5, 12, 64), "int32", "rows_split", {"dpus_i": 5, "dpus_j": 2, "pieces": 2}),
]
SHAPES = {1: (1000,), 2: (40, 36), 3: (5, 12, 40)}
CASES += [
    (name, SHAPES.get(len(row.sizes), (6,) * len(row.sizes)), row.dtypes[0], "", {})
    for name, row in workloads.WORKLOADS.items()
    if not any(case[0] == name for case in CASES)
]


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drop-in tools in front on PATH, and no SDK."""
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{places.bin_dir()}{os.pathsep}{os.environ['PATH']}")


def compiled(
    name: str, shape: tuple[int, ...], dtype: str, sketch_name: str, chosen: dict[str, int]
) -> tuple[workloads.Workload, Sources, Target]:
    workload, target = workloads.get(name, shape, dtype), Target(dpus=128)
    sketches = {s.name: s for s in design_space(workload.func, target, workload.resident)}
    sketch = sketches[sketch_name] if sketch_name else next(iter(sketches.values()))
    decisions = {d.name: min(d.values) for d in sketch.decisions}
    decisions |= {name: value for name, value in chosen.items() if name in decisions}
    return workload, pipeline.compile(sketch, decisions, target), target


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[2]}-{c[3]}")
def test_host_program_and_runtime_agree(case: tuple, rng: np.random.Generator) -> None:
    workload, sources, target = compiled(*case)
    arrays, resident = workload.inputs(rng), workload.resident
    simulated = runtime.run(toolchain.build(sources, target), arrays, resident=resident)
    on_hardware = replace(toolchain.build(sources, target), target=target.on_hardware())
    measured = runtime.run(on_hardware, arrays, resident=resident)
    assert simulated.outputs is not None
    assert measured.outputs is not None
    for name, values in simulated.outputs.items():
        assert measured.outputs[name].tobytes() == values.tobytes()
    assert measured.counters["cycles"] == simulated.counters["cycles"]
    # h2d and d2h have the host's real copies in them, which are not modelled
    assert measured.timing.kernel == pytest.approx(simulated.timing.kernel, abs=1e-9)
    assert measured.timing.h2d >= simulated.timing.h2d - 2e-9
    assert measured.timing.d2h >= simulated.timing.d2h - 2e-9


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    workload, sources, _ = compiled("mtv", (30, 50), "int32", "rows_split", {"pieces": 3})
    arrays = workload.inputs(rng)
    data = Data(arrays, {"y": workload.reference(arrays)})
    write_folder(tmp_path, sources, name="mtv", title="MTV", resident=workload.resident, data=data)
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True)


def test_folder_builds_without_warnings_runs_and_checks(folder: Path) -> None:
    built = make(folder, "CFLAGS=-std=c11 -O1 -fwrapv -Wall -Wextra -Werror")
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    done = subprocess.run(["./check", "-r", "2"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("right")
    data = np.fromfile(folder / "data/y.bin", np.int32)
    data[7] += 1
    data.tofile(folder / "data/y.bin")
    done = subprocess.run(["./check", "-r", "1"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.rstrip().endswith("WRONG")
    (folder / "data/x.bin").write_bytes(b"short")
    done = subprocess.run(["./check"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "check: shorter than the tensor: x.bin\n")
    (folder / "data/x.bin").unlink()
    done = subprocess.run(["./check"], cwd=folder, capture_output=True, text=True)
    assert "cannot be opened, see README.md for what it holds: data/x.bin" in done.stderr
    assert "| `x.bin` | input, int32 50 |" in (folder / "README.md").read_text()
    done = subprocess.run(["./check", "-h"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: check [-r repeats]")


OLD_DPU_H = """
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef enum _dpu_error_t { DPU_OK = 0 } dpu_error_t;
typedef enum _dpu_xfer_t { DPU_XFER_TO_DPU, DPU_XFER_FROM_DPU } dpu_xfer_t;
typedef enum _dpu_xfer_flags_t { DPU_XFER_DEFAULT } dpu_xfer_flags_t;
typedef enum _dpu_launch_policy_t { DPU_ASYNCHRONOUS, DPU_SYNCHRONOUS } dpu_launch_policy_t;
struct dpu_program_t;
struct dpu_set_t { int kind; void *dpu; };
struct dpu_set_dpu_iterator_t { uint32_t count; bool has_next; struct dpu_set_t next; };
struct dpu_set_dpu_iterator_t dpu_set_dpu_iterator_from(struct dpu_set_t *set);
void dpu_set_dpu_iterator_next(struct dpu_set_dpu_iterator_t *iterator);
const char *dpu_error_to_string(dpu_error_t status);
dpu_error_t dpu_alloc(uint32_t n, const char *profile, struct dpu_set_t *set);
dpu_error_t dpu_free(struct dpu_set_t set);
dpu_error_t dpu_load(struct dpu_set_t set, const char *path, struct dpu_program_t **program);
dpu_error_t dpu_launch(struct dpu_set_t set, dpu_launch_policy_t policy);
dpu_error_t dpu_prepare_xfer(struct dpu_set_t set, void *buffer);
dpu_error_t dpu_push_xfer(struct dpu_set_t set, dpu_xfer_t way, const char *symbol,
                          uint32_t offset, size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_broadcast_to(struct dpu_set_t set, const char *symbol, uint32_t offset,
                             const void *source, size_t length, dpu_xfer_flags_t flags);
#define DPU_CHECK(s, on_error) do { dpu_error_t e_ = (s); if (e_ != DPU_OK) { \\
    fprintf(stderr, "%s", dpu_error_to_string(e_)); on_error; } } while (0)
#define DPU_FOREACH(set, one, i) \\
    for (struct dpu_set_dpu_iterator_t it_ = dpu_set_dpu_iterator_from(&set); \\
         (i) = it_.count, it_.has_next && ((one) = it_.next, true); dpu_set_dpu_iterator_next(&it_))
"""


@pytest.mark.parametrize("case", CASES[:5], ids=lambda c: f"{c[0]}-{c[3]}")
def test_host_text_needs_no_more_than_the_oldest_interface(case: tuple, tmp_path: Path) -> None:
    """What SDK 2021.3 declares, and nothing of the simulator, is enough."""
    workload, sources, _ = compiled(*case)
    write_folder(tmp_path, sources, name=workload.name, title="", resident=workload.resident)
    (tmp_path / "dpu.h").write_text(OLD_DPU_H)
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
    flags = ["-std=c11", "-O1", *strict, "-I.", "-c"]
    for file in ("host.c", "check.c"):
        done = subprocess.run(
            [*toolchain.find_compiler(), *flags, file], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolchainError, match="dpu-upmem-dpurte-clang, dpu-pkg-config: not in"):
        hardware.find_tools()
