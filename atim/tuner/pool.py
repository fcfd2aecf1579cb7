"""A persistent pool of builders, here or on other machines, with limits for each task.

In: a picklable job and tasks. Out: one `Reply` a task, whatever happens to the process that has it:
a task that takes too long, takes too much memory or takes its process down costs itself, and the
process is replaced. With a tracker, builders are those of `atim worker`: as many as are free, taken
as they come. A worker that is lost costs its task a retry, and nothing else.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from atim.errors import AtimError
from atim.tuner.builder import Job
from atim.tuner.process import Process, Reply, StartError
from atim.tuner.remote import Fleet, RemoteJob

__all__ = ["Pool", "Reply"]

POLL_S = 0.2  # how often limits are looked at
CRASHES = 2  # of one task, after which it is to blame
KILLS = 3  # the same for SIGKILL, which may have come from anywhere
LOSSES = 5  # workers that were lost with one task, after which it is to blame
FAILED_STARTS = 2  # in a row
WAITING = 2  # processes at a time that wait for a worker to be free
LOST_MARGIN_S = 60.0  # how much later than its limit a worker's reply may come
QUIET_S = 10.0  # without any worker, before that is mentioned and now and then looked into
LONELY_S = 300.0  # while the tracker knows of none either, before that is an error


@dataclass(slots=True)
class _Tries:
    """What has gone wrong with one task so far."""

    crashes: int = 0
    losses: int = 0

    def again(self, reply: Reply) -> bool:
        """Count a reply; True when the task shall be given to another process."""
        if reply.kind == "lost":
            self.losses += 1
            return self.losses < LOSSES
        if reply.kind == "crash":
            self.crashes += 1
            return self.crashes < (KILLS if "SIGKILL" in str(reply.value) else CRASHES)
        return False


class Pool:
    """Builders for one job; a context manager. Not to be shared by threads.

    workers: processes at most. time_limit_s: for each task, unless `run` says otherwise.
    memory_limit_bytes: resident memory of one builder with its compilers. fleet: where workers of
    other machines are found, None to work here; without any for long, `run` gives up. say: told in
    one line what keeps it waiting. A task whose process crashed gets one more attempt.
    """

    def __init__(
        self,
        job: Job,
        *,
        workers: int = 2,
        time_limit_s: float = 60.0,
        memory_limit_bytes: int = 4 << 30,
        fleet: Fleet | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._job = job
        self._time_limit_s = time_limit_s
        self._memory_limit_bytes = memory_limit_bytes
        self._fleet = fleet
        self._say = say
        self._slots: list[Process | None] = [None] * workers
        self._failed_starts = 0
        self._known_at = self._looked_at = 0.0  # of workers: last known, last looked for
        self._mentioned = False

    def start(self) -> None:
        """Let builders of this machine start, if they have not: the first tasks need not wait."""
        if self._fleet is None:
            for n, process in enumerate(self._slots):
                if process is None:
                    self._slots[n] = self._start()

    def pids(self) -> list[int]:
        """Of the builder processes on this machine."""
        return [p.pid for p in self._slots if p is not None and not p.dead]

    def run(
        self,
        tasks: Sequence[Any],
        *,
        time_limit_s: float | None = None,
        heard: Callable[[int, Reply], None] = lambda index, reply: None,
    ) -> Generator[tuple[int, Reply], None, None]:
        """Yield (index, reply) for every task, as they end. AtimError when builders can't start.

        Tasks that are appended to `tasks` in the meantime are done as well. heard: gets each
        (index, reply) before its builder gets another task, which may depend on it; it should take
        no time.
        """
        limit = time_limit_s or self._time_limit_s
        waiting: deque[int] = deque()
        tries: list[_Tries] = []
        ended = 0
        self._known_at = self._looked_at = time.monotonic()
        self._mentioned = False
        try:
            while ended < len(tasks):
                waiting.extend(range(len(tries), len(tasks)))
                tries += [_Tries() for _ in tasks[len(tries) :]]
                self._hand_out(tasks, waiting, limit)
                replies = []
                for index, reply in self._collect():
                    if tries[index].again(reply):
                        waiting.appendleft(index)
                        continue
                    heard(index, reply)
                    replies.append((index, _blamed(reply)))
                # What becomes of the replies takes time, for which builders need not wait.
                self._hand_out(tasks, waiting, limit)
                ended += len(replies)
                yield from replies
        finally:
            # Left early: what is still being worked on would answer into the next run.
            for busy in self._slots:
                if busy is not None and busy.task is not None:
                    busy.kill()

    def close(self) -> None:
        """Kill every builder and what it started."""
        for process in self._slots:
            if process is not None:
                process.kill()
        self._slots = [None] * len(self._slots)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _hand_out(self, tasks: Sequence[Any], waiting: deque[int], limit_s: float) -> None:
        for n, process in enumerate(self._slots):
            if not waiting:
                return
            if process is None or process.dead:
                self._slots[n] = process = self._start()
            if process is not None and process.started and process.task is None:
                index = waiting.popleft()
                process.give(index, tasks[index], limit_s)

    def _start(self) -> Process | None:
        """A new process, unless enough of them wait for a worker already."""
        if self._fleet is None:
            return Process(self._job)
        unready = [p for p in self._slots if p is not None and not p.dead and not p.started]
        if len(unready) >= WAITING:
            return None
        job = RemoteJob.of(self._job, self._fleet, self._memory_limit_bytes)
        return Process(job, far=True, start_limit_s=float("inf"), late_s=LOST_MARGIN_S)

    def _collect(self) -> list[tuple[int, Reply]]:
        """Replies after waiting for the first process to say something, or for a limit."""
        alive = [p for p in self._slots if p is not None and not p.dead]
        with selectors.DefaultSelector() as selector:
            for process in alive:
                selector.register(process.output, selectors.EVENT_READ)
            selector.select(POLL_S)
        replies = []
        for process in alive:
            index = process.task
            try:
                reply = process.collect(self._memory_limit_bytes)
            except StartError as error:
                self._failed_start(error)
                continue
            if process.started:
                self._failed_starts = 0
            if reply is None:
                continue
            assert index is not None
            replies.append((index, reply))
            # The next candidate gets the memory it is promised.
            if not process.dead and process.memory_bytes() > self._memory_limit_bytes // 2:
                process.kill()
        self._mention_waiting(alive)
        return replies

    def _failed_start(self, error: StartError) -> None:
        self._failed_starts += 1
        working = any(p is not None and not p.dead and p.started for p in self._slots)
        if not (self._fleet and working) and (error.told or self._failed_starts >= FAILED_STARTS):
            raise error

    def _mention_waiting(self, alive: Sequence[Process]) -> None:
        now = time.monotonic()
        if self._fleet is None or any(p.started for p in alive):
            self._known_at = self._looked_at = now
            self._mentioned = False
        elif now - self._looked_at > QUIET_S:
            workers, situation = self._fleet.situation()
            self._looked_at = time.monotonic()
            if workers:
                self._known_at = self._looked_at
            if not self._mentioned:
                self._mentioned = True
                self._say(f"waiting: {situation}")
            if self._looked_at - self._known_at > LONELY_S:
                raise AtimError(f"no worker for {LONELY_S:.0f} s: {situation}")


def _blamed(reply: Reply) -> Reply:
    """A task that takes one worker after the other down is the cause itself."""
    if reply.kind != "lost":
        return reply
    return Reply("crash", f"{LOSSES} workers were lost with it: {reply.value}", reply.wall_s)
