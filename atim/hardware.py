"""Runs on real DPUs: the exported program, built with the UPMEM SDK, measured phase by phase.

In: `Sources` and arrays. Out: an `Outcome` with the outputs, and the Timing of the repeat with the
median total after a warm-up. The tools are those of the SDK by their names, so the ones upmem_sim
installs under the same names do as well; their times are simulated, those of the host are not.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import upmem_sim
from atim.codegen import Sources
from atim.codegen.check_c import file_names
from atim.codegen.driver_c import HostProgram, emit_program
from atim.codegen.driver_text import PHASES
from atim.errors import AtimError, HardwareError, ToolchainError
from atim.export import DPU_FLAGS, HOST_FLAGS, HOST_LIBRARIES, Kernels, write_files
from atim.outcome import Outcome, Timing
from atim.toolchain import cache_folder, find_compiler

__all__ = [
    "REPEATS",
    "WARM_UPS",
    "Exported",
    "Tools",
    "build_program",
    "call",
    "environment",
    "exported",
    "find_tools",
    "measure",
    "run",
]

Array = NDArray[Any]

DPU_COMPILER = "dpu-upmem-dpurte-clang"
DPU_CONFIG = "dpu-pkg-config"
NAME = "program"
REPEATS = 5
WARM_UPS = 1
SOURCES = (".py", ".h", ".c", ".s", ".S", ".csv")
TIME_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Tools:
    """What builds a program for DPUs: paths, and options of the host's compiler for dpu.h."""

    dpu_compiler: str
    dpu_config: str
    host_compiler: tuple[str, ...]
    host_options: tuple[str, ...]
    version: str

    @property
    def simulated(self) -> bool:
        """True for upmem_sim's tools of the SDK's names: their DPUs are simulated."""
        return any("upmem_sim" in option for option in self.host_options)


def environment() -> dict[str, str]:
    """This process's environment, with $UPMEM_HOME's tools and libraries in front.

    Unless the user says otherwise, the SDK must not fall back to its own simulator.
    """
    found = {"UPMEM_PROFILE": "backend=hw", **os.environ}
    home = found.get("UPMEM_HOME")
    if home:
        found["PATH"] = os.pathsep.join([f"{home}/bin", found.get("PATH", "")])
        libraries = [f"{home}/lib", found.get("LD_LIBRARY_PATH", "")]
        found["LD_LIBRARY_PATH"] = os.pathsep.join(part for part in libraries if part)
    return found


def find_tools() -> Tools:
    """The SDK's tools. ToolchainError says which is missing, or what a tool complained about."""
    home = os.environ.get("UPMEM_HOME")
    if home and not Path(home).is_dir():
        raise ToolchainError(f"UPMEM_HOME={home} is no folder; set it to the SDK's, or unset it")
    path = environment().get("PATH")
    found = {name: shutil.which(name, path=path) for name in (DPU_COMPILER, DPU_CONFIG)}
    missing = [name for name, where in found.items() if where is None]
    if missing:
        raise ToolchainError(
            f"{', '.join(missing)}: not in $UPMEM_HOME/bin nor on PATH; source the SDK's"
            " upmem_env.sh, or use upmem_sim's: PATH=$(upmem-sim config --bin-dir):$PATH"
        )
    compiler, config = (str(found[name]) for name in (DPU_COMPILER, DPU_CONFIG))
    options = shlex.split(call([config, "--cflags", "--libs", "dpu"]))
    try:
        version = call([config, "--modversion", "dpu"]).strip()
    except ToolchainError:
        version = ""  # not every release's wrapper knows
    return Tools(compiler, config, tuple(find_compiler()), tuple(options), version)


@dataclass(frozen=True, slots=True)
class Exported:
    """A program as the folder that `atim.export` writes. `write` fills a folder, and gives the
    paths."""

    program: HostProgram
    kernels: Kernels
    write: Callable[[Path], Sequence[Path]]


def exported(sources: Sources, resident: Sequence[str]) -> Exported:
    """A single kernel's folder."""
    kernels = Kernels({"kernel.c": sources.kernel_c}, sources.nr_tasklets, sources.stack_bytes)
    program = emit_program(sources, NAME, "a candidate", resident)

    def write(folder: Path) -> Sequence[Path]:
        return write_files(
            folder, program, kernels, sources.plan.dpus, "a candidate", list(resident)
        )

    return Exported(program, kernels, write)


def build_program(tools: Tools, exported: Exported) -> tuple[Path, str]:
    """(folder with check and the DPU program, name of the latter). Built once for each content and
    compiler."""
    with tempfile.TemporaryDirectory(dir=cache_folder()) as temporary:
        work = Path(temporary) / NAME
        files = exported.write(work)
        texts = [path.read_text() for path in files]
        built_by = [repr(tools), simulator_identity() if tools.simulated else ""]
        key = hashlib.sha256("\0".join([*built_by, *texts]).encode()).hexdigest()
        folder = cache_folder() / f"hardware-{key[:32]}"
        if not folder.exists():
            for command in _commands(tools, exported, [path.name for path in files]):
                call(command, cwd=work)
            try:
                work.rename(folder)
            except OSError:
                if not folder.exists():  # otherwise another process was faster
                    raise
    return folder, f"{exported.program.name}.dpu"


