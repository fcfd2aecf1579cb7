"""`dpu-upmem-dpurte-clang`: the SDK's compiler command over `compile_c`.

One call from sources to a program, or `-c` to objects and a call that links them. An object holds
the preprocessed text, not code: it is compiled when it is linked, from the cache if nothing else
has changed. As in the SDK, NR_TASKLETS and stack sizes are those of the linking command, and the
default is -O0. Options that have no meaning here (libraries, dependency files, -f...) are dropped.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from upmem_sim import cc_options
from upmem_sim.asm import assemble
from upmem_sim.cc import clang, compile_unit, library
from upmem_sim.elf import write_elf
from upmem_sim.errors import CompileError, SimError
from upmem_sim.link import link
from upmem_sim.objfile import Unit

NAME = "dpu-upmem-dpurte-clang"
_MAGIC = "upmem_sim object 1\n"
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


def _compiler_options(options: cc_options.Options) -> clang.Options:
    macros = {"NR_TASKLETS": options.nr_tasklets, **options.defines}
    return clang.Options.of(options.level, macros, options.include_dirs, options.werror, True)


def _write_object(source: Path, target: Path, options: clang.Options) -> None:
    """Keeps the text; compiles it for its errors, and so that the link finds it in the cache."""
    if source.suffix in (".s", ".S"):
        text = source.read_text()
    else:
        text = clang.preprocess(source, options)
    _unit(str(source), text, options.opt, options.werror)
    content = {"name": str(source), "level": options.opt, "text": text}
    target.write_text(_MAGIC + json.dumps(content))


def _unit(name: str, text: str, level: str, werror: bool = False) -> Unit:
    if name.endswith((".s", ".S")):
        return assemble(text, name)
    return compile_unit(text, clang.Options.of(level, {}, (), werror, True))


def _read_object(path: Path) -> Unit:
    text = path.read_text(errors="replace")
    try:
        content = json.loads(text.removeprefix(_MAGIC)) if text.startswith(_MAGIC) else {}
        name, level, body = content["name"], content["level"], content["text"]
    except (ValueError, KeyError, TypeError):
        raise CompileError(f"{path}: not an object of this compiler") from None
    return _unit(name, body, level)


def _output(arguments: list[str]) -> Path | None:
    options = [i for i, word in enumerate(arguments) if word.startswith("-o")]
    if not options:
        return None
    word = arguments[options[-1]]
    return Path(word[2:] if len(word) > 2 else arguments[options[-1] + 1])


def run(arguments: Sequence[str]) -> None:
    """Does what the command line says. Errors: SimError, OSError."""
    if "--version" in arguments:
        print(f"{NAME} of upmem_sim, on {clang.version().split(':')[0]}")
        return
    words = _level(_known(arguments))
    steps = [word for word in words if word in ("-c", "-E")]
    options = cc_options.parse([word for word in words if word not in ("-c", "-E")])
    for source in options.sources:
        if not source.is_file():
            raise CompileError(f"{source}: no such file")
    compiler = _compiler_options(options)
    target = _output(words)
    if "-E" in steps:
        for source in options.sources:
            text = clang.preprocess(source, compiler)
            target.write_text(text) if target else sys.stdout.write(text)
    elif "-c" in steps:
        if target and len(options.sources) > 1:
            raise CompileError("-o with -c: one source only")
        for source in options.sources:
            _write_object(source, target or Path(source.with_suffix(".o").name), compiler)
    else:
        _link(options, compiler)


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
