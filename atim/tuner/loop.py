"""The tuning loop of one program: propose, measure, record, learn; then verify the winner.

In: a pool of builders, a search, a run of the database. Out: the records and the winner. All state
lives in the records: proposals are stored before they are measured, so that a run that is stopped
at any moment goes on with the same candidates. A trial is shown only after it is on disk.

A round is proposed while the last trials of the one before are measured, so that builders need not
wait for it. What it is proposed from follows from the trials' numbers, not from when they end.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from atim.errors import AtimError
from atim.tuner.builder import Job
from atim.tuner.database import Database, Record, RunKey
from atim.tuner.display import Display
from atim.tuner.pool import Pool, Reply
from atim.tuner.proposals import Candidate
from atim.tuner.remote import Fleet
from atim.tuner.replies import lasting, measurement, recorded, reused
from atim.tuner.search import Observation, Proposed, Proposer, early_end, propose_early
from atim.tuner.trial import Measurement, Task

__all__ = ["Baseline", "Entry", "Limits", "Loop", "Result", "start_pool", "tune_records"]


# Reasons of failure that have nothing to do with the candidate, as long as nothing has worked.
TOOLS = ("toolchain", "crash", "error")
# Relative difference between the representatives' kernel time and that of all DPUs that is told.
UNLIKE = 0.02


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one trial in a builder, and of the run of all DPUs that verifies a winner."""

    time_s: float = 60.0
    memory_bytes: int = 4 << 30
    whole_time_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """A hand schedule that is measured beside the search, by name."""

    name: str
    task: Task


@dataclass(frozen=True, slots=True)
class Result:
    """All finished records in order, the verified winner (None: nothing valid), why it ended."""

    records: tuple[Record, ...]
    winner: Record | None
    ended: str
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Entry:
    """What the database keeps of a run beside its records; `program` and `setting` as there."""

    key: RunKey
    program: str = ""
    setting: Mapping[str, Any] = field(default_factory=dict)


def start_pool(
    job: Job, workers: int, limits: Limits, display: Display, fleet: Fleet | None = None
) -> Pool:
    """Builders with these limits that tell the display what keeps them waiting."""
    return Pool(
        job,
        workers=workers,
        time_limit_s=limits.time_s,
        memory_limit_bytes=limits.memory_bytes,
        fleet=fleet,
        say=display.warn,
    )


def tune_records(
    job: Job,
    search: Proposer,
    entry: Entry,
    database: Database,
    display: Display,
    *,
    workers: int = 2,
    limits: Limits | None = None,
    baselines: Sequence[Baseline] = (),
    fleet: Fleet | None = None,
) -> Result:
    """Run the search of an entry to its end, going on from what the database holds."""
    limits = limits or Limits()
    threads = 0 if fleet else workers
    with start_pool(job, workers, limits, display, fleet) as pool:
        loop = Loop(pool, search, database, display, entry, limits, threads, baselines)
        total = search.total()
        if total < search.options.trials:
            plural = "" if total == 1 else "s"
            display.say(f"the space has {total} legal candidate{plural}: all will be tried")
        display.begin(total, {loop.name: loop.records})
        if len(loop.records) < total:
            pool.start()
        while loop.round(on=search.early):
            pass
        display.shrink(len(loop.records))
        display.finish()
        if loop.records and loop.ended != "all trials done":
            display.say(f"stopped after {len(loop.records)} trials: {loop.ended}")
        return loop.finish()


