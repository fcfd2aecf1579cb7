"""A compiled program as a folder of C: kernel.c, host.c, its header, a check program, a Makefile.

In: `Sources` and, for the check, inputs and expected outputs. The folder needs no Python: it builds
with the UPMEM SDK (2021.3 to 2025.1) or, with the same Makefile, with the tools of the same names
that upmem_sim installs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atim.codegen import Sources, Tensor
from atim.codegen.check_c import emit_check, file_names
from atim.codegen.driver_c import HostProgram, emit_program
from atim.errors import RecordError

__all__ = [
    "DPU_FLAGS",
    "HOST_FLAGS",
    "HOST_LIBRARIES",
    "Data",
    "Kernels",
    "write_files",
    "write_folder",
]

Array = NDArray[Any]

DPU_FLAGS = ("-O2", "-Wall", "-Wextra")
# tensors of integers wrap around, which plain C leaves undefined
HOST_FLAGS = ("-std=c11", "-O3", "-fwrapv", "-Wall", "-Wextra")
HOST_LIBRARIES = ("-pthread", "-lm")

MAKEFILE = """\
# {title}. Needs the UPMEM SDK's tools on PATH (source upmem_env.sh), or those of upmem_sim of the
# same names: PATH="$(upmem-sim config --bin-dir):$PATH" make
NR_TASKLETS = {tasklets}
STACK_BYTES = {stack}

DPU_CC = dpu-upmem-dpurte-clang
DPU_CFLAGS = {dpu_flags}
DPU_CONFIG = dpu-pkg-config
CC = cc
CFLAGS = {host_flags}
LIBRARIES = {libraries}

all: {name}.dpu check

{name}.dpu: {kernels}
\t$(DPU_CC) $(DPU_CFLAGS) -DNR_TASKLETS=$(NR_TASKLETS) -DSTACK_SIZE_DEFAULT=$(STACK_BYTES) -o $@ $^

check: check.c {hosts} {headers}
\t$(CC) $(CFLAGS) -o $@ check.c {hosts} `$(DPU_CONFIG) --cflags --libs dpu` $(LIBRARIES)

run: all
\t./check

clean:
\trm -f {name}.dpu check

.PHONY: all run clean
"""

README = """\
# {title}

A tensor program compiled by ATiM for {dpus} UPMEM DPUs with {tasklets} tasklets each.

```
make run        # with the UPMEM SDK's tools on PATH, or those of upmem_sim:
                # PATH="$(upmem-sim config --bin-dir):$PATH" make run
```

builds everything, runs it on the arrays in `data/`, compares the results and prints the time of
each phase (median of 10 runs after a warm-up; `./check -h` lists options, which are explained at
the top of `check.c`).

| file | what it is |
|---|---|
| `{shown_kernels}` | the DPU program: `{name}.dpu` |
| `{shown_hosts}` | the host's part: allocation, transfers, launch, what is left to compute |
| `check.c` | runs it on `data/` |
| `data/` | inputs and expected outputs as raw arrays, C order, little endian{absent} |

| in `data/` | holds |
|---|---|
{files}

It uses what SDKs from 2021.3 to 2025.1 have in common. From 2024.1 on, their compiler builds for
the chip that `DPU_ARCH_VERSION` or the driver names: v1A as here, or v1B, which has 16 tasklets at
most.

To use it elsewhere, compile `{compiled}` with your program and call, as `{name}.h` explains:

```c
{prototype}
```
"""


@dataclass(frozen=True, slots=True)
class Data:
    """Arrays for the check program by tensor name; tolerances of float outputs (see check_c)."""

    inputs: Mapping[str, Array]
    expected: Mapping[str, Array] = field(default_factory=dict)
    tolerances: Mapping[str, float] = field(default_factory=dict)


def write_folder(
    folder: str | Path,
    sources: Sources,
    *,
    name: str,
    title: str,
    resident: Sequence[str] = (),
    data: Data | None = None,
) -> tuple[HostProgram, list[Path]]:
    """Write all files; returns the host program and the paths. RecordError if that fails.

    Without `data` the check program is there, but finds no files.
    """
    program = emit_program(sources, name, title, resident)
    resident = [t for t in resident if any(a.name == t for a in program.arguments)]
    kernels = Kernels({"kernel.c": sources.kernel_c}, sources.nr_tasklets, sources.stack_bytes)
    return program, write_files(folder, program, kernels, sources.plan.dpus, title, resident, data)


@dataclass(frozen=True, slots=True)
class Kernels:
    """The C files of a DPU program, and what it is linked with."""

    texts: Mapping[str, str]
    nr_tasklets: int
    stack_bytes: int


def write_files(
    folder: str | Path,
    program: HostProgram,
    kernels: Kernels,
    dpus: int,
    title: str,
    resident: Sequence[str],
    data: Data | None = None,
    units: Mapping[str, str] | None = None,
) -> list[Path]:
    """The same for printed texts; `units` are files of the host besides host.c and its header."""
    name = program.name
    hosts = {"host.c": program.host_c, f"{name}.h": program.header, **(units or {})}
    compiled = [file for file in hosts if file.endswith(".c")]
    tolerances = {} if data is None else data.tolerances
    texts = {
        **kernels.texts,
        **hosts,
        "check.c": emit_check(program, resident, tolerances),
        "Makefile": MAKEFILE.format(
            title=title,
            name=name,
            tasklets=kernels.nr_tasklets,
            stack=kernels.stack_bytes,
            dpu_flags=" ".join(DPU_FLAGS),
            host_flags=" ".join(HOST_FLAGS),
            libraries=" ".join(HOST_LIBRARIES),
            kernels=" ".join(kernels.texts),
            hosts=" ".join(compiled),
            headers=" ".join(file for file in hosts if file.endswith(".h")),
        ),
        "README.md": README.format(
            title=title,
            name=name,
            dpus=dpus,
            tasklets=kernels.nr_tasklets,
            prototype=_prototypes(program.header),
            files=_file_rows(program.arguments),
            absent="" if data is not None else "; not written here: put yours there",
            shown_kernels="`, `".join(kernels.texts),
            shown_hosts="`, `".join(hosts),
            compiled="`, `".join(compiled),
        ),
    }
    files = [Path(folder) / file for file in texts]
    try:
        (Path(folder) / "data").mkdir(parents=True, exist_ok=True)
        for path, text in zip(files, texts.values(), strict=True):
            path.write_text(text)
        if data is not None:
            files += _write_data(Path(folder) / "data", program, data)
    except OSError as error:
        raise RecordError(f"{error.filename or folder}: {error.strerror}") from error
    return files


def _file_rows(arguments: Sequence[Tensor]) -> str:
    files = file_names(arguments)
    meanings = {"input": "input", "output": "expected output (`./check -n` needs none)"}
    return "\n".join(
        f"| `{files[t.name]}` | {meanings[t.role]}, {t.dtype} {'x'.join(map(str, t.shape))} |"
        for t in arguments
    )


def _prototypes(header: str) -> str:
    """The functions that a header declares."""
    return "\n".join(line for line in header.splitlines() if line.endswith(");"))


def _write_data(folder: Path, program: HostProgram, data: Data) -> list[Path]:
    written = []
    files = file_names(program.arguments)
    for tensor in program.arguments:
        array = {**data.inputs, **data.expected}.get(tensor.name)
        if array is not None:
            path = folder / files[tensor.name]
            np.ascontiguousarray(array, tensor.dtype).tofile(path)
            written.append(path)
    return written
