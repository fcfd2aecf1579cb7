"""One builder process: takes tasks from its standard input, gives replies on its standard output.

Started by `pool.Pool`, in a process group of its own together with the compilers it starts. Frames
are pickles with their length in front. The first frame is the job; every later one is an alarm time
and a task for the function that `job.prepare()` gave.

When the parent dies, however it dies, the pipe closes and the whole group is killed at once.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import sys
import threading
import traceback
from typing import Any, BinaryIO, Protocol

__all__ = ["HEADER", "Job", "describe", "frame", "main"]

HEADER = struct.Struct("<Q")


class Job(Protocol):
    """What builders do: `prepare` runs once in each process, its function once a task."""

    def prepare(self) -> Any:
        """A function from a task to a reply, both picklable."""


def frame(value: object) -> bytes:
    """A pickle with its length in front."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(data)) + data


def main() -> None:
    """Serve tasks until the parent closes the pipe."""
    requests, replies = _claim_pipes()
    # TVM imports PyTorch where it is installed: a second and much memory, for nothing here.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_watch, args=(requests, frames), daemon=True).start()
    try:
        work = pickle.loads(frames.get()).prepare()
        replies.write(frame(("ready", None)))
    except Exception as error:
        replies.write(frame(("error", describe(error))))
        return
    while True:
        alarm_s, task = pickle.loads(frames.get())
        # Only for the case that the parent can't kill this process and the interpreter is stuck.
        signal.setitimer(signal.ITIMER_REAL, alarm_s)
        try:
            reply = ("done", work(task))
        except Exception as error:
            reply = ("error", describe(error))
        signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write(frame(reply))


def describe(error: Exception) -> str:
    """An unforeseen error as one line: type, message, and where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{text} ({os.path.basename(last.filename)}:{last.lineno})"


def _claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes for ourselves; what anything prints goes to standard error."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def _watch(requests: BinaryIO, frames: queue.SimpleQueue[bytes]) -> None:
    while True:
        header = requests.read(HEADER.size)
        if len(header) < HEADER.size:
            os.killpg(0, signal.SIGKILL)
        frames.put(requests.read(HEADER.unpack(header)[0]))
