"""`dpu-upmem-dpurte-clang`: the SDK's compiler command over ours (cc_driver.py).

As in the SDK the default is -O0. Options that have no meaning here (libraries, dependency files,
-f...) are dropped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from upmem_sim import cc_driver
from upmem_sim.cc import clang
from upmem_sim.errors import SimError

NAME = "dpu-upmem-dpurte-clang"
_DROPPED = re.compile(r"-(l|L|MM?D|MP|MG|Wl,(?!--defsym)|f(?!sanitize)|v$|s$).*")
_DROPPED_PAIRS = ("-MF", "-MT", "-MQ", "-Xlinker", "-l", "-L")


def _known(arguments: Sequence[str]) -> list[str]:
    """The arguments that `cc_options` understands."""
    out: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in _DROPPED_PAIRS:
            rest[:1] = []
        elif not _DROPPED.fullmatch(word):
            out.append(word)
    return out


def _level(arguments: list[str]) -> list[str]:
    """clang's default, and the nearest of its levels that there is."""
    names = {"-O": "-O1", "-Ofast": "-O3", "-Oz": "-Os", "-Og": "-O1"}
    arguments = [names.get(a, a) for a in arguments]
    return arguments if any(re.fullmatch("-O.", a) for a in arguments) else ["-O0", *arguments]


def run(arguments: Sequence[str]) -> None:
    """Does what the command line says. Errors: SimError, OSError."""
    if "--version" in arguments:
        print(f"{NAME} of upmem_sim, on {clang.version().split(':')[0]}")
        return
    cc_driver.run(_level(_known(arguments)))


def main() -> None:
    """Entry point of the script."""
    try:
        run(sys.argv[1:])
    except OSError as error:
        print(f"{NAME}: error: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(1)
    except (SimError, ValueError) as error:
        print(f"{NAME}: error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)
