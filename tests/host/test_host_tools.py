"""The SDK's tool names, `upmem-sim config`, and the headers in every language they are for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from host_shell import Shell

from upmem_sim import cli
from upmem_sim.elf import read_elf
from upmem_sim.host import places

PLAIN = "#include <defs.h>\n__host int x = F;\nint main(void) { x = (int)me(); return 0; }\n"
CLANG = "dpu-upmem-dpurte-clang"


@pytest.mark.parametrize(
    "language", ["-std=c99", "-std=c11", "-std=gnu17", "-std=c2x", "-xc++ -std=c++11"]
)
def test_headers_are_free_of_warnings(shell: Shell, language: str) -> None:
    refusing = {"dpu_fifo.h", "dpu_bank_interface_pmc.h"}  # of another chip
    names = sorted({path.name for path in places.INCLUDE_DIR.glob("*.h")} - refusing)
    for name in names:
        shell.folder.joinpath("one.c").write_text(f"#include <{name}>\n#include <{name}>\n")
        options = [*language.split(), "-Wall", "-Wextra", "-Werror", places.cflags()]
        shell.run("gcc", *options, "-fsyntax-only", "one.c")
    assert {"dpu.h", "dpu_log.h", "dpu_management.h", "dpu_types.h", "dpu_sim.h"} <= set(names)


def test_pkg_config(shell: Shell) -> None:
    both = shell.run("dpu-pkg-config", "--cflags", "--libs", "dpu").stdout.split()
    assert both[0] == f"-I{places.INCLUDE_DIR}"
    assert both[-1] == "-ldpu"
    version = shell.run("dpu-pkg-config", "--modversion", "dpu").stdout
    assert version == "2025.1.0\n"
    assert shell.run("dpu-pkg-config", "--exists", "dpu").stdout == ""
    wrong = shell.run("dpu-pkg-config", "--libs", "gpu", expect=1)
    assert wrong.stderr == "dpu-pkg-config: package gpu is unknown, there is only dpu\n"
    assert "--bogus is unknown" in shell.run("dpu-pkg-config", "--bogus", "dpu", expect=1).stderr


def test_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["config", "--cflags", "--libs"]) == 0
    assert capsys.readouterr().out == f"{places.cflags()} {places.libs()}\n"
    assert cli.invoke(["config", "--bin-dir"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert all((folder / tool).is_file() for tool in places.TOOLS)
    assert cli.invoke(["config"]) == cli.USAGE


def test_one_call_from_source_to_program(shell: Shell) -> None:
    shell.folder.joinpath("a.c").write_text(PLAIN)
    options = ["-g", "-O2", "-Wall", "-Wextra", "-std=c99", "-flto", "-DF=3", "-mcpu=v1A"]
    options += ["-D", "NR_TASKLETS=5", "-I.", "-lm"]
    shell.run(CLANG, *options, "a.c", "-o", "a.bin")
    program = read_elf(shell.folder / "a.bin")
    assert program.nr_tasklets == 5
    assert program.wram[program.symbols["x"].address] == 3
    shell.run(CLANG, "-DF=1", "a.c")
    assert read_elf(shell.folder / "a.out").nr_tasklets == 1


def test_objects_are_linked_with_the_options_of_the_link(shell: Shell) -> None:
    shell.folder.joinpath("a.c").write_text(PLAIN.replace("me()", "twice(F)"))
    shell.folder.joinpath("a.h").write_text("int twice(int);\n")
    shell.folder.joinpath("b.c").write_text('#include "a.h"\nint twice(int v) { return v + v; }\n')
    shell.run(CLANG, "-O2", "-DF=21", "-Wall", "-c", "b.c")
    text = shell.folder.joinpath("a.c").read_text()
    shell.folder.joinpath("a.c").write_text('#include "a.h"\n' + text)
    shell.run(CLANG, "-O2", "-DF=21", "-MMD", "-MF", "a.d", "-c", "-o", "sub.o", "a.c")
    shell.folder.joinpath("a.c").unlink()
    shell.run(CLANG, "-DNR_TASKLETS=2", "-DSTACK_SIZE_DEFAULT=256", "b.o", "sub.o", "-o", "p")
    program = read_elf(shell.folder / "p")
    assert program.nr_tasklets == 2
    assert program.symbols["STACK_SIZE_TASKLET_1"].address == 256


MISTAKES = [
    (["missing.c"], "missing.c: no such file"),
    (["a.c", "-DNR_TASKLETS=25"], "NR_TASKLETS: 25, limit 1 to 24"),
    (["-c", "a.c", "a.c", "-o", "x.o"], "-o with -c: 2 sources, limit exactly 1"),
    (["text.o"], "text.o: not an object of this compiler"),
    (["-c", "a.c"], "use of undeclared identifier 'F'"),
    (["a.c", "-DF=0", "-o", "no/such/folder/x"], "No such file or directory"),
    ([], "no source file given"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_are_one_line(shell: Shell, arguments: list[str], message: str) -> None:
    shell.folder.joinpath("a.c").write_text(PLAIN)
    shell.folder.joinpath("text.o").write_text("hello")
    done = shell.run(CLANG, *arguments, expect=1)
    assert done.stderr.startswith(f"{CLANG}: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_preprocessing_and_version(shell: Shell) -> None:
    shell.folder.joinpath("a.c").write_text(PLAIN)
    assert "__host" not in shell.run(CLANG, "-E", "-DF=77", "a.c").stdout
    assert "upmem_sim" in shell.run(CLANG, "--version").stdout


CMAKE = """
cmake_minimum_required(VERSION 3.15...3.30)
project(both C)
if(DPU)
  include("$ENV{UPMEM_HOME}/share/upmem/cmake/dpu.cmake")
  set(CMAKE_C_FLAGS_RELEASE "-g0 -O3 -flto=thin")
  add_executable(task task.c)
  target_compile_definitions(task PUBLIC NR_TASKLETS=7)
  target_link_options(task PUBLIC -DNR_TASKLETS=7)