@functools.cache
def simulator_identity() -> str:
    """A digest of upmem_sim's files: its version does not change with each edit of its compiler."""
    folder = Path(upmem_sim.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SOURCES and p.is_file()):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _commands(tools: Tools, exported: Exported, files: Sequence[str]) -> list[list[str]]:
    """As in the exported Makefile."""
    kernels, name = exported.kernels, exported.program.name
    sizes = [f"-DNR_TASKLETS={kernels.nr_tasklets}", f"-DSTACK_SIZE_DEFAULT={kernels.stack_bytes}"]
    dpu = [tools.dpu_compiler, *DPU_FLAGS, *sizes, "-o", f"{name}.dpu", *kernels.texts]
    compiler, *language = tools.host_compiler
    hosts = [file for file in files if file.endswith(".c") and file not in kernels.texts]
    units = [*language, *hosts, *(["-x", "none"] if language else [])]
    host = [compiler, *HOST_FLAGS, "-o", "check", *units, *tools.host_options, *HOST_LIBRARIES]
    return [dpu, host]


def run(
    sources: Sources,
    tensors: Mapping[str, Array],
    resident: Collection[str] = (),
    *,
    preset: str = "common",
    warm_ups: int = WARM_UPS,
    repeats: int = REPEATS,
) -> Outcome:
    """Build and run on the inputs among `tensors`, of the plan's shapes and dtypes.

    h2d and d2h include copies into and out of equal slices. The counter cycles is 0 on DIMMs, which
    do not tell. preset: the system whose transfers upmem_sim's tools simulate.

    Raises ToolchainError (no SDK, or it rejects the program) and HardwareError (the run failed).
    """
    program = exported(sources, sorted(resident))
    outputs, timing, cycles = measure(program, tensors, preset, warm_ups, repeats)
    counters = {"cycles": cycles, "dpus_run": sources.plan.dpus, "repeats": repeats}
    return Outcome(outputs, (), timing, counters)


def measure(
    exported: Exported,
    tensors: Mapping[str, Array],
    preset: str = "common",
    warm_ups: int = WARM_UPS,
    repeats: int = REPEATS,
) -> tuple[dict[str, Array], Timing, int]:
    """Outputs by name, Timing and cycles of a program, as `run`."""
    folder, kernel = build_program(find_tools(), exported)
    arguments = exported.program.arguments
    files = file_names(arguments)
    with tempfile.TemporaryDirectory(prefix="atim-") as work:
        for tensor in arguments:
            if tensor.role == "input":
                tensors[tensor.name].tofile(Path(work) / files[tensor.name])
        options = ["-r", str(repeats), "-w", str(warm_ups), "-d", work, "-o", work, "-n"]
        with _one_at_a_time():
            command = [str(folder / "check"), *options, "-k", str(folder / kernel)]
            told = call(command, runs=True, extra={"DPU_SIM_PRESET": preset})
        outputs = {
            t.name: np.fromfile(Path(work) / files[t.name], t.dtype).reshape(t.shape)
            for t in arguments
            if t.role == "output"
        }
    return outputs, *parse(told)


def parse(told: str) -> tuple[Timing, int]:
    """Timing and cycles from what the check program printed."""
    words = [line.split() for line in told.splitlines() if line.strip()]
    values = {first: second for first, second, *_ in words}
    try:
        s = {phase: float(values[phase]) * 1e-3 for phase in PHASES}
        cycles = int(values["cycles"])
    except (KeyError, ValueError) as error:
        raise HardwareError(f"the check program printed no times: {error}") from error
    inward, outward = s["pack"] + s["to_dpus"], s["from_dpus"] + s["unpack"]
    return Timing(inward, s["kernel"], outward, s["prepare"] + s["finish"]), cycles


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Several builders must not measure at once: they would slow each other down."""
    with (cache_folder() / "hardware.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def call(
    command: list[str],
    *,
    cwd: Path | None = None,
    runs: bool = False,
    extra: Mapping[str, str] | None = None,
) -> str:
    """Standard output of a command; ToolchainError, or HardwareError for the program itself."""
    kind: type[AtimError] = HardwareError if runs else ToolchainError
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**(extra or {}), **environment()},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise kind(f"{name}: not done after {TIME_LIMIT_S:g} s") from error
    except OSError as error:
        raise kind(f"{name}: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        first = next((line for line in lines if "rror" in line), lines[0])
        ended = f"exited with {done.returncode}" if done.returncode > 0 else "was killed"
        raise kind(f"{name} {ended}: {first}")
    return done.stdout
