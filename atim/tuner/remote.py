"""The tuner's way to builders on other machines: TVM's RPC tracker and the workers found there.

`RemoteJob` is a job for a builder process of the pool that only speaks for a worker: it takes a
free one from the tracker, sends it the real job, then hands on tasks and replies. The process ends
with its connection, and the pool takes that for a lost worker.

A worker offers itself under a key that holds its software version, so that one of another version
is never used. Replies are read with a reader that knows measurements and nothing else.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from atim.errors import UsageError
from atim.tuner.builder import Job
from atim.tuner.process import Order, Reply
from atim.tuner.version import software_version

__all__ = ["KEY", "Fleet", "RemoteJob"]

KEY = "upmem"
PROTOCOL = 1
POLL_S = 0.5  # a worker answers at least so often
SILENCE_S = 60  # after which it is lost
RETRY_S = 5.0  # between two looks for a tracker that is away
NEEDED = "pip install tornado"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The workers of one software version that a tracker knows under a key."""

    host: str
    port: int
    key: str = KEY
    version: str = field(default_factory=software_version)

    @staticmethod
    def at(address: str, key: str = KEY) -> Fleet:
        """From "HOST:PORT". Raises UsageError."""
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise UsageError(f"tracker {address!r}: HOST:PORT needed")
        if not key or any(c.isspace() or c in ":@" for c in key):
            raise UsageError(f"key {key!r}: a word without spaces, ':' and '@' needed")
        return Fleet(host.strip("[]"), int(port), key)

    @property
    def full_key(self) -> str:
        """What workers of this software version register as."""
        return f"{self.key}@{self.version}+{PROTOCOL}"

    def check(self) -> None:
        """UsageError when no tracker answers there now."""
        try:
            socket.create_connection((self.host, self.port), timeout=10).close()
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"tracker {self.host}:{self.port}: {reason}") from error

    def situation(self) -> tuple[int, str]:
        """How many workers there are, 0 when the tracker is away too, and the rest in words."""
        where = f"tracker {self.host}:{self.port}"
        try:
            self.check()
            summary = _tracker(self).summary()
            known, queues = summary["server_info"], summary["queue_info"]
        except (UsageError, OSError, RuntimeError, KeyError, ValueError) as error:
            return 0, f"no answer from the tracker: {error}"
        keys = [str(server["key"]).removeprefix("server:") for server in known]
        ours = keys.count(self.full_key)
        others = sum(key.startswith(self.key + "@") for key in keys) - ours
        free = queues.get(self.full_key, {}).get("free", 0)
        words = sorted({key.partition("@")[0] for key in keys} - {self.key})
        text = f"{where} has {ours} workers {self.key!r}, {free} of them free"
        text += f", and {others} of another software version" if others else ""
        return ours, text + (f"; its other keys: {', '.join(words)}" if words else "")


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """For `builder`: `prepare` waits for a worker; then orders are done there."""

    job: bytes
    fleet: Fleet
    memory_limit_bytes: int

    @staticmethod
    def of(job: Job, fleet: Fleet, memory_limit_bytes: int) -> RemoteJob:
        return RemoteJob(pickle.dumps(job), fleet, memory_limit_bytes)

    def prepare(self) -> Callable[[Order], Reply]:
        """Connect to a free worker and start the job there, however long both take."""
        worker = _connect(self.fleet)
        worker("start", self.job, self.memory_limit_bytes)
        while not (state := bytes(worker("poll", POLL_S))):
            pass
        kind, value = read_reply(state)
        if kind != "ready":
            raise RuntimeError(f"worker: {value}")

        def work(order: Order) -> Reply:
            worker("give", pickle.dumps((order.task, order.limit_s)))
            while not (answer := bytes(worker("poll", POLL_S))):
                pass
            kind, value, wall_s = read_reply(answer)
            return Reply(kind, value, wall_s)

        return work


def _tracker(fleet: Fleet) -> Any:
    try:
        from tvm.rpc import client  # loads parts of TVM that a local run needs not
    except ImportError as error:
        raise UsageError(f"{error}; {NEEDED}") from error
    return client.TrackerSession((fleet.host, fleet.port))


def _connect(fleet: Fleet) -> Callable[..., Any]:
    """Functions of a free worker by name; a call that fails ends this process."""
    while True:
        try:
            session = _tracker(fleet).request(fleet.full_key, max_retry=1)
            break
        except (OSError, RuntimeError):  # the tracker is away, or a worker went when it was taken
            time.sleep(RETRY_S)

    def call(name: str, *arguments: Any) -> Any:
        # A machine that vanished does not close its connections: an alarm ends this process.
        signal.setitimer(signal.ITIMER_REAL, SILENCE_S)
        try:
            answer = session.get_function(f"atim.worker.{name}")(*arguments)
        except Exception as error:
            print(f"worker is lost: {error}".splitlines()[0], file=sys.stderr)
            os._exit(3)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return answer

    return call


class _Reader(pickle.Unpickler):
    """Reads measurements only: a worker can't make the tuner run anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("atim.tuner.trial", "Measurement"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} in a worker's reply")


def read_reply(data: bytes) -> Any:
    """A worker's reply: numbers, texts, containers and measurements."""
    return _Reader(io.BytesIO(data)).load()
