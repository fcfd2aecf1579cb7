"""dpu_log_read of libdpu prints what the Python side reads."""

from __future__ import annotations

from host_shell import Shell
from printf_calls import program

from upmem_sim.cc import compile_c
from upmem_sim.elf import write_elf


def test_conversions_print_what_the_host_prints(shell: Shell) -> None:
    text, expected = program()
    (shell.folder / "task").write_bytes(write_elf(compile_c(text, stack_bytes=2048)))
    printed = shell.run(shell.compile_check("log"), "task").stdout
    header, _, log = printed.partition("\n")
    assert header.startswith("=== DPU#0x")
    assert log.split("\n") == expected.split("\n")
