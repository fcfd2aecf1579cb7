"""The upmem-sim command: what it prints, and one line for each mistake."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from upmem_sim import cc_options
from upmem_sim.asm import assemble
from upmem_sim.cli import invoke
from upmem_sim.dpu import Dpu
from upmem_sim.elf import read_elf, write_elf
from upmem_sim.errors import CompileError, SimError
from upmem_sim.link import link
from upmem_sim.log import decode_log, read_log

LOOP = """
    .section .text.__bootstrap
    .globl __bootstrap
__bootstrap:
    move r0, 10
top:
    add r0, r0, -1, nz, top
    lw r1, zero, counter
    stop
    .section .dpu_host
counter: .word 0
"""
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = invoke([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert err.count("\n") == (0 if status == 0 else 1)
        return status, out, err

    return call


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    path = tmp_path / "loop"
    path.write_bytes(write_elf(link([assemble(LOOP, "loop.s")])))
    return path


def test_run_prints_what_it_took(cli: Cli, loop: Path) -> None:
    status, out, _ = cli("run", loop)
    assert status == 0
    assert "instructions  13\n" in out
    assert f"cycles        {12 * 11 + 1}\n" in out
    assert "time          0.000380 ms" in out
    _, out, _ = cli("run", loop, "--dpus", 3)
    assert "instructions  39\n" in out


def test_disasm_names_code_and_variables(cli: Cli, loop: Path) -> None:
    status, out, _ = cli("disasm", loop)
    assert status == 0
    assert "add r0, r0, -1, nz, top" in out
    assert "lw r1, zero, 8" in out
    assert out.splitlines()[-2].endswith("// 0x0002 counter")
    assert "stop" in out.splitlines()[-1]


def test_cc_compiles_to_a_file_that_runs(cli: Cli, tmp_path: Path) -> None:
    source, program = tmp_path / "task.c", tmp_path / "task"
    source.write_text("#include <defs.h>\n__host int n;\nint main() { n = N; return 0; }\n")
    assert (
        cli("cc", source, "-o", program, "-DNR_TASKLETS=3", "-DN=7", "-O2", "-Wall", "-g")[0] == 0
    )
    built = read_elf(program)
    assert built.nr_tasklets == 3
    assert built.symbols["n"].section == ".data.__sys_host"
    dpu = Dpu(built)
    dpu.run()
    assert dpu.read("n", "<i4").tolist() == [7]
    assert cli("run", program)[0] == 0


def test_options() -> None:
    line = "a.c b.s -o out -D X=1 -DY -DNR_TASKLETS=2 -DSTACK_SIZE_DEFAULT=256 -Iinc -I inc2 -O3"
    line += " -DSTACK_SIZE_TASKLET_1=512 -std=gnu11 -flto -Werror -ffunction-sections -UX -mcpu=v1A"
    options = cc_options.parse(line.split())
    assert [str(s) for s in options.sources] == ["a.c", "b.s"]
    assert (str(options.output), options.level, options.werror) == ("out", "-O3", True)
    assert (options.nr_tasklets, options.stacks) == (2, (256, 512))
    assert [str(d) for d in options.include_dirs] == ["inc", "inc2"]
    assert options.defines["Y"] == "1"
    assert "X" not in options.defines
    assert cc_options.parse(["a.c", "-Wl,--defsym=NR_TASKLETS=5"]).nr_tasklets == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "no source file given"),
        ("a.c -frob", "unknown option -frob"),
        ("a.c -pg", "option -pg: profiling builds are not made"),
        ("a.c -o", "option -o needs a value"),
        ("a.c -DNR_TASKLETS=x+1", "-DNR_TASKLETS=x+1: must be a plain decimal number"),
        ("a.c -DNR_TASKLETS=25", "NR_TASKLETS: 25, limit 1 to 24 (v1A)"),
        ("a.c -DNR_TASKLETS=17 -mcpu=v1B", "NR_TASKLETS: 17, limit 1 to 16 (v1B)"),
        ("a.c -mcpu=z80", "option -mcpu=z80: chips are v1A and v1B"),
        ("a.c -DSTACK_SIZE_DEFAULT=1k", "-DSTACK_SIZE_DEFAULT=1k: must be"),
    ],
)
def test_bad_options(arguments: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        cc_options.parse(arguments.split())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frob"], "No such command 'frob'"),
        (["run"], "Missing argument 'PROGRAM'"),
        (["run", "missing"], "cannot read missing: No such file or directory"),
        (["run", __file__], "not an ELF file"),
        (["disasm", __file__], "not an ELF file"),
        (["run", "SOURCE"], "not an ELF file; make a program of it first: upmem-sim cc "),
        (["profile", "SOURCE"], "x.c -o x"),
        (["run", "LOOP", "--dpus", "5000"], "dpus: 5000, limit 1 to 2560"),
        (["run", "LOOP", "--dpus", "-1"], "dpus: -1, limit 1 to 2560"),
        (["run", "LOOP", "--dpus", "x"], "'x' is not a valid integer"),
        (["run", "LOOP", "--max-cycles", "5"], "not finished after 5 cycles"),
        (["cc", "missing.c"], "missing.c: no such file"),
        (["cc", "-DNR_TASKLETS=0", __file__], "NR_TASKLETS: 0, limit 1 to 24"),
    ],
)
def test_mistakes_are_one_line(cli: Cli, loop: Path, arguments: list[str], message: str) -> None:
    source = loop.with_name("x.c")
    source.write_text("int main(void) { return 0; }")
    files = {"LOOP": loop, "SOURCE": source}
    status, out, err = cli(*[files.get(a, a) for a in arguments])
    assert status != 0
    assert out == ""
    assert err.startswith("upmem-sim: ")
    assert message in err


def test_unwritable_output(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "a.s"
    source.write_text(".text\n.globl main\nmain: jump r23\n")
    status, _, err = cli("cc", source, "-o", tmp_path / "no" / "such" / "folder")
    assert status != 0
    assert "No such file or directory" in err


def message(template: str, *arguments: bytes) -> bytes:
    raw = template.encode() + b"\0" + b"".join(arguments)
    return raw + bytes(-len(raw) % 8)


def test_printed_text_is_decoded() -> None:
    log = message(
        "%s%d%s%5.2f%s", b"n=\0", struct.pack("<i", -3), b", x=\0", struct.pack("<d", 1.5), b"\n\0"
    )
    log += message(
        "%s%c%s%lu|%#x|%-4u|%p", b"c \0", b"Z", b" \0", struct.pack("<QIII", 2**40, 255, 7, 64)
    )
    assert decode_log(log) == "n=-3, x= 1.50\nc Z 1099511627776|0xff|7   |0x00000040"
    with pytest.raises(SimError, match="damaged message"):
        decode_log(message("%s%d", b"x\0")[:-2] + b"xx")


def test_log_of_a_program() -> None:
    text = (
        LOOP
        + "\n__stdout_buffer_state: .word 16, 0\n.section .mram.noinit\n__stdout_buffer: .zero 64"
    )
    dpu = Dpu(link([assemble(text, "log.s")]))
    dpu.write("__stdout_buffer", message("%s", b"hello\n\0"))
    assert read_log(dpu) == "hello\n"
    dpu.write("__stdout_buffer_state", struct.pack("<II", 8, 1))
    with pytest.raises(SimError, match="more than 64 bytes printed"):
        read_log(dpu)
    assert read_log(Dpu(link([assemble(LOOP, "loop.s")]))) == ""


def test_a_folder_is_no_source(cli: Cli, tmp_path: Path) -> None:
    assert cli("cc", tmp_path) == (1, "", f"upmem-sim: {tmp_path}: a folder\n")
    missing = tmp_path / "missing.c"
    assert cli("cc", missing) == (1, "", f"upmem-sim: {missing}: no such file\n")


@pytest.mark.parametrize("text", ["=", "=file", "symbol=", "symbol"])
def test_an_input_is_a_symbol_and_a_file(cli: Cli, loop: Path, text: str) -> None:
    message = f"upmem-sim: --input {text}: must be SYMBOL=FILE\n"
    assert cli("run", loop, "--input", text) == (1, "", message)


@pytest.mark.parametrize("number", ["24", "30", "x", ""])
def test_stacks_of_tasklets_that_there_are_not_are_refused(number: str) -> None:
    with pytest.raises(CompileError, match="a DPU has tasklets 0 to 23"):
        cc_options.parse([f"-DSTACK_SIZE_TASKLET_{number}=512", "a.c"])
    assert cc_options.parse(["-DSTACK_SIZE_TASKLET_23=512", "a.c"]).stacks == (1024,)


def test_an_output_that_is_full_is_named(loop: Path) -> None:
    call = "from upmem_sim.cli import main; main()"
    command = [sys.executable, "-c", call, "run", str(loop)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.stderr == "upmem-sim: output: No space left on device\n"
    assert done.returncode == 1
