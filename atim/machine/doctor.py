"""What was found on this machine, and what is missing: the lines of `atim doctor`."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import upmem_sim
from atim.errors import AtimError
from atim.hardware import find_tools
from atim.machine.build import compile_kernel, run_program
from atim.toolchain import cache_folder, find_compiler

__all__ = ["Finding", "examine", "text"]

KERNEL = "#include <defs.h>\nint main(void) { return 0; }\n"
DEVICES = "/dev/dpu_rank*"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for. needed: tuning on the simulator needs it."""

    name: str
    found: str
    ok: bool
    needed: bool = True


def examine() -> list[Finding]:
    """Everything that is looked for, in order."""
    looks: list[tuple[str, Callable[[], str], bool]] = [
        ("ATiM", lambda: f"{metadata.version('atim')}, Python {platform.python_version()}", True),
        ("TVM", lambda: metadata.version("apache-tvm"), True),
        ("C compiler", _compiler, True),
        ("simulator", _simulator, True),
        ("cache", lambda: str(cache_folder()), True),
        ("UPMEM_HOME", _home, False),
        ("UPMEM tools", _tools, False),
        ("ranks", _ranks, False),
        ("DPUs", _dpus, False),
    ]
    return [_look(name, look, needed) for name, look, needed in looks]


def _look(name: str, look: Callable[[], str], needed: bool) -> Finding:
    try:
        return Finding(name, look(), True, needed)
    except (AtimError, upmem_sim.SimError, metadata.PackageNotFoundError, OSError) as error:
        return Finding(name, " ".join(str(error).split()), False, needed)


def text(findings: list[Finding]) -> str:
    """The lines for a terminal, and what follows from them."""
    width = max(len(f.name) for f in findings)
    marks = {True: "ok", False: "--"}
    lines = [f"{marks[f.ok]}  {f.name:{width}}  {f.found}" for f in findings]
    by_name = {f.name: f for f in findings}
    lacking = [f.name for f in findings if f.needed and not f.ok]
    lines.append("")
    if lacking:
        lines.append(f"missing for tuning: {', '.join(lacking)}")
    else:
        lines.append("ready to tune on the simulator")
    dpus = by_name["DPUs"]
    if not dpus.ok:
        lines.append("not ready to run on DIMMs: see the lines with --")
    elif "simulated" in dpus.found:
        lines.append("Target.on_hardware() works with simulated DPUs: no SDK is in front on PATH")
    else:
        lines.append("ready to run on DIMMs: Target.on_hardware()")
    return "\n".join(lines)


def _compiler() -> str:
    command = find_compiler()
    done = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=False)
    return f"{command[0]}: {(done.stdout.splitlines() or ['no version'])[0]}"


def _simulator() -> str:
    program = upmem_sim.compile_c(KERNEL)
    result = upmem_sim.Dpu(program).run()
    clang = metadata.version("ziglang")
    return f"upmem_sim with clang of ziglang {clang}; an empty kernel takes {result.cycles} cycles"


def _home() -> str:
    home = os.environ.get("UPMEM_HOME")
    if not home:
        raise AtimError("not set: the SDK's upmem_env.sh sets it")
    if not Path(home).is_dir():
        raise AtimError(f"{home} is no folder; set it to the SDK's, or unset it")
    return home


def _tools() -> str:
    tools = find_tools()
    with tempfile.TemporaryDirectory(prefix="atim-") as work:
        compile_kernel(tools, "calibrate_kernel.c", Path(work) / "kernel.dpu")
    version = f", version {tools.version}" if tools.version else ""
    return f"{tools.dpu_compiler}{version}"


def _ranks() -> str:
    devices = sorted(Path("/").glob(DEVICES.removeprefix("/")))
    if not devices:
        raise AtimError(f"no {DEVICES}: no DIMMs, or their driver is not loaded")
    return f"{len(devices)} of {DEVICES}"


def _dpus() -> str:
    ranks, dpus, simulated = run_program(find_tools(), "probe.c").split()
    kind = ", simulated by upmem_sim" if simulated == "1" else ""
    return f"{dpus} in {ranks} ranks can be allocated{kind}"
