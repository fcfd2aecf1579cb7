"""Runs commands with the SDK's tool names on PATH."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from upmem_sim.host import places

CHECKS = Path(__file__).parent / "checks"


@dataclass(frozen=True)
class Shell:
    """Runs commands with the tools on PATH; the first directory that PATH had comes before them."""

    folder: Path

    def run(
        self, *command: str, expect: int | None = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """The finished process; its exit status must be `expect` unless that is None."""
        path = f"{os.environ['PATH']}:{places.bin_dir()}"
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, "PATH": path, **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert expect is None or done.returncode == expect, done.stdout + done.stderr
        return done

    def compile_check(self, name: str, flags: Sequence[str] = ("-std=gnu11",)) -> str:
        """Builds checks/NAME.c or .cpp; the command that runs it."""
        (source,) = CHECKS.glob(f"{name}.c*")
        options = f"{places.cflags()} {places.libs()}".split()
        warnings = ["-Wall", "-Wextra", "-Werror", "-pthread"]
        compiler = "g++" if source.suffix == ".cpp" else "gcc"
        self.run(compiler, *flags, *warnings, str(source), "-o", name, *options)
        return f"./{name}"
