"""Records of several folders in one. Runs stay what they are: each under its own key.

Two runs of the same key are one search done twice, in part or in whole: what both tried is kept
once, the better known outcome of the two; what only one tried is added behind. So the next tune of
that key starts with all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from atim.errors import UsageError
from atim.tuner.database import Database, Record, StoredRun
from atim.tuner.trial import REPEATABLE

__all__ = ["Merged", "add_run", "merge"]

# Trials of both, then trials added, of one run.
Merged = tuple[StoredRun, int, int]


def merge(sources: Sequence[Path], into: Path) -> list[Merged]:
    """Copy every run of some folders into another, which may hold records already.

    Returns (run, trials that were known, trials that were added) of each. Raises RecordError when a
    folder can't be read or written, is damaged or of another schema version; then no run is half
    copied. UsageError when a source is also the destination.
    """
    for source in sources:
        if source.resolve() == into.resolve():
            raise UsageError(f"merge: {source} is both source and destination")
        Database(source, write=False).close()  # before anything is written
    done = []
    with Database(into, write=True) as target:
        for source in sources:
            with Database(source, write=False) as database:
                for run in database.runs():
                    records = database.records(run.id)
                    traces = {r.number: database.trace(run.id, r.number) for r in records}
                    done.append(add_run(target, run, records, traces))
    return done


def add_run(
    database: Database, run: StoredRun, records: Sequence[Record], traces: Mapping[int, str]
) -> Merged:
    """Add a run of another file; `traces` by trial number."""
    present = {stored.key: stored for stored in database.runs()}.get(run.key)
    number = database.start(run.key, run.trials, run.program, run.setting)
    if present is None:
        database.add(number, records, traces)
        database.note(number, run.facts)
        database.end(number, run.ended, run.winner)
        return run, 0, len(records)
    own = database.records(number)
    places = {_candidate(r): r for r in own}
    known = 0
    changed: dict[int, str] = {}
    fresh: list[Record] = []
    for record in records:
        twin = places.get(_candidate(record))
        if twin is None:
            place = len(own) + len(fresh)
            fresh.append(replace(record, number=place, same_as=None))
            changed[place] = traces[record.number]
            continue
        known += 1
        if _certainty(record) > _certainty(twin):
            better = replace(record, number=twin.number, round=twin.round, same_as=None)
            database.finish(number, better, traces[record.number])
    behind = 1 + max((r.round for r in own), default=-1)
    fresh = [replace(r, round=behind + r.round) for r in fresh]
    database.add(number, fresh, changed)
    database.note(number, {**run.facts, **present.facts})
    # The next tune says how the search ends, and verifies a winner that is not verified.
    database.end(number, "" if fresh else present.ended, present.winner)
    return run, known, len(fresh)


def _candidate(record: Record) -> tuple[str, tuple[tuple[str, int], ...]]:
    return record.sketch, tuple(sorted(record.decisions.items()))


def _certainty(record: Record) -> int:
    """How much a record tells: a wrong result was found out by running all DPUs; time-outs and
    crashes may have been the machine's fault."""
    if record.status == "pending":
        return 0
    if record.reason == "mismatch":
        return 3
    return 2 if record.status == "ok" or record.reason in REPEATABLE else 1
