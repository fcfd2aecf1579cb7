"""What the compiler says of a place in the source: errors, debug lines, and the cache of both."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from upmem_sim.cc import clang, compile_c, ir, ir_text
from upmem_sim.cc.unit import build_unit
from upmem_sim.cli import invoke
from upmem_sim.dpu import Dpu
from upmem_sim.elf import read_elf
from upmem_sim.errors import CompileError, LinkError

SAME = "int main() { return 0; }\n"


def files_of(program: Any) -> set[str]:
    return {line[0] for line in program.lines if line is not None}


@pytest.mark.parametrize("text", [SAME, "long x;\n" + SAME])
def test_equal_sources_in_two_folders_have_their_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Path("a.c").write_text(text)
        assert files_of(compile_c(Path("a.c"))) == {str(tmp_path / name / "a.c")}


def test_objects_keep_the_folder_that_they_were_made_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part").mkdir()
    monkeypatch.chdir(tmp_path / "part")
    Path("a.c").write_text(SAME)
    assert invoke(["cc", "-c", "a.c"]) == 0
    monkeypatch.chdir(tmp_path)
    assert invoke(["cc", "part/a.o", "-o", "whole"]) == 0
    assert files_of(read_elf(Path("whole"))) == {str(tmp_path / "part" / "a.c")}


def test_inline_assembly_is_refused_under_the_name_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for statement, words in (
        ("foo r0, r1", "inline assembly names the register r0: pass it as an operand"),
        ("foo 1, 2", "inline assembly:1: unknown instruction 'foo'"),
    ):
        Path("a.c").write_text(f'int main() {{\n    __asm__ volatile("{statement}");\n}}\n')
        with pytest.raises(CompileError) as caught:
            compile_c(Path("a.c"))
        assert str(caught.value).startswith(f"a.c:2: error: {words}")
        assert str(caught.value).count("error:") == 1


@pytest.mark.parametrize("word", ["_Thread_local", "__thread", "static _Thread_local"])
@pytest.mark.parametrize("head", ["", "long y;"])
def test_variables_of_a_thread_are_refused(word: str, head: str) -> None:
    text = f"{head}{word} int x;\nint main() {{\n    return x++;\n}}\n"
    with pytest.raises(CompileError, match=r"^<source>:3:\d+: error: 'x' is unavailable: not av"):
        compile_c(text)


def test_atomic_variables_of_any_size() -> None:
    text = """#include <stdint.h>
    #include <defs.h>
    #include <attributes.h>
    typedef struct { int a, b, c; } three;
    _Atomic int y;
    _Atomic int64_t z;
    _Atomic three t;
    __host int64_t out[4];
    int main() {
        for (int i = 0; i < 100; i++) { y++; z += 2; }
        three old = t;
        if (me() == 3) t = (three){1, 2, 3};
        out[0] = y, out[1] = z, out[2] = ((three)t).c, out[3] = old.c;
        return 0;
    }
    """
    dpu = Dpu(compile_c(text, nr_tasklets=4))
    dpu.run(10**8)
    assert dpu.read("out", np.int64, 4).tolist()[:3] == [400, 800, 3]


def test_an_undefined_symbol_names_the_line_that_uses_it() -> None:
    text = "int missing(int);\nint main() {\n    return missing(3);\n}\n"
    with pytest.raises(LinkError, match=r"^undefined symbol missing, used in <source>:3$"):
        compile_c(text)


def steps(copies: int) -> int:
    """Lines of Python that run while one block of so many statements is translated."""
    options = clang.Options()
    text = "volatile int a;\nint main() {" + "a = a * a + 7; a ^= a >> 3;" * copies + "}\n"
    module = ir.rewrite(clang.to_ir(text, options), "a.c")
    assembly = clang.to_assembly(module, options)
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        build_unit(assembly, "a.c", ir_text.signatures(module))
    finally:
        sys.settrace(before)
    return count


def test_the_work_is_proportional_to_the_size_of_a_block() -> None:
    assert steps(160) < 4.5 * steps(40)
