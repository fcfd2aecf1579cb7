"""Where the cycles of a run went, as text: by cause, by instruction, by transfer size, by C line.

In: a `Program` and the `RunResult` of `Dpu.run(profile=True)`. Out: counts, and a report for
people. Executions of an instruction are issue slots, one cycle each of the whole DPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from upmem_sim._core import OPS
from upmem_sim.dpu import RunResult, TaskletCycles
from upmem_sim.program import Program

__all__ = ["LineCount", "annotated", "instruction_mix", "line_counts", "report"]

_HEADERS = Path(__file__).resolve().parent / "cc" / "include"
CAUSES = tuple(f.name for f in fields(TaskletCycles) if f.name != "instructions")


@dataclass(frozen=True, slots=True)
class LineCount:
    """Issue slots of the instructions of one C line, and how many instructions these are."""

    file: str
    line: int
    slots: int
    instructions: int


def _histogram(result: RunResult) -> NDArray[np.uint64]:
    if result.histogram is None:
        raise ValueError("profile: the run counted nothing; ask for run(profile=True)")
    return result.histogram


def instruction_mix(program: Program, result: RunResult) -> dict[str, int]:
    """Operation -> times executed, most frequent first; they add up to `result.instructions`."""
    counts: Counter[str] = Counter()
    for op, count in zip(program.rows["op"].tolist(), _histogram(result).tolist(), strict=True):
        if count:
            counts[OPS[op] if op < len(OPS) else "unknown"] += count
    return dict(counts.most_common())


def line_counts(program: Program, result: RunResult) -> list[LineCount]:
    """C lines that executed something, hottest first. Code without lines is file "", line 0."""
    slots: Counter[tuple[str, int]] = Counter()
    number: Counter[tuple[str, int]] = Counter()
    for pc, count in enumerate(_histogram(result).tolist()):
        line = program.lines[pc] if pc < len(program.lines) else None
        slots[line or ("", 0)] += count
        number[line or ("", 0)] += 1
    return [LineCount(*at, count, number[at]) for at, count in slots.most_common() if count]


@cache
def _source(file: str) -> tuple[str, ...]:
    try:
        return tuple(Path(file).read_text("utf-8", "replace").splitlines())
    except OSError:
        return ()


def annotated(counts: list[LineCount], file: str, total: int) -> Iterator[str]:
    """The lines of a C file with slots and share of `total`; of the library's headers, and of files
    that are gone, only the lines counted."""
    found = {c.line: c for c in counts if c.file == file}
    text = _source(file)
    yield f"{file}:" if text else f"{file} (source not found):"
    whole = text and _HEADERS not in Path(file).resolve().parents
    for number in range(1, len(text) + 1) if whole else sorted(found):
        body = text[number - 1] if 0 < number <= len(text) else ""
        count = found.get(number)
        left = f"{count.slots:>14,} {count.slots / total:6.1%}" if count else " " * 21
        yield f"{left} {number:>5}  {body}".rstrip()


# ---- the report


def _causes(result: RunResult) -> Iterator[str]:
    yield "cycles by cause"
    yield f"{'tasklet':>9} {'instructions':>13}" + "".join(f"{c:>13}" for c in (*CAUSES, "total"))
    used = [(i, t) for i, t in enumerate(result.tasklets) if t.instructions]
    for index, tasklet in used:
        values = [*(getattr(tasklet, c) for c in CAUSES), tasklet.total]
        yield f"{index:>9} {tasklet.instructions:>13,}" + "".join(f"{v:>13,}" for v in values)
    whole = sum(t.total for _, t in used) or 1
    shares = [sum(getattr(t, c) for _, t in used) / whole for c in CAUSES]
    yield f"{'share':>9} {'':>13}" + "".join(f"{s:>13.1%}" for s in shares)


def _mix(program: Program, result: RunResult) -> Iterator[str]:
    yield "instructions"
    for op, count in instruction_mix(program, result).items():
        yield f"{op:>14} {count:>14,} {count / result.instructions:6.1%}"


def _transfers(result: RunResult) -> Iterator[str]:
    dma = result.dma
    share = dma.busy_cycles / max(1, result.cycles)
    yield (
        f"transfers: {dma.reads:,} reads of {dma.read_bytes:,} bytes, {dma.writes:,} writes of "
        f"{dma.write_bytes:,} bytes, engine busy {share:.1%}"
    )
    for index, count in enumerate(dma.sizes):
        if count:
            yield f"{8 * (index + 1):>8} bytes {count:>14,}"


def _lines(program: Program, result: RunResult, hot: int) -> Iterator[str]:
    counts = line_counts(program, result)
    total = result.instructions or 1
    yield "hot lines"
    for c in counts[:hot]:
        text = _source(c.file)
        body = text[c.line - 1].strip() if 0 < c.line <= len(text) else ""
        place = f"{c.file}:{c.line}" if c.file else "(library and start-up code)"
        yield f"{c.slots:>14,} {c.slots / total:6.1%}  {place}  {body}".rstrip()
    for file in dict.fromkeys(c.file for c in counts if c.file):
        yield ""
        yield from annotated(counts, file, total)


def report(program: Program, result: RunResult, *, hot: int = 10) -> str:
    """The whole profile: causes, mix, transfers, `hot` lines and every C file annotated."""
    idle = 1 - result.instructions / max(1, result.cycles)
    out = [
        f"{result.cycles:,} cycles, {result.instructions:,} instructions, "
        f"{result.seconds * 1e3:.6f} ms, {idle:.1%} of the issue slots empty",
        *([f"HYPOTHETICAL: no UPMEM chip has {result.hypothetical}"] * bool(result.hypothetical)),
        "",
        *_causes(result),
        "",
        *_mix(program, result),
        "",
        *_transfers(result),
        "",
        *_lines(program, result, hot),
    ]
    return "\n".join(out) + "\n"
