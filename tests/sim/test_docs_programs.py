"""What docs/dpu-programs.md shows works as it stands there: its C, its commands, its Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from upmem_sim.cli import invoke

PAGE = Path(__file__).parents[2] / "docs" / "dpu-programs.md"


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert found is not None
    return found[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sum.c").write_text(block("c"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_python_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), str(PAGE), "exec"), {})
    assert "sum of 4096 numbers: 8386560" in capsys.readouterr().out


def test_the_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "n.bin").write_bytes(np.uint32(512).tobytes())
    (folder / "numbers.bin").write_bytes(np.full(512, 3, np.int32).tobytes())
    for line in block("sh").splitlines():
        program, *arguments = shlex.split(line)
        assert program == "upmem-sim"
        assert invoke(arguments) == 0, line
    out = capsys.readouterr().out
    assert "sum of 512 numbers: 1536" in out
    assert (folder / "sum.json").stat().st_size > 1000
