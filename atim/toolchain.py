"""C sources -> an artifact that can run: a DPU program for the simulator, a host shared library.

The kernel goes through `upmem_sim.compile_c`, the host half through the system's C compiler. What
was compiled is kept by content (text, flags, compiler), so the same candidate is built once, in
whichever process. An `Artifact` is a plain value: worker processes may send it to each other.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import upmem_sim
from atim.codegen import Sources
from atim.errors import ScheduleError, ToolchainError
from atim.target import Target

__all__ = ["Artifact", "HostLibrary", "build", "cache_folder", "find_compiler"]

# What each compiler needs in front of the file to take it as C11.
COMPILERS: dict[str, tuple[str, ...]] = {
    "cc": (),
    "gcc": (),
    "clang": (),
    "g++": ("-x", "c"),
    "c++": ("-x", "c"),
    "clang++": ("-x", "c"),
}
# tensors of integers wrap around, which plain C leaves undefined
FLAGS = ("-std=c11", "-O3", "-fwrapv", "-shared", "-fPIC", "-pthread")
TIME_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Artifact:
    """One built candidate: its sources, and the DPU program made of them."""

    sources: Sources
    target: Target
    program: upmem_sim.Program

    def host(self) -> HostLibrary:
        """The compiled host half; the first call of a process compiles or finds it."""
        return HostLibrary(compile_host(self.sources.host_c))


def build(sources: Sources, target: Target, *, host: bool = True) -> Artifact:
    """Compile the kernel, and with `host` also the host half.

    ScheduleError when the program does not fit the DPU's memories (known only now for IRAM and
    stacks), ToolchainError when a compiler is missing or rejects the text.
    """
    if host:
        compile_host(sources.host_c)
    try:
        program = upmem_sim.compile_c(
            sources.kernel_c,
            nr_tasklets=sources.nr_tasklets,
            stack_bytes=sources.stack_bytes,
            hypothetical=target.units,
        )
    except upmem_sim.LinkError as error:
        raise ScheduleError(str(error)) from error
    except upmem_sim.SimError as error:
        raise ToolchainError(f"kernel: {error}") from error
    try:
        upmem_sim.Dpu(program, target.chip)
    except upmem_sim.SimError as error:  # the chip is smaller than what the linker allows
        raise ScheduleError(str(error)) from error
    stack = stack_needed(program)
    if stack > sources.stack_bytes:
        raise ScheduleError(
            f"stack: {stack} bytes needed by each tasklet, limit {sources.stack_bytes}"
        )
    return Artifact(sources, target, program)


def stack_needed(program: upmem_sim.Program) -> int:
    """Bytes of a tasklet's stack: the two largest frames, for kernels call routines that call
    nothing that has a frame."""
    frames = sorted(program.frames)
    return sum(frames[-2:])


class HostLibrary:
    """A loaded host half: its functions by name, as `Sources` describes them."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))

    def move(
        self, name: str, tensor: int, slices: int, dpus: int, count: int, threads: int
    ) -> None:
        """Call pack_S or unpack_S; `tensor`, `slices` and `dpus` are addresses."""
        function = self._library[name]
        function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_uint32] * 2
        function.restype = None
        function(tensor, slices, dpus, count, threads)

    def work(self, name: str, tensors: Sequence[int], threads: int) -> None:
        """Call the prepare or finish function with the addresses of its tensors."""
        function = self._library[name]
        function.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
        function.restype = None
        function((ctypes.c_void_p * len(tensors))(*tensors), threads)


def find_compiler() -> list[str]:
    """The command that compiles C on this machine; ToolchainError when there is none."""
    for name, extra in COMPILERS.items():
        path = shutil.which(name)
        if path:
            return [path, *extra]
    names = ", ".join(COMPILERS)
    raise ToolchainError(f"no C compiler found on PATH (looked for {names}): install one")


def cache_folder() -> Path:
    """Where built files are kept: $XDG_CACHE_HOME/atim, by default ~/.cache/atim."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "atim"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
        raise ToolchainError(f"cache folder {folder} cannot be made: {reason}") from error
    return folder


@lru_cache(maxsize=1024)
def compile_host(text: str) -> Path:
    """Shared library of one host half; compiled when the cache does not hold it."""
    command = find_compiler()
    key = hashlib.sha256("\0".join([*command, *FLAGS, text]).encode()).hexdigest()
    path = cache_folder() / f"host-{key[:32]}.so"
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, built = Path(folder) / "host.c", Path(folder) / "host.so"
        source.write_text(text)
        _run([command[0], *FLAGS, "-o", str(built), *command[1:], str(source)])
        os.replace(built, path)  # whole or not at all: other processes may look for it
    return path


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(f"{command[0]}: not done after {TIME_LIMIT_S:g} s") from error
    except OSError as error:
        raise ToolchainError(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise ToolchainError(f"{command[0]} exited with {done.returncode}: {first}")
