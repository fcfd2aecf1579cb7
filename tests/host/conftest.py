"""What building and running host programs needs: a shell with the tools, and a DPU program."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_shell import CHECKS, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The DPU program of the checks, for 4 tasklets."""
    folder = tmp_path_factory.mktemp("probe")
    options = ["-O2", "-DNR_TASKLETS=4", "-DSTACK_SIZE_DEFAULT=2600", "-o", "probe"]
    Shell(folder).run("dpu-upmem-dpurte-clang", *options, str(CHECKS / "probe.c"))
    return folder / "probe"
