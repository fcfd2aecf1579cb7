"""A persistent pool of builder processes, with a time and a memory limit for each task.

In: a picklable job and tasks. Out: one `Reply` a task, whatever happens to the process that has it:
a task that takes too long, takes too much memory or takes its process down costs itself, and the
process is replaced. Processes are plain children on pipes rather than `multiprocessing` ones: a
caller's script needs no `__main__` guard, a stuck compiler dies with its builder, and nothing
outlives a parent that was killed (see `builder`).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any

from atim.errors import AtimError
from atim.tuner.builder import HEADER, Job, frame

__all__ = ["Pool", "Reply"]

START_LIMIT_S = 300.0  # importing TVM and making the inputs, on a busy machine
POLL_S = 0.2  # how often limits are looked at
ALARM_MARGIN_S = 60.0
# One process is one worker: libraries inside must not start threads of their own.
SINGLE_THREADED = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS")
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a task.

    kind: "done" (value is the function's), or "error" (it raised), "timeout", "memory", "crash":
    then value is a message. wall_s is the time since the task was handed out.
    """

    kind: str
    value: Any
    wall_s: float


class Pool:
    """`workers` builder processes for one job; a context manager. Not to be shared by threads.

    time_limit_s: for each task, unless `run` says otherwise. memory_limit_bytes: resident memory of
    one builder. A task whose process crashed gets one more attempt.
    """

    def __init__(
        self,
        job: Job,
        *,
        workers: int = 2,
        time_limit_s: float = 60.0,
        memory_limit_bytes: int = 4 << 30,
    ) -> None:
        self._job = job
        self._time_limit_s = time_limit_s
        self._memory_limit_bytes = memory_limit_bytes
        self._builders: list[_Builder | None] = [None] * workers

    def run(
        self, tasks: Sequence[Any], *, time_limit_s: float | None = None
    ) -> Generator[tuple[int, Reply], None, None]:
        """Yield (index, reply) for every task, as they end. AtimError when builders can't start."""
        limit = time_limit_s or self._time_limit_s
        waiting = deque(range(len(tasks)))
        attempts = [0] * len(tasks)
        open_tasks = len(tasks)
        try:
            while open_tasks:
                self._hand_out(tasks, waiting, attempts, limit)
                for builder in self._ready():
                    for index, reply in builder.collect(self._memory_limit_bytes):
                        if reply.kind == "crash" and attempts[index] < 2:
                            waiting.appendleft(index)
                            continue
                        open_tasks -= 1
                        yield index, reply
        finally:
            # Left early: what is still being worked on would answer into the next run.
            for busy in self._builders:
                if busy is not None and busy.task is not None:
                    busy.kill()

    def close(self) -> None:
        """Kill every builder and what it started."""
        for builder in self._builders:
            if builder is not None:
                builder.kill()
        self._builders = [None] * len(self._builders)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _hand_out(
        self, tasks: Sequence[Any], waiting: deque[int], attempts: list[int], limit_s: float
    ) -> None:
        for n, builder in enumerate(self._builders):
            if not waiting:
                return
            if builder is None or builder.dead:
                failures = builder.failed_starts if builder is not None else 0
                builder = self._builders[n] = _Builder(self._job, failures)
            if builder.task is None and builder.started:
                index = waiting.popleft()
                attempts[index] += 1
                builder.give(index, tasks[index], limit_s)

    def _ready(self) -> list[_Builder]:
        """Builders after waiting for the first of them to say something, or for a limit."""
        alive = [b for b in self._builders if b is not None and not b.dead]
        with selectors.DefaultSelector() as selector:
            for builder in alive:
                selector.register(builder.output, selectors.EVENT_READ)
            selector.select(POLL_S)
        return alive


class _Builder:
    """The parent's side of one builder process."""

    def __init__(self, job: Job, failed_starts: int) -> None:
        self.failed_starts = failed_starts
        self.started = False
        self.dead = False
        self.task: int | None = None
        self._buffer = bytearray()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by kill)
        self._process = subprocess.Popen(
            # -P: a checkout in the current directory must not hide what is installed
            [sys.executable, "-P", "-c", "from atim.tuner.builder import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            process_group=0,
            env={**os.environ, **SINGLE_THREADED, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout is not None
        self.output = self._process.stdout
        os.set_blocking(self.output.fileno(), False)
        self._begin(START_LIMIT_S)
        self._send(job)

    def give(self, index: int, task: Any, limit_s: float) -> None:
        self.task = index
        self._begin(limit_s)
        self._send((limit_s + ALARM_MARGIN_S, task))

    def collect(self, memory_limit_bytes: int) -> list[tuple[int, Reply]]:
        """What the process has said; its end when it is over or has passed a limit."""
        over = self._listen()
        message = self._next_frame()
        if message is not None:
            return self._heard(*message)
        if over:
            return self._ended("crash", self._epitaph())
        if time.monotonic() > self._deadline:
            return self._ended("timeout", f"not done after {self._limit_s:g} s")
        resident = self._resident_bytes()
        if resident > memory_limit_bytes:
            used, limit = resident >> 20, memory_limit_bytes >> 20
            return self._ended("memory", f"builder takes {used} MB, limit {limit} MB")
        return []

    def kill(self) -> None:
        """End the process, and its group with the compilers in it."""
        self.dead = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self.output.close()
        self._log.close()

    def _begin(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since = time.monotonic()
        self._deadline = self._since + limit_s

    def _send(self, value: object) -> None:
        assert self._process.stdin is not None
        # A process that is gone is noticed where its output ends.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(frame(value))
            self._process.stdin.flush()

    def _listen(self) -> bool:
        """Read what there is; True when the process has closed its side."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.output.fileno(), 1 << 20):
                self._buffer += chunk
            return True
        return False

    def _next_frame(self) -> tuple[str, Any] | None:
        if len(self._buffer) < HEADER.size:
            return None
        end = HEADER.size + HEADER.unpack_from(self._buffer)[0]
        if len(self._buffer) < end:
            return None
        kind, value = pickle.loads(bytes(self._buffer[HEADER.size : end]))
        del self._buffer[:end]
        return kind, value

    def _heard(self, kind: str, value: Any) -> list[tuple[int, Reply]]:
        if not self.started:
            if kind != "ready":
                self.kill()
                raise AtimError(f"builder process can't start: {value}")
            self.started = True
            return []
        index, self.task = self.task, None
        assert index is not None
        return [(index, Reply(kind, value, time.monotonic() - self._since))]

    def _ended(self, kind: str, message: str) -> list[tuple[int, Reply]]:
        wall_s = time.monotonic() - self._since
        self.kill()
        if not self.started:
            self.failed_starts += 1
            if self.failed_starts > 1:
                raise AtimError(f"builder process can't start: {message}")
            return []
        index, self.task = self.task, None
        return [] if index is None else [(index, Reply(kind, message, wall_s))]

    def _resident_bytes(self) -> int:
        try:
            with open(f"/proc/{self._process.pid}/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            return 0

    def _epitaph(self) -> str:
        """How the process ended, and the last line it wrote."""
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4096))
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"builder ended by {how}" + (f": {lines[-1].strip()}" if lines else "")
