"""Programs as an SDK user writes them build with their own Makefiles, run, and check themselves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from host_shell import Shell

PROGRAMS = Path(__file__).parent / "programs"
SAYS = {
    "va": "va: Outputs are equal",
    "reduction": "reduction: 74985224955000",
    "gemv": "gemv: 2 ranks, 70 DPUs, 0 errors",
    "histogram": "histogram: 0 wrong",
    "scan": "scan: 0 wrong of 3072",
    "selection": "=== DPU#0x1 ===\nkept 1185 of 1777\nselection: 0 wrong",
    "transposition": "transposition: 0 wrong",
    "mlp": "mlp: 0 wrong",
    "bfs": "=== DPU#0x4 ===\nlevel 1: 0 edges from node 832 on\nbfs: 0 wrong of 1003",
    "search": "search: 0 wrong on 64 DPUs",
    "spmv": "spmv: 0 wrong of 1001",
    "alignment": "alignment: 0 wrong of 2",
    "locks": "locks: 0 wrong",
    "clusters": "clusters: 0 wrong after 2 steps on 70 DPUs",
    "series": "series: nearest at 1357, distance 9",
}


@pytest.mark.parametrize("name", SAYS)
def test_program_builds_and_is_right(shell: Shell, name: str) -> None:
    shutil.copytree(PROGRAMS / name, shell.folder, dirs_exist_ok=True)
    done = shell.run("make", "test")
    assert SAYS[name] in done.stdout
    assert "warning" not in done.stderr


def test_every_program_is_listed() -> None:
    assert {p.name for p in PROGRAMS.iterdir()} == set(SAYS)


@pytest.mark.parametrize("tasklets", [1, 24])
def test_makefile_variables_reach_the_program(shell: Shell, tasklets: int) -> None:
    shutil.copytree(PROGRAMS / "va", shell.folder, dirs_exist_ok=True)
    done = shell.run("make", "test", f"NR_TASKLETS={tasklets}", "NR_DPUS=66")
    assert SAYS["va"] in done.stdout
