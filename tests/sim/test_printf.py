"""printf: every conversion as the host's C library has it; others refused, or shown as such."""

from __future__ import annotations

import pytest
from printf_calls import program

from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu
from upmem_sim.errors import CompileError
from upmem_sim.log import read_log


def log_of(text: str, opt: str = "-O2") -> str:
    dpu = Dpu(compile_c(text, stack_bytes=2048, opt=opt))
    dpu.run(10**8)
    return read_log(dpu)


def test_conversions_print_what_the_host_prints() -> None:
    text, expected = program()
    assert log_of(text).split("\n") == expected.split("\n")


def test_a_percent_sign_at_the_end_shifts_nothing() -> None:
    text = '#include <stdio.h>\nint main() { const char *volatile f = "%d 100%"; printf(f, 12); }'
    assert log_of(text) == "12 100%"


@pytest.mark.parametrize("form", ["%a", "%n", "%ls", "%lc", "%q", "%5%", "%", "%Ld", "%hs", "%m"])
@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_a_constant_format_is_checked(form: str, opt: str) -> None:
    text = f'#include <stdio.h>\nint main(int n) {{\n    printf("%d {form}", n, n);\n}}\n'
    with pytest.raises(CompileError) as caught:
        compile_c(text, opt=opt)
    message = str(caught.value)
    assert message.startswith(f"<source>:3: error: printf has no conversion '{form}' on a DPU")


def test_a_format_in_a_variable_is_checked() -> None:
    text = '#include <stdio.h>\nstatic const char f[] = "%d %a";\nint main() { printf(f, 1, 2.0); }'
    with pytest.raises(CompileError, match=r"^<source>:3: error: printf has no conversion '%a'"):
        compile_c(text)
