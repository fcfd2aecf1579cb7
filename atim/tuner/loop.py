"""The tuning loop: propose, measure, record, learn; then verify the winner as a whole.

In: a job for the builders, a search, a run's key and folder. Out: the records and the winner. All
state lives in the records: proposals are stored before they are measured, so that a run that is
stopped at any moment goes on with the same candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from atim.errors import AtimError
from atim.tuner.builder import Job
from atim.tuner.database import Database, Record, RunKey
from atim.tuner.display import Display
from atim.tuner.pool import Pool, Reply
from atim.tuner.proposals import Candidate
from atim.tuner.search import Observation, Proposer
from atim.tuner.trial import Measurement, Task

__all__ = ["Baseline", "Limits", "Result", "tune_records"]


# Reasons of failure that have nothing to do with the candidate, as long as nothing has worked.
TOOLS = ("toolchain", "crash", "error")


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


def tune_records(
    job: Job,
    search: Proposer,
    key: RunKey,
    database: Database,
    display: Display,
    *,
    workers: int = 2,
    limits: Limits | None = None,
    baseline: Baseline | None = None,
) -> Result:
    """Run the search of `key` to its end, going on from what the database holds."""
    limits = limits or Limits()
    run = database.start(key, search.options.trials)
    with Pool(
        job,
        workers=workers,
        time_limit_s=limits.time_s,
        memory_limit_bytes=limits.memory_bytes,
    ) as pool:
        loop = _Loop(pool, search, database, run, display, workers, limits)
        loop.baseline = None if "baseline" in loop.facts else baseline
        ended = loop.search_all()
        winner = loop.verify()
        database.end(run, ended, None if winner is None else winner.number)
    return Result(tuple(loop.records), winner, ended, loop.facts)


class _Loop:
    def __init__(
        self,
        pool: Pool,
        search: Proposer,
        database: Database,
        run: int,
        display: Display,
        workers: int,
        limits: Limits,
    ) -> None:
        self.pool = pool
        self.search = search
        self.database = database
        self.run = run
        self.display = display
        self.workers = workers
        self.limits = limits
        self.records = database.records(run)
        (stored,) = (r for r in database.runs() if r.id == run)
        self.facts: dict[str, object] = dict(stored.facts)
        self.verified = stored.winner
        self.baseline: Baseline | None = None

    def search_all(self) -> str:
        """Measure rounds until the search is over; returns why it is."""
        total = self.search.total()
        if total < self.search.options.trials:
            plural = "" if total == 1 else "s"
            self.display.say(f"the space has {total} legal candidate{plural}: all will be tried")
        self.display.begin(total, self.records)
        fresh = [r for r in self.records if r.status == "pending"]
        while True:
            if fresh:
                self._measure(fresh)
                self._give_up_if_hopeless()
            proposed, why = self.search.propose(self._history())
            if not proposed:
                break
            fresh = self._store(proposed)
            self.records += fresh
        self._measure([])
        self.display.shrink(len(self.records))
        self.display.close()
        if why != "all trials done":
            self.display.say(f"stopped after {len(self.records)} trials: {why}")
        return why

    def _give_up_if_hopeless(self) -> None:
        """When the tools and not the candidates fail, more candidates are of no use."""
        if self.records and all(r.reason in TOOLS for r in self.records):
            first = self.records[0]
            raise AtimError(f"no candidate can be built: {first.reason}: {first.message}")

    def verify(self) -> Record | None:
        """The best record whose complete outputs are right; wrong ones are recorded as such."""
        while True:
            best = min(self.records, key=lambda r: r.objective_s, default=None)
            if best is None or best.timing is None:
                return None
            if best.number == self.verified:
                return best
            self.display.say(f"checking the best (trial {best.number}) on all its DPUs")
            task = Task(best.sketch, best.decisions, whole=True, threads=self.workers)
            limit_s = self.limits.whole_time_s
            with closing(self.pool.run([task], time_limit_s=limit_s)) as replies:
                ((_, reply),) = replies
            measured = _measurement(reply)
            if measured.status == "ok":
                return best
            self.display.say(f"trial {best.number}: {measured.reason}: {measured.message}")
            self._finish(_recorded(best, measured, best.wall_s + reply.wall_s))

    def _history(self) -> list[Observation]:
        places = {sketch.name: n for n, sketch in enumerate(self.search.space.sketches)}
        return [
            Observation(Candidate(places[r.sketch], tuple(r.decisions.values())), r.objective_s)
            for r in self.records
        ]

    def _store(self, proposed: Iterable[Candidate]) -> list[Record]:
        first = len(self.records)
        number_of_round = self.records[-1].round + 1 if self.records else 0
        fresh = []
        for number, candidate in enumerate(proposed, first):
            sketch = self.search.space.sketches[candidate.sketch]
            names = (decision.name for decision in sketch.decisions)
            decisions = dict(zip(names, candidate.values, strict=True))
            fresh.append(Record(number, number_of_round, sketch.name, decisions))
        self.database.propose(self.run, fresh)
        return fresh

    def _measure(self, pending: Sequence[Record]) -> None:
        """Measure some candidates; the baseline comes along the first time."""
        tasks = [Task(r.sketch, r.decisions) for r in pending]
        baseline, self.baseline = self.baseline, None
        if baseline is not None:
            tasks.append(baseline.task)
        with closing(self.pool.run(tasks)) as replies:
            for index, reply in replies:
                measured = _measurement(reply)
                if index < len(pending):
                    record = _recorded(pending[index], measured, reply.wall_s)
                    self._finish(record)
                    self.display.trial(record)
                else:
                    assert baseline is not None
                    self._note_baseline(baseline.name, measured)
        if pending:
            self.display.round_over()

    def _note_baseline(self, name: str, measured: Measurement) -> None:
        """The hand schedule is a fact of the run, not a trial."""
        if measured.timing is None:
            self.display.say(f"{name}: {measured.reason}: {measured.message}")
            return
        self.facts["baseline"] = {"name": name, "timing": list(measured.timing)}
        self.database.note(self.run, self.facts)

    def _finish(self, record: Record) -> None:
        self.database.finish(self.run, record)
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
    )
