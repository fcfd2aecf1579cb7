"""Where the parts of the host side are installed: libdpu, its headers, and the tools' folder."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from pathlib import Path

from upmem_sim import _core
from upmem_sim.errors import SimError

INCLUDE_DIR = Path(__file__).parent / "include" / "dpu"
TOOLS = ("dpu-pkg-config", "dpu-upmem-dpurte-clang")


def lib_dir() -> Path:
    """Folder of libdpu.so. Errors: SimError if the package was installed without it."""
    # native parts are installed together; an editable installation has Python files elsewhere
    folder = Path(_core.__file__).parent / "host" / "lib"
    if not (folder / "libdpu.so").is_file():
        raise SimError(f"{folder}/libdpu.so does not exist: install the package again")
    return folder


def bin_dir() -> Path:
    """Folder with the SDK's tool names. Errors: SimError if they are not installed."""
    schemes = sysconfig.get_scheme_names()
    user = f"{'nt' if sys.platform == 'win32' else 'posix'}_user"
    folders = [Path(sysconfig.get_path("scripts")), Path(sys.argv[0]).parent]
    if user in schemes:
        folders.append(Path(sysconfig.get_path("scripts", user)))
    for folder in folders:
        if all((folder / tool).is_file() for tool in TOOLS):
            return folder.resolve()
    raise SimError(f"{', '.join(TOOLS)}: not in {folders[0]}: install the package again")


def cflags() -> str:
    """Options that make a C compiler find dpu.h."""
    return shlex.quote(f"-I{INCLUDE_DIR}")


def libs() -> str:
    """Options that link a program with libdpu, and make it find the library when it runs."""
    folder = lib_dir()
    return shlex.join([f"-L{folder}", f"-Wl,-rpath,{folder}", "-ldpu"])
