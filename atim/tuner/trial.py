"""What a builder is asked, what it answers, and why a trial can fail."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

__all__ = ["REASONS", "REPEATABLE", "Measurement", "Task"]

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
