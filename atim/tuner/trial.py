"""What a builder is asked, what it answers, and why a trial can fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["REASONS", "Measurement", "Task"]

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
}
"""Why a trial failed; the last four are found by the pool."""


@dataclass(frozen=True, slots=True)
class Task:
    """One candidate; with `whole`, all DPUs run and the complete outputs are compared."""

    sketch: str
    decisions: Mapping[str, int]
    whole: bool = False
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Measurement:
    """status "ok" or "failed". timing: (h2d, kernel, d2h, host) in seconds, None when it failed.

    parts: wall seconds of compile, build, run and check.
    """

    status: str
    reason: str = ""
    message: str = ""
    timing: tuple[float, float, float, float] | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
