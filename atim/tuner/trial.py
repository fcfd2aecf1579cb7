"""What a builder is asked, what it answers, and why a trial can fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["REASONS", "REPEATABLE", "Measurement", "Task", "told_failures"]

MOST_KINDS = 6  # lines on failed trials

REASONS = {
    "schedule": "TVM or the code generator finds the schedule illegal",
    "unsupported": "the code generator can't express it",
    "overflow": "the program does not fit the DPU's memories, known only after linking",
    "toolchain": "a compiler failed",
    "fault": "the kernel broke a rule of the machine",
    "cycles": "the kernel was stopped, far beyond its estimate",
    "mismatch": "wrong numbers",
    "timeout": "building and running took too long",
    "memory": "the builder took too much memory",
    "crash": "the builder process died",
    "error": "an error nobody foresaw",
    "disk": "the disk is full or can't be written: says nothing about the candidate",
}
"""Why a trial failed; "timeout" to "error" are found by the pool."""

REPEATABLE = ("schedule", "unsupported", "overflow", "fault", "cycles", "mismatch")
"""Reasons that the same C text would give again."""


@dataclass(frozen=True, slots=True)
class Task:
    """One candidate; with `whole`, all DPUs run and the complete outputs are compared.

    threads: that simulate, 0 for all cores of the machine. known: digests of kernels that were
    measured before the task is handed out. problem: which program, where a builder works for
    several.
    """

    sketch: str
    decisions: Mapping[str, int]
    whole: bool = False
    threads: int = 1
    known: Collection[str] = ()
    problem: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """status "ok", "failed", or "same": not measured, because its digest was known.

    timing: (h2d, kernel, d2h, host) in seconds, None unless "ok". parts: wall seconds of compile,
    build, run and check. digest: of the emitted C and the transfer plan. trace: of the schedule, as
    TVM's JSON.
    """

    status: str
    reason: str = ""
    message: str = ""
    timing: tuple[float, float, float, float] | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    digest: str = ""
    trace: str = ""


def told_failures(failed: Sequence[tuple[str, str]]) -> list[str]:
    """Why trials failed, from (reason, message) of each: a line for each limit that was broken,
    with what the first of them said, the most frequent first."""
    kinds = Counter(map(_kind, failed))
    first = {_kind(failure): failure for failure in reversed(failed)}
    lines = []
    for kind, count in kinds.most_common(MOST_KINDS):
        reason, message = first[kind]
        such = ", the first" if count > 1 and message else ""
        lines.append(f"  {reason} {count}{such}" + (f": {message}" if message else ""))
    left = len(kinds) - len(lines)
    return lines + ([f"  and {left} more kinds"] if left else [])


def _kind(failure: tuple[str, str]) -> tuple[str, str]:
    """The reason, and how its message begins: the name of the limit, without its numbers."""
    reason, message = failure
    return reason, message.partition(":")[0] if ":" in message else ""
