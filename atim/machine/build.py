"""Builds this package's small C programs with the tools that are found, and runs them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from atim.export import DPU_FLAGS, HOST_FLAGS, HOST_LIBRARIES
from atim.hardware import Tools, call

__all__ = ["compile_kernel", "run_program"]

FOLDER = Path(__file__).parent


def compile_kernel(tools: Tools, source: str, out: Path) -> None:
    """A DPU program of this folder, for one tasklet. Raises ToolchainError."""
    flags = [*DPU_FLAGS, "-DNR_TASKLETS=1"]
    call([tools.dpu_compiler, *flags, "-o", str(out), str(FOLDER / source)])


def run_program(
    tools: Tools, source: str, arguments: Sequence[str] = (), kernel: str | None = None
) -> str:
    """What a program of this folder prints; `kernel` is compiled for one tasklet, and its path is
    the program's first argument. Raises ToolchainError and HardwareError."""
    with tempfile.TemporaryDirectory(prefix="atim-") as work:
        built = Path(work) / "program"
        compiler, *language = tools.host_compiler
        files = [*language, str(FOLDER / source), *(["-x", "none"] if language else [])]
        options = [*tools.host_options, *HOST_LIBRARIES]
        call([compiler, *HOST_FLAGS, "-o", str(built), *files, *options])
        given = list(arguments)
        if kernel is not None:
            dpu = Path(work) / "kernel.dpu"
            compile_kernel(tools, kernel, dpu)
            given = [str(dpu), *given]
        return call([str(built), *given], runs=True)
