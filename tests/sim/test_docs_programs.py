"""What docs/dpu-programs.md shows works as it stands there: its C, its commands, its Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from upmem_sim import SimError, compile_c
from upmem_sim.cli import invoke
from upmem_sim.dpu import CHECKS

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


@pytest.mark.parametrize("page", ["README.md", "docs/dpu-programs.md", "docs/simulator.md"])
def test_checks_are_those_that_there_are(page: str) -> None:
    text = (PAGE.parents[1] / page).read_text()
    asked = re.findall(r"--check (\w+)", text)
    for names in re.findall(r"checks=\[(.*?)\]", text):
        asked += re.findall(r'"(\w+)"', names)
    assert asked
    assert set(asked) <= set(CHECKS)
    assert set(re.findall(r"--check \w+ +# or (\w+)", text)) <= set(CHECKS)


def mathematics() -> list[str]:
    """Declarations of the functions that the page says there are."""
    found = re.search(
        r"`float sqrtf\(float\);`\):\n(.*?) for both types, (.*?)\. ", PAGE.read_text(), re.S
    )
    assert found is not None
    both, single = (re.findall(r"`(\w+)`", part) for part in found.groups())
    second = {"fmin": "T", "fmax": "T", "fmod": "T", "fma": "T, T", "ldexp": "int", "scalbn": "int"}
    out = [f"float {name}(float)" for name in single]
    for name in both:
        whole = ", ".join(["T", *([second[name]] if name in second else [])])
        out.append(f"double {name}({whole})".replace("T", "double"))
        out.append(f"float {name}f({whole})".replace("T", "float"))
    return out


def test_the_mathematics_is_there() -> None:
    functions = mathematics()
    assert len(functions) == 28
    uses = []
    for text in functions:
        name, takes = re.fullmatch(r"\w+ (\w+)\((.*)\)", text).groups()  # type: ignore[union-attr]
        uses.append(f"x = {name}({', '.join('x' for _ in takes.split(','))});")
    source = ";".join(functions) + "; volatile double x; int main(void) { " + " ".join(uses)
    compile_c(source + " return 0; }")


@pytest.mark.parametrize(
    "source",
    [
        "#include <math.h>",
        "#include <setjmp.h>",
        "#include <stdatomic.h>",
        "#include <stdlib.h>\nlong n(void) { return strtol(0, 0, 0); }",
        "__int128 x;",
        "_Thread_local int x; int main(void) { return x; }",
    ],
)
def test_what_is_absent_is_refused(source: str) -> None:
    with pytest.raises(SimError) as caught:
        compile_c(source)
    assert "\n" not in str(caught.value)


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
