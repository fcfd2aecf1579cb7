"""scripts/setup.py: what it installs, and what it tells while it works."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETUP = runpy.run_path(str(ROOT / "scripts/setup.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_extras_bring_what_they_name() -> None:
    alone, tests = SETUP["requirements"](set()), SETUP["requirements"]({"test"})
    assert alone == PROJECT["dependencies"]
    assert set(PROJECT["optional-dependencies"]["offload"]) <= set(tests)
    assert any(line.startswith("pytest>") for line in tests)
    assert not any(line.startswith("atim") for line in tests)


def test_a_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with SETUP["step"]("compiling"):
        pass
    assert capsys.readouterr().err == "setup: compiling ... 0 s\n"
    with pytest.raises(RuntimeError), SETUP["step"]("compiling"):
        raise RuntimeError
    assert capsys.readouterr().err == "setup: compiling ... failed\n"
