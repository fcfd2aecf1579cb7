"""The tuning loop of one program: propose, measure, record, learn; then verify the winner.

In: a pool of builders, a search, a run of the database. Out: the records and the winner. All state
lives in the records: proposals are stored before they are measured, so that a run that is stopped
at any moment goes on with the same candidates. A trial is shown only after it is on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from atim.tuner.search import Observation, Proposer
from atim.tuner.trial import REPEATABLE, Measurement, Task

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
        say=display.say,
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
        while loop.round():
            pass
        display.shrink(len(loop.records))
        display.finish()
        if loop.ended != "all trials done":
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
        self._baselines = () if "baseline" in self.facts else tuple(baselines)

    def round(self) -> bool:
        """Measure the next round; False when the search is over, and `ended` says why."""
        pending = [r for r in self.records if r.status == "pending"]
        if not pending:
            proposed, self.ended = self.search.propose(self.history())
            if not proposed:
                self._measure([])
                return False
            pending = self._store(proposed)
            self.records += pending
        self._measure(pending)
        self._give_up_if_hopeless()
        return True

    def finish(self) -> Result:
        """Verify the winner and store how the run ended."""
        winner = self._verify()
        self._database.end(self._run, self.ended, None if winner is None else winner.number)
        return Result(tuple(self.records), winner, self.ended, self.facts)

    def history(self) -> list[Observation]:
        """The records as the search sees them."""
        places = {sketch.name: n for n, sketch in enumerate(self.search.space.sketches)}
        return [
            Observation(Candidate(places[r.sketch], tuple(r.decisions.values())), r.objective_s)
            for r in self.records
        ]

    def _give_up_if_hopeless(self) -> None:
        """When the tools and not the candidates fail, more candidates are of no use."""
        if self.records and all(r.reason in TOOLS for r in self.records):
            first = self.records[0]
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
            measured = _measurement(reply)
            if measured.timing is not None:
                self._note_whole(best, measured)
                return best
            self._display.say(f"trial {best.number}: {measured.reason}: {measured.message}")
            self._finish(_recorded(best, measured, best.wall_s + reply.wall_s), None)

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

    def _store(self, proposed: Iterable[Candidate]) -> list[Record]:
        first = len(self.records)
        number_of_round = self.records[-1].round + 1 if self.records else 0
        fresh = []
        for number, candidate in enumerate(proposed, first):
            sketch = self.search.space.sketches[candidate.sketch]
            names = (decision.name for decision in sketch.decisions)
            decisions = dict(zip(names, candidate.values, strict=True))
            fresh.append(Record(number, number_of_round, sketch.name, decisions))
        self._database.propose(self._run, fresh)
        return fresh

    def _measure(self, pending: Sequence[Record]) -> None:
        """Measure some candidates; the baselines come along the first time."""
        known = self._measured_before(pending)
        digests = tuple(known)
        tasks = [Task(r.sketch, r.decisions, known=digests, problem=self._problem) for r in pending]
        baselines, self._baselines = self._baselines, ()
        tasks += [replace(baseline.task, problem=self._problem) for baseline in baselines]
        by_hand: dict[str, Measurement] = {}
        with closing(self._pool.run(tasks)) as replies:
            for index, reply in replies:
                measured = _measurement(reply)
                if measured.reason == "disk":
                    raise AtimError(f"{measured.message}: make room and run the same again")
                if index >= len(pending):
                    by_hand[baselines[index - len(pending)].name] = measured
                    continue
                record = _recorded(pending[index], measured, reply.wall_s)
                if measured.status == "same":
                    record = _reused(record, known[measured.digest])
                self._finish(record, measured.trace)
                self._display.trial(self.name, record)
        self._note_baseline({b.name: by_hand[b.name] for b in baselines})
        if pending:
            self._display.round_over(self.name, pending[0].round)

    def _measured_before(self, pending: Sequence[Record]) -> dict[str, Record]:
        """Records of earlier rounds whose result the same C text would have again, by digest.

        Not those of the same round: which of two comes first depends on the number of workers.
        """
        now = pending[0].round if pending else 0
        return {
            r.digest: r
            for r in reversed(self.records)
            if r.digest and r.round < now and (r.status == "ok" or r.reason in REPEATABLE)
        }

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
        self._database.finish(self._run, record, trace)
        self.records[record.number] = record


def _measurement(reply: Reply) -> Measurement:
    if isinstance(reply.value, Measurement):
        return reply.value
    return Measurement("failed", reply.kind, str(reply.value))


def _recorded(record: Record, measured: Measurement, wall_s: float) -> Record:
    parts = {f"{stage}_wall_s": seconds for stage, seconds in measured.parts.items()}
    return replace(
        record,
        status=measured.status,
        reason=measured.reason,
        message=measured.message,
        timing=measured.timing,
        counters={**measured.counters, **parts},
        wall_s=wall_s,
        digest=measured.digest or record.digest,
    )


def _reused(record: Record, source: Record) -> Record:
    """A record with the result of another one of the same digest; wall times are its own."""
    counters = {n: v for n, v in source.counters.items() if not n.endswith("_wall_s")}
    return replace(
        record,
        status=source.status,
        reason=source.reason,
        message=source.message,
        timing=source.timing,
        counters={**counters, **record.counters},
        same_as=source.number if source.same_as is None else source.same_as,
    )