class Loop:
    """One run: its records so far, its next round, its winner.

    problem: what its tasks are called in a pool that works for several programs. threads: that
    simulate when all DPUs run, 0 for all cores of the machine.
    """

    def __init__(
        self,
        pool: Pool,
        search: Proposer,
        database: Database,
        display: Display,
        entry: Entry,
        limits: Limits,
        threads: int,
        baselines: Sequence[Baseline] = (),
        problem: int = 0,
    ) -> None:
        self.search = search
        self._places = {sketch.name: n for n, sketch in enumerate(search.space.sketches)}
        self.name = entry.key.workload
        self.ended = ""
        self._pool = pool
        self._database = database
        self._display = display
        self._limits = limits
        self._threads = threads
        self._problem = problem
        self._run = database.start(entry.key, search.options.trials, entry.program, entry.setting)
        (stored,) = (r for r in database.runs() if r.id == self._run)
        self.facts: dict[str, object] = dict(stored.facts)
        self.records = database.records(self._run)
        self._verified = stored.winner
        self._twins: dict[str, list[int]] = {}
        for record in self.records:
            self._add_twin(record)
        self._baselines = () if "baseline" in self.facts else tuple(baselines)

    def round(self, on: bool = False) -> bool:
        """Measure the next round, or with `on` all of them; False when the search is over, and
        `ended` says why."""
        pending = [r for r in self.records if r.status == "pending"]
        if not pending:
            last = self._last_round() if on else 0
            pending = self.store(propose_early(self.search, self.history(), last))
            if not pending:
                self._measure([], False)
                return False
        self._measure(pending, on)
        return True

    def finish(self) -> Result:
        """Verify the winner and store how the run ended."""
        winner = self._verify()
        self._database.end(self._run, self.ended, None if winner is None else winner.number)
        return Result(tuple(self.records), winner, self.ended, self.facts)

    def history(self, end: int | None = None) -> list[Observation]:
        """The records as the search sees them, those before `end`."""
        return [Observation(self._candidate(r), r.objective_s) for r in self.records[:end]]

    def _candidate(self, record: Record) -> Candidate:
        return Candidate(self._places[record.sketch], tuple(record.decisions.values()))

    def early(self) -> tuple[list[Observation], list[Candidate]] | None:
        """What the next round is proposed from early; None as long as results are missing."""
        end = early_end(len(self.records), self._last_round())
        if any(r.status == "pending" for r in self.records[:end]):
            return None
        return self.history(end), [self._candidate(r) for r in self.records[end:]]

    def _last_round(self) -> int:
        """Trials of it."""
        return sum(r.round == self.records[-1].round for r in self.records)

    def _give_up_if_hopeless(self) -> None:
        """When the tools and not the candidates fail, more candidates are of no use."""
        done = [r for r in self.records if r.status != "pending"]
        if done and all(r.reason in TOOLS for r in done):
            first = done[0]
            raise AtimError(f"no candidate can be built: {first.reason}: {first.message}")

    def _verify(self) -> Record | None:
        """The best record whose complete outputs are right; wrong ones are recorded as such."""
        while True:
            best = min(self.records, key=lambda r: r.objective_s, default=None)
            if best is None or best.timing is None:
                return None
            if best.number == self._verified:
                return best
            self._display.say(f"checking the best (trial {best.number}) on all its DPUs")
            task = Task(best.sketch, best.decisions, True, self._threads, problem=self._problem)
            limit_s = self._limits.whole_time_s
            with closing(self._pool.run([task], time_limit_s=limit_s)) as replies:
                ((_, reply),) = replies
            measured = measurement(reply)
            if measured.timing is not None:
                self._note_whole(best, measured)
                return best
            self._display.say(f"trial {best.number}: {measured.reason}: {measured.message}")
            self._finish(recorded(best, measured, best.wall_s + reply.wall_s), None)

    def _note_whole(self, best: Record, measured: Measurement) -> None:
        """How all DPUs compare with the representatives that the search measured."""
        assert best.timing is not None
        assert measured.timing is not None
        cycles = measured.counters.get("cycles", 0.0)
        spread = measured.counters.get("class_spread_cycles", 0.0)
        self.facts["whole"] = {
            "trial": best.number,
            "timing": list(measured.timing),
            # of two DPUs whose tiles are clipped alike, relative to the slowest one
            "class_spread": spread / cycles if cycles else 0.0,
        }
        self._database.note(self._run, self.facts)
        found, true = best.timing[1], measured.timing[1]
        if abs(true / found - 1) > UNLIKE if found else true:
            self._display.say(
                f"trial {best.number}: kernel {found * 1e3:.3f} ms on representative DPUs,"
                f" {true * 1e3:.3f} ms on all: their work depends on their numbers"
            )

    def store(self, proposed: Proposed) -> list[Record]:
        """Keep a round that was proposed; its records, none when the search is over."""
        candidates, self.ended = proposed
        first = len(self.records)
        number_of_round = self.records[-1].round + 1 if self.records else 0
        fresh = []
        for number, candidate in enumerate(candidates, first):
            sketch = self.search.space.sketches[candidate.sketch]
            names = (decision.name for decision in sketch.decisions)
            decisions = dict(zip(names, candidate.values, strict=True))
            fresh.append(Record(number, number_of_round, sketch.name, decisions))
        if fresh:
            self._database.propose(self._run, fresh)
        self.records += fresh
        return fresh

    def _measure(self, pending: Sequence[Record], on: bool) -> None:
        """Measure some candidates, and with `on` the rounds after them; the baselines come along
        the first time."""
        # grows while tasks wait: those that are handed out later know more
        digests = set(self._twins)
        baselines, self._baselines = self._baselines, ()
        asked: list[Record | Baseline] = []
        tasks: list[Task] = []

        def add(records: Sequence[Record]) -> None:
            asked.extend(records)
            tasks.extend(
                Task(r.sketch, r.decisions, known=digests, problem=self._problem) for r in records
            )

        add(pending)
        asked.extend(baselines)
        tasks += [replace(baseline.task, problem=self._problem) for baseline in baselines]
        by_hand: dict[str, Measurement] = {}

        def heard(index: int, reply: Reply) -> None:
            measured = measurement(reply)
            if lasting(measured) and isinstance(asked[index], Record):
                digests.add(measured.digest)

        replying = self._pool.run(tasks, heard=heard)
        with closing(replying) as replies, _Ahead(self) as ahead:
            for done, (index, reply) in enumerate(replies, 1):
                measured = measurement(reply)
                if measured.reason == "disk":
                    raise AtimError(f"{measured.message}: make room and run the same again")
                what = asked[index]
                if isinstance(what, Baseline):
                    by_hand[what.name] = measured
                else:
                    self._take(what, measured, reply.wall_s)
                if on:
                    add(ahead.round(wait=done == len(tasks)))
        self._note_baseline({b.name: by_hand[b.name] for b in baselines})

    def _take(self, record: Record, measured: Measurement, wall_s: float) -> None:
        """Store what became of a trial, and show it."""
        record = recorded(record, measured, wall_s)
        if measured.status == "same":
            record = reused(record, self.records[self._twins[measured.digest][0]])
        self._finish(record, measured.trace)
        self._display.trial(self.name, self.records[record.number])
        if all(r.status != "pending" for r in self.records if r.round == record.round):
            self._display.round_over(self.name, record.round)
            self._give_up_if_hopeless()

    def _add_twin(self, record: Record) -> None:
        if lasting(record):
            twins = self._twins.setdefault(record.digest, [])
            if record.number not in twins:
                bisect.insort(twins, record.number)

    def _note_baseline(self, measured: Mapping[str, Measurement]) -> None:
        """The fastest hand schedule is a fact of the run, not a trial."""
        best: tuple[str, list[float]] | None = None
        for name, m in measured.items():
            if m.timing is None:
                self._display.say(f"{name}: {m.reason}: {m.message}")
            elif best is None or sum(m.timing) < sum(best[1]):
                best = name, list(m.timing)
        if best is not None:
            self.facts["baseline"] = {"name": best[0], "timing": best[1]}
            self._database.note(self._run, self.facts)

    def _finish(self, record: Record, trace: str | None) -> None:
        """Store a result. Of trials with the same C text the first one counts as measured,
        whichever was, so that records do not depend on the number of workers."""
        self.records[record.number] = record
        self._add_twin(record)
        twins = self._twins.get(record.digest, [])
        for number in twins:
            twin = self.records[number]
            same_as = None if number == twins[0] else twins[0]
            if twin.same_as != same_as:
                self.records[number] = twin = replace(twin, same_as=same_as)
                if number != record.number:
                    self._database.finish(self._run, twin)
        self._database.finish(self._run, self.records[record.number], trace)


class _Ahead:
    """Proposes rounds in a thread of its own while builders work; a context manager."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._thread = ThreadPoolExecutor(1)
        self._proposed: Future[Proposed] | None = None
        self._over = False

    def round(self, wait: bool) -> list[Record]:
        """The records of another round if there is one already, or `wait` says to wait for it."""
        loop = self._loop
        if self._over:
            return []
        if self._proposed is None:
            early = loop.early()
            if early is None:
                return []
            self._proposed = self._thread.submit(loop.search.propose, *early)
        if not (wait or self._proposed.done()):
            return []
        records = loop.store(self._proposed.result())
        self._proposed, self._over = None, not records
        return records

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)