else()
  include("$ENV{UPMEM_HOME}/share/upmem/cmake/include/host/DpuHost.cmake")
  add_executable(plain host.c)
  target_include_directories(plain PUBLIC ${DPU_HOST_INCLUDE_DIRECTORIES})
  target_link_directories(plain PUBLIC ${DPU_HOST_LINK_DIRECTORIES})
  target_link_libraries(plain ${DPU_HOST_LIBRARIES})
  set(PKG_CONFIG_EXECUTABLE "dpu-pkg-config")
  find_package(PkgConfig REQUIRED)
  pkg_search_module(DPU REQUIRED IMPORTED_TARGET dpu)
  add_executable(packaged host.c)
  target_link_libraries(packaged PRIVATE PkgConfig::DPU)
endif()
"""
HOST = """
#include <dpu.h>
int main(void) {
    struct dpu_set_t set, dpu;
    int x;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, "dpu/task", NULL));
    DPU_FOREACH(set, dpu) { DPU_ASSERT(dpu_copy_from(dpu, "x", 0, &x, sizeof x)); }
    printf("%d\\n", x);
    return 0;
}
"""


def test_home_for_builds_with_upmem_env_and_cmake(shell: Shell) -> None:
    """As an installed SDK: a file to source, a toolchain file, host variables, pkg-config."""
    if shutil.which("cmake") is None:
        pytest.skip("no cmake")
    home = shell.run("upmem-sim", "config", "--home", "an sdk").stdout.strip()
    assert home == str(shell.folder / "an sdk")
    shell.run("upmem-sim", "config", "--home", "an sdk")  # again: renewed
    shell.folder.joinpath("task.c").write_text(PLAIN.replace("= F", "= NR_TASKLETS"))
    shell.folder.joinpath("host.c").write_text(HOST)
    shell.folder.joinpath("CMakeLists.txt").write_text(CMAKE)
    steps = [". 'an sdk/upmem_env.sh' hw", "set -e", 'echo "$UPMEM_HOME"']
    for folder, option in (("dpu", "-DDPU=1"), ("host", "-DDPU=0")):
        steps.append(f"cmake -S . -B {folder} -DCMAKE_BUILD_TYPE=Release {option} >&2")
        steps.append(f"cmake --build {folder} >&2")
    steps += ["host/plain", "host/packaged"]
    done = shell.run("sh", "-c", "\n".join(steps))
    assert done.stdout == f"{home}\n7\n7\n"
    (shell.folder / "full").mkdir()
    (shell.folder / "full" / "file").touch()
    wrong = shell.run("upmem-sim", "config", "--home", "full", expect=1)
    assert "full: holds other files: name a new folder" in wrong.stderr


@pytest.mark.parametrize("end", ["", ";"])
def test_files_are_embedded_with_and_without_a_semicolon(shell: Shell, end: str) -> None:
    shell.folder.joinpath("file").write_text("twelve bytes")
    text = f'#include <dpu.h>\nDPU_INCBIN(some_file, "file"){end}\n'
    text += (
        'int main(void) { return printf("%u %s", (unsigned)some_file.size, some_file.path) < 0; }'
    )
    shell.folder.joinpath("a.c").write_text(text)
    shell.run("sh", "-c", "gcc -Wall -Wextra -Werror a.c -o a $(dpu-pkg-config --cflags dpu)")
    assert shell.run("./a").stdout == "12 file"
