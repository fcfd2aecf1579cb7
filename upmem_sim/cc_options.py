"""The compiler's command line: options of the SDK's driver, as a value.

Options are spelled as for clang. NR_TASKLETS and the stack sizes are plain decimal numbers on the
command line, as the SDK's driver wants them (UPMEM SDK manual, "compiling a DPU program").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from upmem_sim.errors import CompileError
from upmem_sim.params import DPU_PRESETS

_LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
_WITH_VALUE = ("-o", "-D", "-I", "-U")
# Accepted without effect here: what they ask for is always so, or has no meaning in one step.
_IGNORED = re.compile(
    r"-g\d?|-gdwarf-\d|-std=(c|gnu|iso)[\w:]+|-f(data|function)-sections|-fstack-size-section"
    r"|-flto(=\w+)?|-fno-\S+|-pipe|-pedantic|-W(?!l,|a,|p,|error)\S*|-w|--target=dpu-upmem-dpurte"
)
_DEFSYM = re.compile(r"-Wl,--defsym[=,](\w+)=(\w+)")
_STACK = "STACK_SIZE_TASKLET_"
_UNITS = "-mhypothetical="
_REFUSED = {
    "-pg": "profiling builds are not made; upmem-sim counts without them",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What one compiler command asks for; sizes in bytes."""

    sources: tuple[Path, ...]
    output: Path = Path("a.out")
    level: str = "-O2"
    defines: dict[str, str] = field(default_factory=dict)
    include_dirs: tuple[Path, ...] = ()
    werror: bool = False
    nr_tasklets: int = 1
    stacks: tuple[int, ...] = (1024,)
    hypothetical: tuple[str, ...] = ()


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise CompileError(f"-D{name}={text}: must be a plain decimal number")
    return int(text)


def _split(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """(option, value) pairs; sources have the option ""."""
    out, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        if word[:2] in _WITH_VALUE:
            value = word[2:] or (rest.pop(0) if rest else "")
            if not value:
                raise CompileError(f"option {word} needs a value")
            out.append((word[:2], value))
        elif word.startswith("-") and word != "-":
            out.append((word, ""))
        else:
            out.append(("", word))
    return out


def _stacks(defines: dict[str, str], tasklets: int, limit: int) -> tuple[int, ...]:
    for name in defines:
        number = name.removeprefix(_STACK)
        if number != name and not (number.isdecimal() and int(number) < limit):
            raise CompileError(f"-D{name}: a DPU has tasklets 0 to {limit - 1}")
    default = _number("STACK_SIZE_DEFAULT", defines.get("STACK_SIZE_DEFAULT", "1024"))
    names = [f"{_STACK}{i}" for i in range(tasklets)]
    return tuple(_number(n, defines[n]) if n in defines else default for n in names)


def _defines(pairs: list[tuple[str, str]]) -> dict[str, str]:
    out: dict[str, str] = {}
    for option, value in pairs:
        if option == "-D":
            name, equals, text = value.partition("=")
            out[name] = text if equals else "1"
        elif option == "-U":
            out.pop(value, None)
        elif match := _DEFSYM.fullmatch(option):
            out[match.group(1)] = match.group(2)
    return out


def _check_plain(option: str) -> None:
    if option in _REFUSED:
        raise CompileError(f"option {option}: {_REFUSED[option]}")
    if not _IGNORED.fullmatch(option):
        raise CompileError(f"unknown option {option}; run upmem-sim cc --help for the known ones")


def parse(arguments: Sequence[str]) -> Options:
    """Options of a command line. Errors: CompileError naming the option."""
    pairs = _split(arguments)
    for option, _ in pairs:
        known = option in ("", *_WITH_VALUE, *_LEVELS, "-Werror") or option.startswith(
            ("-mcpu=", _UNITS)
        )
        if not known and not _DEFSYM.fullmatch(option):
            _check_plain(option)
    values = {kind: [v for option, v in pairs if option == kind] for kind in ("", "-o", "-I")}
    if not values[""]:
        raise CompileError("no source file given")
    chip = next((o[6:] for o, _ in reversed(pairs) if o.startswith("-mcpu=")), "v1A")
    if chip not in DPU_PRESETS or " " in chip:
        raise CompileError(f"option -mcpu={chip}: chips are v1A and v1B")
    defines = _defines(pairs)
    tasklets = _number("NR_TASKLETS", defines.pop("NR_TASKLETS", "1"))
    limit = DPU_PRESETS[chip].tasklets
    if not 1 <= tasklets <= limit:
        raise CompileError(f"NR_TASKLETS: {tasklets}, limit 1 to {limit} ({chip})")
    return Options(
        sources=tuple(map(Path, values[""])),
        output=Path((values["-o"] or ["a.out"])[-1]),
        level=next((o for o, _ in reversed(pairs) if o in _LEVELS), "-O2"),
        defines=defines,
        include_dirs=tuple(map(Path, values["-I"])),
        werror=("-Werror", "") in pairs,
        nr_tasklets=tasklets,
        stacks=_stacks(defines, tasklets, limit),
        hypothetical=tuple(
            unit
            for option, _ in pairs
            if option.startswith(_UNITS)
            for unit in option[len(_UNITS) :].split(",")
        ),
    )
