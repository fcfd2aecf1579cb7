"""`dpu-pkg-config`: the part of pkg-config's command line that Makefiles of UPMEM programs use."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence

from upmem_sim.errors import SimError
from upmem_sim.host import places

VERSION = "2025.1.0"  # of the SDK whose interface dpu.h has
TOOL_VERSION = "0.29.2"  # of the pkg-config whose command line this is
_PARTS: dict[str, Callable[[], str]] = {
    "--cflags": places.cflags,
    "--cflags-only-I": places.cflags,
    "--cflags-only-other": lambda: "",
    "--libs": places.libs,
    "--libs-only-L": lambda: shlex.quote(f"-L{places.lib_dir()}"),
    "--libs-only-l": lambda: "-ldpu",
    "--libs-only-other": lambda: shlex.quote(f"-Wl,-rpath,{places.lib_dir()}"),
    "--variable=prefix": lambda: str(places.lib_dir().parent),
    "--modversion": lambda: VERSION,
    "--variable=includedir": lambda: str(places.INCLUDE_DIR.parent),
    "--variable=libdir": lambda: str(places.lib_dir()),
}
_SILENT = ("--exists", "--print-errors", "--short-errors", "--silence-errors", "--static")


def answer(arguments: Sequence[str]) -> str:
    """What to print. Errors: SimError for unknown options and packages."""
    if "--version" in arguments:
        return TOOL_VERSION
    packages = [a for a in arguments if not a.startswith("-")]
    options = [a for a in arguments if a.startswith("-")]
    for package in packages:
        if package.split()[0] != "dpu":
            raise SimError(f"package {package} is unknown, there is only dpu")
    if not packages:
        raise SimError("no package named: dpu-pkg-config --cflags --libs dpu")
    for option in options:
        if option not in _PARTS and option not in _SILENT:
            raise SimError(f"option {option} is unknown, known: {' '.join(_PARTS)}")
    return " ".join(_PARTS[option]() for option in options if option in _PARTS)


def main() -> None:
    """Entry point of the script."""
    try:
        text = answer(sys.argv[1:])
    except SimError as error:
        print(f"dpu-pkg-config: {error}", file=sys.stderr)
        sys.exit(1)
    if text:
        print(text)
