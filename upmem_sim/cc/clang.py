"""C text -> RV32 assembly text, by the clang inside the `ziglang` package.

Two runs: C to LLVM IR, then (after `ir.rewrite`) IR to assembly for rv32i + zba + zbb + zilsd with
the registers cut to the DPU's 24. RV32 without multiplier has the DPU's shape: shift-add forms,
register pairs for 64-bit memory access, multiply and divide as library calls. Preprocessing is a
third run, needed only when the text may use `long` (8 bytes on a DPU, 4 on RV32) or other headers.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from upmem_sim.cc import pragmas
from upmem_sim.errors import CompileError

INCLUDE_DIR = Path(__file__).parent / "include"
TIME_LIMIT_SECONDS = 120
OPT_LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")

HYPOTHETICAL = ("mul32", "float")  # units that no DPU has (isa.py, UNITS)

_TARGET = [
    "--target=riscv32-unknown-elf",
    "-mabi=ilp32",
    # x5 and x24-x27 have no DPU counterpart: 24 registers remain
    "-ffixed-x5",
    *(f"-ffixed-x{n}" for n in range(24, 28)),
    "-mno-relax",
    "-mcmodel=medlow",
    "-fno-pic",
]
_CODE = [
    "-fomit-frame-pointer",
    "-fno-asynchronous-unwind-tables",
    "-fno-ident",
    "-fno-integrated-as",  # inline assembly holds DPU instructions
    "-ffunction-sections",
    "-fdata-sections",
]
_LONG_MACROS = {
    "__SIZEOF_LONG__": "8",
    "__LONG_WIDTH__": "64",
    "__LONG_MAX__": "0x7fffffffffffffffLL",
    "__SIZEOF_LONG_DOUBLE__": "8",
}
# RV32 has a thread pointer; tasklets share their variables.
_UNAVAILABLE = '__attribute__((unavailable("not available on a DPU: use an array and me()")))'
_LANGUAGE = [
    "-std=gnu17",
    "-ffreestanding",
    "-nostdinc",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fsigned-char",  # as clang has it for targets without a rule of their own; RV32 has one
    "-D__DPU__=1",
    "-D__DPU=1",
    "-DDPU=1",
    # `long` and `long double` are rewritten (c_long.py) to what they are on a DPU
    "-Wno-builtin-macro-redefined",
    *(f"-U{name}" for name in _LONG_MACROS),
    *(f"-D{name}={value}" for name, value in _LONG_MACROS.items()),
    *(f"-D{name}={_UNAVAILABLE}" for name in ("_Thread_local", "__thread")),
]
# Settings that make LLVM's loops look like those of UPMEM's own compiler: its target says every
# addressing mode is legal, so loop strength reduction keeps the index form; no partial unrolling.
# The machine scheduler would hoist loads until registers spill.
_BACKEND = [
    item
    for option in (
        "-disable-lsr",
        "-unroll-runtime=0",
        "-unroll-allow-partial=0",
        "-enable-global-merge=0",
        "-enable-misched=0",
        "-riscv-enable-machine-combiner=0",  # it would tear 64-bit sums apart
    )
    for item in ("-mllvm", option)
]


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile one C unit.

    opt           one of OPT_LEVELS
    defines       macro -> value (None: defined as 1)
    include_dirs  searched after the unit's own folder and before the DPU headers
    werror        warnings of -Wall -Wextra are errors
    debug         keep C line numbers (about 15 ms more per unit)
    hypothetical  units of HYPOTHETICAL whose instructions take the place of library calls
    """

    opt: str = "-O2"
    defines: tuple[tuple[str, str | None], ...] = ()
    include_dirs: tuple[str, ...] = ()
    werror: bool = False
    debug: bool = True
    hypothetical: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.hypothetical) - set(HYPOTHETICAL)):
            raise CompileError(f"hypothetical: {unknown[0]!r} asked, known: mul32, float")
        if self.opt not in OPT_LEVELS:
            raise CompileError(f"optimisation: {self.opt!r} asked, one of {', '.join(OPT_LEVELS)}")

    @staticmethod
    def of(
        opt: str,
        defines: Mapping[str, object],
        include_dirs: Iterable[str | os.PathLike[str]],
        werror: bool,
        debug: bool,
        hypothetical: Iterable[str] = (),
    ) -> Options:
        pairs = tuple((k, None if v is None else str(v)) for k, v in defines.items())
        folders, units = tuple(str(d) for d in include_dirs), tuple(sorted(set(hypothetical)))
        return Options(opt, pairs, folders, werror, debug, units)

    @property
    def target(self) -> list[str]:
        """Flags for the instruction set: RV32's multiplier stands for a hypothetical one. With a
        float unit sums of products stay two roundings, as in the library."""
        multiply = "_zmmul" * ("mul32" in self.hypothetical)
        contract = ["-ffp-contract=off"] * ("float" in self.hypothetical)
        return [*_TARGET, f"-march=rv32i{multiply}_zba_zbb_zilsd", *contract]


