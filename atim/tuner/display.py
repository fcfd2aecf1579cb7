"""Progress of a run: a bar on a terminal or in a notebook, one line a round elsewhere, JSON lines.

Shown are trials done, valid and failed, the round, the best total so far with its breakdown in ms,
trials a second and the time left. Text goes to standard error, JSON lines to standard output. Rates
are taken from the monotonic clock, and of the trials of this call alone.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import TqdmExperimentalWarning, TqdmWarning

from atim.tuner.database import Record

with warnings.catch_warnings():  # without ipywidgets a notebook gets the terminal's bar
    warnings.simplefilter("ignore", TqdmWarning)
    warnings.simplefilter("ignore", TqdmExperimentalWarning)
    from tqdm.auto import tqdm

__all__ = ["MODES", "PHASES", "Display", "breakdown"]

PHASES = ("h2d", "kernel", "d2h", "host")
MODES = {
    "text": "a bar on a terminal and in a notebook, else one line a round",
    "json": "one JSON object a line on standard output: start, trial, round, note, end",
    "quiet": "nothing but what keeps the run waiting",
}
REFRESH_S = 0.1


def breakdown(timing: Sequence[float]) -> str:
    """'2.469 ms (h2d 0.648, kernel 0.910, d2h 0.911, host 0.000)' of seconds."""
    parts = ", ".join(f"{n} {s * 1e3:.3f}" for n, s in zip(PHASES, timing, strict=True))
    return f"{sum(timing) * 1e3:.3f} ms ({parts})"


class Display:
    """mode: one of MODES. weights: of several programs (or stages, as `what` says), by name: the
    best total is their weighted sum. A context manager."""

    def __init__(
        self,
        mode: str = "text",
        weights: Mapping[str, float] | None = None,
        what: str = "programs",
    ) -> None:
        self._mode = mode
        self._what = what
        self._weights = dict(weights or {})
        self._bar: Any = None
        self._total = 0
        self._done = 0
        self._failed = 0
        self._round = 0
        self._measured = 0  # in this call
        self._since = self._shown = time.monotonic()
        self._best: dict[str, Record] = {}

    def begin(self, total: int, records: Mapping[str, Sequence[Record]]) -> None:
        """Start with the trials to be made in all, and those that are there already by program."""
        self._total = total
        for name, present in records.items():
            for record in present:
                self._count(name, record)
        self._since = time.monotonic()
        if self._done:
            self.say(f"resumed: {self._done} of {total} trials are recorded already")
        self._tell({"event": "start", "trials": total, "done": self._done})
        if self._mode == "text" and (sys.stderr.isatty() or "ipykernel" in sys.modules):
            # tqdm's own times follow the wall clock, which may jump: not shown
            self._bar = tqdm(
                total=total,
                initial=min(self._done, total),
                dynamic_ncols=True,
                bar_format="{n_fmt}/{total_fmt} |{bar:10}| {desc}",
            )
            self._refresh()

    def trial(self, name: str, record: Record) -> None:
        """A trial of a program has ended, and is recorded."""
        self._count(name, record)
        self._measured += 1
        timing = None if record.timing is None else dict(zip(PHASES, record.timing, strict=True))
        self._tell(
            {
                "event": "trial",
                "program": name,
                **{k: getattr(record, k) for k in ("number", "round", "status")},
                **{k: getattr(record, k) for k in ("reason", "message", "sketch")},
                "decisions": dict(record.decisions),
                "total_s": None if timing is None else record.objective_s,
                "timing_s": timing,
                "wall_s": record.wall_s,
                "same_as": record.same_as,
            }
        )
        if self._bar is not None:
            self._bar.n = min(self._done, self._total)
            if time.monotonic() - self._shown > REFRESH_S:
                self._refresh()

    def round_over(self, name: str, number: int) -> None:
        """All trials of a round have ended."""
        self._round += 1
        if self._bar is not None:
            self._refresh()
        elif self._mode == "text":
            self.say(f"{self._done}/{self._total} trials: {self._state()}")
        total = self._best_total()
        self._tell(
            {
                "event": "round",
                "program": name,
                "round": number,
                "done": self._done,
                "failed": self._failed,
                "best_s": total,
                "trials_per_s": self._rate(),
                "left_s": self._left_s(),
            }
        )

    def shrink(self, total: int) -> None:
        """Fewer trials than planned will be made."""
        self._total = total
        if self._bar is not None:
            self._bar.total = total
            self._refresh()

    def say(self, line: str) -> None:
        """A line that stays."""
        if self._mode == "text":
            tqdm.write(line, file=sys.stderr)
        self._tell({"event": "note", "text": line})

    def warn(self, line: str) -> None:
        """A line that quiet displays show too: nothing goes on until something is done about it."""
        if self._mode == "quiet":
            print(f"atim: {line}", file=sys.stderr, flush=True)
        self.say(line)

    def end(self, **result: Any) -> None:
        """The last JSON line."""
        self._tell({"event": "end", **result})

    def finish(self) -> None:
        """No more trials; lines may follow."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def _tell(self, event: Mapping[str, Any]) -> None:
        if self._mode == "json":
            print(json.dumps(event), flush=True)

    def _refresh(self) -> None:
        self._shown = time.monotonic()
        self._bar.set_description_str(self._state(), refresh=False)
        self._bar.refresh()

    def _count(self, name: str, record: Record) -> None:
        if record.status == "pending":
            return
        self._done += 1
        self._failed += record.status == "failed"
        best = self._best.get(name)
        if record.timing and (best is None or record.objective_s < best.objective_s):
            self._best[name] = record

    def _best_total(self) -> float | None:
        """Seconds of the best schedules, weighted; None while a program has none."""
        if not self._best or any(name not in self._best for name in self._weights):
            return None
        return sum(self._weights.get(n, 1.0) * r.objective_s for n, r in self._best.items())

    def _rate(self) -> float:
        return self._measured / max(time.monotonic() - self._since, 1e-6)

    def _left_s(self) -> float | None:
        rate = self._rate()
        return max(self._total - self._done, 0) / rate if rate else None

    def _state(self) -> str:
        valid = self._done - self._failed
        best, total = "none yet", self._best_total()
        if self._weights and total is not None:
            best = f"{total * 1e3:.3f} ms for all {len(self._weights)} {self._what}"
        elif total is not None:
            (record,) = self._best.values()
            assert record.timing is not None
            best = breakdown(record.timing)
        elif self._weights:
            best = f"of {len(self._best)} of {len(self._weights)} {self._what}"
        left = self._left_s()
        speed = "" if left is None else f", {self._rate():.1f} trials/s, {_clock(left)} left"
        return f"best {best}, {valid} valid, {self._failed} failed, round {self._round}{speed}"


def _clock(seconds: float) -> str:
    """'1:02:03' or '2:03'."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
