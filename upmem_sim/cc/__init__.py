"""C compiler for the DPU: clang's RV32 back end, translated instruction by instruction.

Stages of a unit: clang.to_ir, ir.rewrite, clang.to_assembly, unit.build_unit; then the units and
what they need of the library (rt/) are linked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from upmem_sim.arguments import instance, whole
from upmem_sim.asm import assemble
from upmem_sim.cc import c_long, cache, clang, ir, ir_text, library, places
from upmem_sim.cc.unit import build_unit
from upmem_sim.errors import CompileError
from upmem_sim.link import link
from upmem_sim.objfile import Unit
from upmem_sim.program import Program

__all__ = ["compile_c", "compile_unit"]


def compile_c(
    source: str | Path | Sequence[str | Path],
    *,
    nr_tasklets: int = 1,
    stack_bytes: int | Sequence[int] = 1024,
    defines: Mapping[str, object] | None = None,
    opt: str = "-O2",
    include_dirs: Iterable[str | os.PathLike[str]] = (),
    werror: bool = False,
    debug: bool = True,
    hypothetical: str | Iterable[str] = (),
) -> Program:
    """Compile C for the DPU and link it with the run-time library.

    source        C text, or the path of a .c or .s file (a Path, or one line of text that ends
                  so), or several of them
    nr_tasklets   tasklets that run main; macro NR_TASKLETS
    stack_bytes   stack of each tasklet, or one size per tasklet
    defines       macro -> value (None: defined as 1)
    opt           -O0, -O1, -O2, -O3 or -Os
    werror        warnings of -Wall -Wextra are errors
    debug         keep C lines, for faults and profiles; off saves about 20 ms
    hypothetical  units that no DPU has, "mul32" and "float" (float32): their instructions take the
                  place of library calls, results stay the same; needs a core with these units
    Errors: CompileError (the compiler's first error, with file and line), AsmError, LinkError;
    TypeError for arguments of other types.
    """
    whole("nr_tasklets", nr_tasklets)
    if isinstance(stack_bytes, list | tuple):
        stack_bytes = [whole("stack_bytes", size) for size in stack_bytes]
    else:
        stack_bytes = whole("stack_bytes", stack_bytes)
    instance("defines", defines, (Mapping, type(None)))
    if isinstance(include_dirs, str | os.PathLike):
        include_dirs = (include_dirs,)
    hypothetical = (hypothetical,) if isinstance(hypothetical, str) else hypothetical
    instance("include_dirs", include_dirs, Iterable)
    instance("hypothetical", hypothetical, Iterable)
    macros: dict[str, object] = {"NR_TASKLETS": nr_tasklets, **(defines or {})}
    options = clang.Options.of(opt, macros, include_dirs, werror, debug, hypothetical)
    given: Any = source
    single = isinstance(given, str | bytes | Path) or not isinstance(given, Iterable)
    sources = [given] if single else list(given)
    for item in sources:
        instance("source", item, (str, Path))
    units = [compile_unit(_source(item), options) for item in sources]
    return link([*units, *library.select(units)], nr_tasklets=nr_tasklets, stack_bytes=stack_bytes)


def compile_unit(source: str | Path, options: clang.Options) -> Unit:
    """One C or assembly source as a unit, from the cache if it was compiled before."""
    name = str(source) if isinstance(source, Path) else "<source>"
    try:
        text = c_long.source_text(source)
    except OSError as error:
        raise CompileError(f"{name}: cannot be read: {error.strerror}") from None
    if name.endswith((".s", ".S")):
        return assemble(text, name)
    preprocessed = c_long.needs_preprocessing(text, options.defines)
    if preprocessed:
        source = text = clang.preprocess(_named(source, name), options)
    # relative paths are relative to the working directory, and C lines name files in full
    identity = cache.key([clang.version(), os.getcwd(), name, text, repr(options)])
    found = cache.load(identity)
    if found:
        return found[0]
    try:
        unit = _compile(source, name, text, options, preprocessed)
    except CompileError as error:  # debug lines have the path in full
        raise CompileError(str(error).replace(f"{os.path.abspath(name)}:", f"{name}:")) from None
    cache.store(identity, [unit])
    return unit


def _source(item: str | Path) -> str | Path:
    """A line that ends like a source file's name is one; nothing else in C or assembly does."""
    if isinstance(item, Path) or "\n" in item:
        return item
    if item.endswith((".c", ".s", ".S")):
        return Path(item)
    if item and not set(item) & set("#;{"):
        raise CompileError(f"source {item!r}: no C text, nor the name of a .c or .s file")
    return item


def _named(source: str | Path, name: str) -> str | Path:
    """Text gets a line marker, so that errors and C lines name it."""
    return f'# 1 "{name}"\n{source}' if isinstance(source, str) else source


def _compile(
    source: str | Path, name: str, text: str, options: clang.Options, preprocessed: bool
) -> Unit:
    if preprocessed:
        module = clang.to_ir(c_long.rewrite(text), options, preprocessed=True)
    else:
        module = clang.to_ir(_named(source, name), options)
    module = places.outside_headers(ir.rewrite(module, name, options.hypothetical))
    return build_unit(clang.to_assembly(module, options), name, ir_text.signatures(module))
