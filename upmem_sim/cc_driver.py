"""What a compiler command does: preprocess, assembly text, objects, or a linked program.

An object holds the preprocessed text, not code: it is compiled when it is linked, from the cache if
nothing else has changed. As in the SDK, NR_TASKLETS and stack sizes are those of the linking
command. Objects may be linked with sources in one command.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from upmem_sim import cc_options
from upmem_sim.asm import assemble
from upmem_sim.cc import clang, compile_unit, library
from upmem_sim.elf import write_elf
from upmem_sim.errors import CompileError
from upmem_sim.link import link
from upmem_sim.objfile import Unit
from upmem_sim.unit_text import unit_text

__all__ = ["run"]

STEPS = ("-c", "-E", "-S")
_MAGIC = "upmem_sim object 2\n"
_MARKER = re.compile(r'^(# \d+ ")(?![/<])', re.MULTILINE)


def _options(options: cc_options.Options) -> clang.Options:
    macros = {"NR_TASKLETS": options.nr_tasklets, **options.defines}
    return clang.Options.of(
        options.level, macros, options.include_dirs, options.werror, True, options.hypothetical
    )


def _is_assembly(name: str | Path) -> bool:
    return str(name).endswith((".s", ".S"))


def _unit(name: str, text: str, level: str, units: Sequence[str], werror: bool = False) -> Unit:
    if _is_assembly(name):
        return assemble(text, name)
    return compile_unit(text, clang.Options.of(level, {}, (), werror, True, units))


def _preprocessed(source: Path, options: clang.Options) -> str:
    return source.read_text() if _is_assembly(source) else clang.preprocess(source, options)


def _object(source: Path, options: clang.Options) -> str:
    """Keeps the text; compiles it for its errors, and so that the link finds it in the cache."""
    text = _preprocessed(source, options)
    units = options.hypothetical
    _unit(str(source), text, options.opt, units, options.werror)
    content = {"name": str(source), "level": options.opt, "units": units, "text": text}
    return _MAGIC + json.dumps({**content, "folder": os.getcwd()})


def _read_object(path: Path) -> Unit:
    text = path.read_text(errors="replace")
    try:
        content = json.loads(text.removeprefix(_MAGIC)) if text.startswith(_MAGIC) else {}
        name, level, body = content["name"], content["level"], content["text"]
        units, folder = content["units"], content["folder"]
    except (ValueError, KeyError, TypeError):
        raise CompileError(f"{path}: not an object of this compiler") from None
    return _unit(name, _seen_from(folder, body), level, units)


def _seen_from(folder: str, text: str) -> str:
    """Preprocessed text whose line markers are relative to a folder, for the working directory."""
    if folder == os.getcwd():
        return text
    return _MARKER.sub(lambda m: f"{m[1]}{folder}/", text)


def _assembly(source: Path, options: clang.Options) -> str:
    return unit_text(compile_unit(source, options))


def _link(options: cc_options.Options, compiler: clang.Options) -> None:
    units = [
        _read_object(source) if source.suffix == ".o" else compile_unit(source, compiler)
        for source in options.sources
    ]
    program = link(
        [*units, *library.select(units)],
        nr_tasklets=options.nr_tasklets,
        stack_bytes=options.stacks,
    )
    options.output.write_bytes(write_elf(program))
    options.output.chmod(0o755)


def run(arguments: Sequence[str]) -> None:
    """Does what the command line says; of several steps the earliest. Errors: SimError, OSError."""
    steps = [word for word in arguments if word in STEPS]
    words = [word for word in arguments if word not in STEPS]
    options = cc_options.parse(words)
    for source in options.sources:
        if not source.is_file():
            raise CompileError(f"{source}: {'a folder' if source.is_dir() else 'no such file'}")
    compiler = _options(options)
    if not steps:
        _link(options, compiler)
        return
    target = options.output if any(word.startswith("-o") for word in words) else None
    step = next(s for s in ("-E", "-S", "-c") if s in steps)
    if target and len(options.sources) > 1:
        raise CompileError(f"-o with {step}: {len(options.sources)} sources, limit exactly 1")
    for source in options.sources:
        if step == "-E":
            text = _preprocessed(source, compiler)
            target.write_text(text) if target else sys.stdout.write(text)
        else:
            make, suffix = (_object, ".o") if step == "-c" else (_assembly, ".s")
            (target or Path(source.with_suffix(suffix).name)).write_text(make(source, compiler))
