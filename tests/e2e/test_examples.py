"""Every example runs as it is printed, and so does the README's code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(code: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    assert " ms" in run([str(path)], tmp_path)


def test_readme_code_runs_and_is_short(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert len([line for line in code.splitlines() if line.strip()]) <= 16
    assert "best is" in run(["-c", code], tmp_path)


def test_readme_commands_exist() -> None:
    text = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for command in ("tune", "test"):
        assert f"make {command}" in text
        assert f"\n{command}:" in makefile
