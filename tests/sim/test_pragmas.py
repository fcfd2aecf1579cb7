"""Unroll pragmas with macros, and C lines of what headers inline, also after preprocessing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from upmem_sim.cc import compile_c
from upmem_sim.disasm import disassemble
from upmem_sim.dpu import Dpu
from upmem_sim.errors import CompileError
from upmem_sim.program import Program

LOOP = """
__attribute__((noinline)) void fill(int *p) {{
{pragma}
    for (int i = 0; i < 100; i++) p[i] = i;
}}
long kept; /* makes preprocessing a run of its own */
int main() {{ int q[100]; fill(q); kept = q[3]; return 0; }}
"""


def stores(program: Program) -> int:
    """Stores in `fill`: the unroll factor."""
    body = disassemble(program).split("\nfill:\n")[1].split("jump r23")[0]
    return len(re.findall(r"\bsw ", body))


@pytest.mark.parametrize(
    ("define", "pragma", "factor"),
    [
        ("#define TIMES 4", "#pragma unroll(TIMES)", 4),
        ("#define TIMES 4", "#pragma unroll TIMES", 4),
        ("#define TIMES 2 + 2", "  #  pragma GCC unroll TIMES", 4),
        ("#define TIMES(n) (n / 2)", "#pragma unroll(TIMES(10))", 5),
        ("#define TIMES 4", "#pragma clang loop unroll_count(TIMES)", 4),
        ("", "#pragma nounroll", 1),
    ],
)
def test_macros_in_pragmas(define: str, pragma: str, factor: int) -> None:
    assert stores(compile_c(define + LOOP.format(pragma=pragma), stack_bytes=2048)) == factor


def test_a_macro_of_a_header(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#define TIMES 5\n")
    source = tmp_path / "k.c"
    source.write_text('#include "own.h"' + LOOP.format(pragma="#pragma unroll(TIMES)"))
    assert stores(compile_c(source, stack_bytes=2048)) == 5


def test_an_unknown_macro_is_an_error() -> None:
    with pytest.raises(CompileError, match="TIMES"):
        compile_c(LOOP.format(pragma="#pragma unroll(TIMES)"))


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_inlined_header_code_has_the_callers_line(opt: str, tmp_path: Path) -> None:
    source = tmp_path / "k.c"
    source.write_text(
        "#include <mram.h>\n__mram_noinit unsigned char m[64];\n__dma_aligned char w[64];\n"
        "static void fetch(unsigned n) {\n    mram_read(m, w, n);\n}\n"
        "__host unsigned size;\nint main() {\n    fetch(size);\n    return 0;\n}\n"
    )
    program = compile_c(source, opt=opt)
    lines = {line for file, line in filter(None, program.lines) if Path(file).name == "k.c"}
    assert 5 in lines
    assert not [file for file, _ in filter(None, program.lines) if file.endswith("mram.h")]
    dpu = Dpu(program)
    dpu.write("size", np.uint32(16))
    dpu.run()
