"""Kernels of several stages as one DPU program: every stage a unit, and a `main` that picks one.

In: the compiled stages and where each of their tiles lies. Out: C units. The DPUs count their
launches (WRAM keeps its values from launch to launch), so the host tells them nothing between
stages. Tiles of stages lie side by side in MRAM, except where one stage reads what another left;
their WRAM buffers lie in the same place, for only one stage runs at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atim.codegen import Sources
from atim.codegen.chain_padding import BARRIER
from atim.codegen.names import Names

__all__ = ["ACTIVE", "COUNTER", "StageKernel", "dispatcher", "dpu_name", "stage_unit"]

COUNTER = "next_stage"
ACTIVE = "takes_part"
WRAM = "stage_wram"

DISPATCHER = """\
/* Runs one stage at each launch, in turn. */
#include <stdint.h>

#include <attributes.h>
#include <barrier.h>
#include <defs.h>

{declared}

enum {{ NR_STAGES = {count} }};

__host uint32_t {counter}[2]; /* the stage of this launch, and nothing */
{active}{wram}
BARRIER_INIT(all_have_read, NR_TASKLETS);

int main(void) {{
    const uint32_t stage = {counter}[0];
    barrier_wait(&all_have_read);
    if (me() == 0) {{
        {counter}[0] = stage + 1 < NR_STAGES ? stage + 1 : 0;
    }}
{skip}    switch (stage) {{
{cases}
    default: return 0;
    }}
}}
"""

# the buffers of one stage, in place of variables of its own
BUFFERS = """\
struct stage_buffers {{
{fields}
}};
_Static_assert(sizeof(struct stage_buffers) == {size}, "WRAM buffers");
extern __dma_aligned uint8_t {wram}[];
{macros}"""

SKIP = """\
    if (!{active}[stage]) {{
        return 0;
    }}
"""


@dataclass(frozen=True, slots=True)
class StageKernel:
    """A stage's kernel as a unit. `symbols`: name in the stage -> name on the DPU, of tiles and of
    the grid index. `function` is its main."""

    text: str
    function: str
    symbols: Mapping[str, str]
    tasklets: int
    wram_bytes: int = 0


def dpu_name(stage: int, name: str) -> str:
    """What a stage's own variable is called on the DPU."""
    return f"stage_{stage}_{name}"


def stage_unit(sources: Sources, stage: int, homes: Mapping[str, str]) -> StageKernel:
    """The kernel with names of its own; `homes`: tile -> variable of an earlier stage."""
    text, plan = _share_wram(sources.kernel_c, sources.wram_bytes), sources.plan
    names = Names(set(re.findall(r"[A-Za-z_]\w*", text)) | set(homes.values()))
    own = [t.symbol for t in plan.tiles if t.symbol not in homes]
    own += [plan.grid_symbol] if plan.grid_symbol else []
    symbols = dict(homes) | {name: names.new(dpu_name(stage, name)) for name in own}
    for symbol in homes:
        declared = re.compile(rf"^__mram_noinit (.*\b{re.escape(symbol)}\b[^;]*;)", re.M)
        text, count = declared.subn(r"extern __mram_ptr \1", text)
        assert count == 1, f"{symbol}: declared {count} times"
    function = names.new(f"run_stage_{stage}")
    renamed = {**symbols, "main": function, "NR_TASKLETS": str(sources.nr_tasklets)}
    renamed |= {name: dpu_name(stage, name) for name in ("all_tasklets", "mram_word", BARRIER)}
    text = _rename(text, renamed)
    return StageKernel(text, function, symbols, sources.nr_tasklets, sources.wram_bytes)


def _share_wram(text: str, size: int) -> str:
    """The kernel with its WRAM buffers in the memory that all stages use."""
    every = re.compile(
        r"^(/\* .*, shared by the tasklets \*/\n)?"
        r"static (struct \{\n(?:    .*\n)+\} (wram_of)\[NR_TASKLETS\];"
        r"|__dma_aligned \w+ (\w+)(?:\[\d+\])+;(?: /\* .* \*/)?)$",
        re.M,
    )
    found = list(every.finditer(text))
    if not found:
        assert size == 0
        return text
    macros = [
        f"#define {name} (((struct stage_buffers *){WRAM})->{name})"
        for name in (match[3] or match[4] for match in found)
    ]
    fields = "\n".join((match[1] or "") + match[2] for match in found)
    shared = BUFFERS.format(fields=fields, size=size, wram=WRAM, macros="\n".join(macros))
    first, *rest = found
    for match in reversed(rest):
        text = text[: match.start()] + text[match.end() :]
    return text[: first.start()] + shared + text[first.end() :]


def _rename(text: str, names: Mapping[str, str]) -> str:
    """Whole identifiers, but not members of structs, nor what strings hold (asm's constraints)."""
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    string = r'"(?:[^"\\\n]|\\.)*"'
    found = re.compile(rf"({string})|(?<![\w.])(?<!->)({pattern})\b")
    return found.sub(lambda match: match[1] or names[match[2]], text)


def dispatcher(kernels: Sequence[StageKernel], tasklets: int, *, partial: bool) -> str:
    """The unit with `main`. partial: not all DPUs take part in all stages; ACTIVE says in which."""
    cases = []
    for number, kernel in enumerate(kernels):
        some = kernel.tasklets < tasklets
        call = f"me() < {kernel.tasklets} ? {kernel.function}() : 0" if some else None
        cases.append(f"    case {number}: return {call or kernel.function + '()'};")
    flags = f"__host uint32_t {ACTIVE}[{len(kernels) + len(kernels) % 2}];\n" if partial else ""
    size = max(kernel.wram_bytes for kernel in kernels)
    wram = f"__dma_aligned uint8_t {WRAM}[{size}]; /* buffers of the stage that runs */\n"
    return DISPATCHER.format(
        declared="\n".join(f"int {kernel.function}(void);" for kernel in kernels),
        count=len(kernels),
        counter=COUNTER,
        active=flags,
        wram=wram if size else "",
        skip=SKIP.format(active=ACTIVE) if partial else "",
        cases="\n".join(cases),
    )
