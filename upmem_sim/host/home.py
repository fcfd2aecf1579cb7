"""A folder laid out as an installed SDK, for builds that look for $UPMEM_HOME.

It holds links to the tools, headers and library of this installation, `upmem_env.sh`, and the CMake
files that projects include (SDK manual, "Using CMake"): share/upmem/cmake/dpu.cmake for DPU
programs, share/upmem/cmake/include/host/DpuHost.cmake for host programs.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from upmem_sim.errors import SimError
from upmem_sim.host import places

__all__ = ["write_home"]

ENVIRONMENT = """\
# Source this file: tools on PATH, libdpu where programs find it, $UPMEM_HOME for build systems.
# An argument (hw, simulator) is accepted, as the SDK's file has one; DPUs are simulated either way.
UPMEM_HOME={quoted}
export UPMEM_HOME
PATH="$UPMEM_HOME/bin${{PATH:+:$PATH}}"
export PATH
LD_LIBRARY_PATH="$UPMEM_HOME/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export LD_LIBRARY_PATH
"""

DPU_CMAKE = """\
# DPU programs: include this file, or give it as the toolchain file.
if(NOT DEFINED UPMEM_HOME)
  get_filename_component(UPMEM_HOME "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
endif()
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR dpu)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_COMPILER "${{UPMEM_HOME}}/bin/{compiler}")
set(CMAKE_C_COMPILER_WORKS TRUE)
# what a project() before this file has set for the host's linker
set(CMAKE_SHARED_LIBRARY_LINK_C_FLAGS "")
set(CMAKE_EXECUTABLE_SUFFIX "")
if(NOT DEFINED NR_TASKLETS)
  set(NR_TASKLETS 1)
endif()
"""

HOST_CMAKE = """\
# Host programs: what to compile and link with.
if(NOT DEFINED UPMEM_HOME)
  get_filename_component(UPMEM_HOME "${{CMAKE_CURRENT_LIST_DIR}}/../../../../.." ABSOLUTE)
endif()
set(DPU_HOST_INCLUDE_DIRECTORIES "${{UPMEM_HOME}}/include/dpu")
set(DPU_HOST_LINK_DIRECTORIES "${{UPMEM_HOME}}/lib")
set(DPU_HOST_LIBRARIES dpu)
"""

PACKAGE = """\
prefix={home}
includedir=${{prefix}}/include/dpu
libdir=${{prefix}}/lib

Name: dpu
Description: UPMEM host interface over a simulator
Version: {version}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -ldpu
"""


def write_home(folder: Path, version: str) -> Path:
    """Make or renew the folder; its absolute path. `version` is that of the SDK's interface.

    Errors: SimError if the folder holds something else or this installation is not whole, OSError.
    """
    folder = folder.absolute()
    mark = folder / "upmem_env.sh"
    if folder.exists() and any(folder.iterdir()) and not mark.is_file():
        raise SimError(f"{folder}: holds other files: name a new folder")
    links = {f"bin/{tool}": places.bin_dir() / tool for tool in places.TOOLS}
    links |= {"lib/libdpu.so": places.lib_dir() / "libdpu.so"}
    links |= {"include/dpu": places.INCLUDE_DIR}
    names = {
        "home": folder,
        "quoted": shlex.quote(str(folder)),
        "version": version,
        "compiler": "dpu-upmem-dpurte-clang",
    }
    texts = {
        "upmem_env.sh": ENVIRONMENT,
        "share/upmem/cmake/dpu.cmake": DPU_CMAKE,
        "share/upmem/cmake/include/host/DpuHost.cmake": HOST_CMAKE,
        "share/pkgconfig/dpu.pc": PACKAGE,
    }
    for name in (*links, *texts):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    for name, target in links.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
    for name, text in texts.items():
        (folder / name).write_text(text.format(**names))
    return folder
