"""The parent's side of one builder process: start it, give it a task, hear its reply, end it.

A process that takes too long, takes too much memory or dies costs its task, and is not used again.
Processes are plain children on pipes rather than `multiprocessing` ones: a caller's script needs no
`__main__` guard, a stuck compiler dies with its builder, and nothing outlives a parent that was
killed (see `builder`).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from atim.errors import AtimError
from atim.tuner.builder import HEADER, Job, frame

__all__ = ["Order", "Process", "Reply", "StartError"]

START_LIMIT_S = 300.0  # importing TVM and making the inputs, on a busy machine
ALARM_MARGIN_S = 60.0
# One process is one worker: libraries inside must not start threads of their own.
SINGLE_THREADED = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS")
}


class StartError(AtimError):
    """A builder process can't start; `told` when it gave the reason itself instead of dying."""

    told = False


@dataclass(frozen=True, slots=True)
class Order:
    """A task for a far builder, and its time limit."""

    task: Any
    limit_s: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a task.

    kind: "done" (value is the function's), or "error" (it raised), "timeout", "memory", "crash", or
    "lost" (the way to another machine): then value is a message. wall_s is the time since the task
    was handed out.
    """

    kind: str
    value: Any
    wall_s: float


class Process:
    """A builder for `job`. `task` is the number that its owner gave the task it has, or None.

    far: the process only speaks for one on another machine, which keeps the limits and whose
    replies may come `late_s` later; when it ends, that one is lost.
    """

    def __init__(
        self,
        job: Job,
        *,
        far: bool = False,
        start_limit_s: float = START_LIMIT_S,
        late_s: float = 0.0,
    ) -> None:
        self._far = far
        self._late_s = late_s
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
        self._begin(start_limit_s)
        self._send(job)

    @property
    def pid(self) -> int:
        return self._process.pid

    def give(self, index: int, task: Any, limit_s: float) -> None:
        """Hand out a task; the process must have started and have none."""
        self.task = index
        self._begin(limit_s + self._late_s)
        message = Order(task, limit_s) if self._far else task
        self._send((limit_s + self._late_s + ALARM_MARGIN_S, message))

    def wait(self, seconds: float) -> None:
        """Until the process says something, at most so long."""
        select.select([self.output], [], [], seconds)

    def collect(self, memory_limit_bytes: int) -> Reply | None:
        """The reply to the task, if the process has answered, ended or passed a limit.

        Raises StartError when it could not start; None while there is nothing to tell.
        """
        over = self._listen()
        message = self._next_frame()
        if message is not None:
            return self._heard(*message)
        if over:
            return self._ended("crash", self._epitaph())
        if time.monotonic() > self._deadline:
            return self._ended("timeout", f"not done after {self._limit_s:g} s")
        used = self.memory_bytes()
        if used > memory_limit_bytes:
            megabytes, limit = used >> 20, memory_limit_bytes >> 20
            return self._ended("memory", f"builder takes {megabytes} MB, limit {limit} MB")
        return None

    def memory_bytes(self) -> int:
        """Resident memory of the process and of the compilers it has started."""
        return _resident_bytes(self.pid)

    def kill(self) -> None:
        """End the process, and its group with the compilers in it."""
        if self.dead:
            return
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

    def _heard(self, kind: str, value: Any) -> Reply | None:
        if not self.started:
            if kind != "ready":
                self.kill()
                error = StartError(f"builder process can't start: {value}")
                error.told = True
                raise error
            self.started = True
            self._deadline = float("inf")
            return None
        self.task = None
        self._deadline = float("inf")
        wall_s = time.monotonic() - self._since
        return value if isinstance(value, Reply) else Reply(kind, value, wall_s)

    def _ended(self, kind: str, message: str) -> Reply | None:
        wall_s = time.monotonic() - self._since
        self.kill()
        if not self.started:
            raise StartError(f"builder process can't start: {message}")
        return None if self.task is None else Reply("lost" if self._far else kind, message, wall_s)

    def _epitaph(self) -> str:
        """How the process ended, and the last line it wrote."""
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4096))
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"builder ended by {how}" + (f": {lines[-1].strip()}" if lines else "")


def _resident_bytes(pid: int) -> int:
    """Of a process and its descendants; 0 for what is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            own = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        # each thread has a list of its own
        lists = Path(f"/proc/{pid}/task").glob("*/children")
        children = [int(child) for path in lists for child in path.read_text().split()]
    except (OSError, IndexError):
        return 0
    return own + sum(_resident_bytes(child) for child in children)
