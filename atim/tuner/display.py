"""Progress of a run on standard error: a bar on a terminal, one line a round elsewhere, or nothing.

Shown are trials done, valid and failed, and the best total so far with its breakdown, all in ms.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tqdm import tqdm

from atim.tuner.database import Record

__all__ = ["Display", "breakdown"]

PHASES = ("h2d", "kernel", "d2h", "host")


def breakdown(timing: Sequence[float]) -> str:
    """'2.469 ms (h2d 0.648, kernel 0.910, d2h 0.911, host 0.000)' of seconds."""
    parts = ", ".join(f"{n} {s * 1e3:.3f}" for n, s in zip(PHASES, timing, strict=True))
    return f"{sum(timing) * 1e3:.3f} ms ({parts})"


class Display:
    """enabled=False says nothing at all. A context manager."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._bar: tqdm | None = None
        self._total = 0
        self._done = 0
        self._failed = 0
        self._best: Record | None = None

    def begin(self, total: int, records: Sequence[Record]) -> None:
        """Start with the trials to be made in all, and those that are there already."""
        self._total = total
        for record in records:
            self._count(record)
        if self._done:
            self.say(f"resumed: {self._done} of {total} trials are recorded already")
        if self._enabled and sys.stderr.isatty():
            self._bar = tqdm(
                total=total,
                initial=min(self._done, total),
                unit="trial",
                dynamic_ncols=True,
                bar_format="{n_fmt}/{total_fmt} |{bar:10}| {elapsed}<{remaining}{postfix}",
            )
            self._bar.set_postfix_str(self._state())

    def trial(self, record: Record) -> None:
        """A trial has ended."""
        self._count(record)
        if self._bar is not None:
            self._bar.set_postfix_str(self._state(), refresh=False)
            self._bar.update()

    def round_over(self) -> None:
        """All trials of a round have ended."""
        if self._bar is None:
            self.say(f"{self._done}/{self._total} trials: {self._state()}")

    def shrink(self, total: int) -> None:
        """Fewer trials than planned will be made."""
        self._total = total
        if self._bar is not None:
            self._bar.total = total
            self._bar.refresh()

    def say(self, line: str) -> None:
        """A line that stays."""
        if self._enabled:
            tqdm.write(line, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _count(self, record: Record) -> None:
        if record.status == "pending":
            return
        self._done += 1
        self._failed += record.status == "failed"
        if record.timing and (not self._best or record.objective_s < self._best.objective_s):
            self._best = record

    def _state(self) -> str:
        valid = self._done - self._failed
        best = "none yet"
        if self._best is not None and self._best.timing is not None:
            best = breakdown(self._best.timing)
        return f"best {best}, {valid} valid, {self._failed} failed"