@functools.cache
def zig() -> str:
    """Path of the zig program, whose `clang` subcommand is a plain clang driver."""
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for name in ("zig", "zig.exe"):
            path = Path(folder) / name
            if path.is_file():
                return str(path)
    raise CompileError("no C compiler: the Python package ziglang is not installed")


@functools.cache
def version() -> str:
    """Identity of the compiler for cache keys: path, size and time of its program."""
    stat = os.stat(zig())
    return f"{zig()}:{stat.st_size}:{stat.st_mtime_ns}"


def _language_flags(options: Options) -> list[str]:
    flags = [*_LANGUAGE]
    for name, value in options.defines:
        flags.append(f"-D{name}" if value is None else f"-D{name}={value}")
    flags += [f"-I{folder}" for folder in options.include_dirs]
    flags += ["-isystem", str(INCLUDE_DIR)]
    flags += ["-Wall", "-Wextra", "-Werror"] if options.werror else ["-w"]
    return flags


def preprocess(source: str | Path, options: Options) -> str:
    """Preprocessed text with line markers. `source` is C text or the path of a file."""
    flags = [*options.target, *_language_flags(options), options.opt, "-E"]

    def again(lines: str) -> str:
        whole = source if isinstance(source, str) else f'#include "{source.resolve()}"\n'
        return _run(flags, whole + lines, "c")

    return pragmas.expand(_run(flags, source, "c"), again)


def to_ir(source: str | Path, options: Options, *, preprocessed: bool = False) -> str:
    """LLVM IR text, optimised. Errors: CompileError with the compiler's first error line."""
    flags = [*options.target, *_language_flags(options), *_CODE, *_BACKEND, options.opt]
    flags += ["-gline-tables-only" if options.debug else "-g0", "-S", "-emit-llvm"]
    if preprocessed:
        flags.append("-Wno-unused-command-line-argument")  # macros
    return _run(flags, source, "cpp-output" if preprocessed else "c")


def to_assembly(ir: str, options: Options) -> str:
    """RV32 assembly text of LLVM IR that is already optimised."""
    flags = [*options.target, *_CODE, *_BACKEND, options.opt]
    flags += ["-w", "-Xclang", "-disable-llvm-passes"]
    return _run([*flags, "-S"], ir, "ir")


def _run(flags: list[str], source: str | Path, language: str) -> str:
    is_text = isinstance(source, str)
    text = source if isinstance(source, str) else None
    name = "-" if is_text else str(source)
    command = [zig(), "clang", *flags, "-x", language, "-o", "-", name]
    try:
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "surrogateescape") if text is not None else None,
            stdin=None if is_text else subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise CompileError(f"C compiler: no answer within {TIME_LIMIT_SECONDS} s") from None
    except OSError as error:
        raise CompileError(f"C compiler: {zig()} does not start: {error.strerror}") from None
    if done.returncode:
        raise CompileError(_first_error(done.stderr.decode("utf-8", "replace"), done.returncode))
    return done.stdout.decode("utf-8", "surrogateescape")


def _first_error(stderr: str, status: int) -> str:
    for line in stderr.splitlines():
        if re.search(r"\b(fatal )?error: ", line):
            return line.strip()
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[0].strip() if lines else f"C compiler: exit status {status}"
