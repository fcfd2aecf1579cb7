"""What every call of `tune` and `tune_tasks` checks and tells before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from atim import toolchain
from atim.errors import UsageError
from atim.tuner.cost_model import Samples
from atim.tuner.database import Database, RunKey
from atim.tuner.display import MODES, Display
from atim.tuner.remote import Fleet

__all__ = [
    "REMOTE_WORKERS",
    "display_mode",
    "fleet_of",
    "tell_earlier",
    "tell_others",
]

REMOTE_WORKERS = 64  # workers of a tracker that are used at most, unless asked otherwise


def display_mode(progress: bool | str) -> str:
    """One of `display.MODES`; True is text, False is quiet."""
    if isinstance(progress, bool):
        return "text" if progress else "quiet"
    if progress not in MODES:
        raise UsageError(f"progress: {progress!r} unknown, known: {', '.join(MODES)}")
    return progress


def fleet_of(tracker: str | None, key: str) -> Fleet | None:
    """The workers of a tracker that answers; without one, this machine needs a C compiler."""
    if tracker is None:
        toolchain.find_compiler()
        return None
    fleet = Fleet.at(tracker, key)
    fleet.check()
    return fleet


def tell_others(database: Database, keys: Sequence[RunKey], display: Display) -> None:
    """Say that records for something else are in the folder, and left alone."""
    others = [run.key for run in database.runs() if run.key not in keys]
    wanted = {(key.program, key.target): key.version for key in keys}
    ours = [k for k in others if (k.program, k.target) in wanted]
    if ours and all(k.version != wanted[k.program, k.target] for k in ours):
        display.say("records of another software version are in the folder: they are not used")
    elif others and not ours:
        display.say("records of another program or target are in the folder: they are not used")


def tell_earlier(earlier: Sequence[Samples], display: Display) -> None:
    """Say what other runs teach this one."""
    if earlier:
        count = sum(len(run.seconds) for run in earlier)
        display.say(f"starts from {count} trials of {len(earlier)} earlier runs")
