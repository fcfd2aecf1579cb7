"""Steps of the compiler command: objects and their link, assembly text, preprocessing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from upmem_sim.asm import assemble
from upmem_sim.cc import clang, compile_unit, library
from upmem_sim.cli import invoke
from upmem_sim.dpu import Dpu
from upmem_sim.elf import read_elf
from upmem_sim.unit_text import unit_text

MAIN = """#include <attributes.h>
#include "shared.h"
__host int result;
int main() { result = twice(FACTOR) + *table[1]; return 0; }
"""
PART = """#include "shared.h"
static int one = 10, two = 20;
int *const table[2] = {&one, &two};
int twice(int x) { return 2 * x; }
"""
Run = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shared.h").write_text("extern int *const table[2];\nint twice(int x);\n")
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "part.c").write_text(PART)
    return tmp_path


@pytest.fixture
def cc(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str, status: int = 0) -> str:
        found = invoke(["cc", *arguments])
        out, err = capsys.readouterr()
        assert found == status, err
        return out + err

    return call


def result(program: Path) -> int:
    dpu = Dpu(read_elf(program))
    dpu.run()
    return int(dpu.read("result", np.int32)[0])


def test_objects_are_linked(cc: Run, folder: Path) -> None:
    cc("-c", "main.c", "-DFACTOR=4", "-o", "one.o")
    cc("-O3", "-c", "part.c")
    cc("one.o", "part.o", "-o", "whole", "-DNR_TASKLETS=2")
    assert result(folder / "whole") == 28
    assert read_elf(folder / "whole").nr_tasklets == 2
    cc("one.o", "part.c", "-o", "mixed")
    assert result(folder / "mixed") == 28


def test_assembly_text_is_compiled_again(cc: Run, folder: Path) -> None:
    cc("-S", "main.c", "part.c", "-DFACTOR=5")
    assert "\t.loc 1 4 0\n" in (folder / "main.s").read_text()
    cc("main.s", "part.s", "-o", "whole")
    assert result(folder / "whole") == 30
    lines = {
        line for file, line in filter(None, read_elf(folder / "whole").lines) if "main.c" in file
    }
    assert 4 in lines


def test_preprocessed_text(cc: Run, folder: Path) -> None:
    assert "twice(6)" in cc("-E", "main.c", "-DFACTOR=6")
    assert cc("-E", "main.c", "-DFACTOR=6", "-o", "main.i") == ""
    assert "twice(6)" in (folder / "main.i").read_text()


def test_mistakes(cc: Run, folder: Path) -> None:
    assert "-o with -c: 2 sources" in cc("-c", "main.c", "part.c", "-o", "x.o", status=1)
    assert "FACTOR" in cc("-c", "main.c", status=1)
    (folder / "bad.o").write_bytes(b"\x7fELF")
    assert "bad.o: not an object of this compiler" in cc("bad.o", status=1)


def test_every_unit_of_the_library_survives_its_text() -> None:
    for source in sorted(library.RT_DIR.glob("*.[cs]")):
        unit = compile_unit(source, clang.Options(debug=False))
        again = assemble(unit_text(unit), unit.name)
        assert unit_text(again) == unit_text(unit), source.name
        assert again.globals == unit.globals
