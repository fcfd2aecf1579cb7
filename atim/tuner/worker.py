"""`atim worker`: builders of this machine for tuners on others, through TVM's RPC tracker.

Each slot is a TVM RPC server in a process group of its own, which serves one tuner after the other.
Each tuner gets one builder process with the limits it asked for; it ends with its connection.
The supervisor starts a slot again when it dies, and ends the groups when it ends: a session would
outlive its server and keep the port.

As with every TVM RPC server, whoever reaches the port can run programs: use a trusted network.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from atim.errors import AtimError, UsageError
from atim.tuner.process import Process, StartError
from atim.tuner.remote import NEEDED, Fleet

__all__ = ["register", "serve", "serve_tracker"]

PORTS = (9091, 9999)  # of servers; the first free one
RESTART_S = (1.0, 30.0)  # pause before a slot is started again: at first, at most
CALM_S = 60.0  # a slot that has lived so long starts again at once
POLL_S = 0.2


def serve(
    fleet: Fleet, *, slots: int = 1, address: str | None = None, say: Callable[[str], None] = print
) -> None:
    """Offer `slots` builders to the tracker until interrupted; dead ones are replaced.

    address: at which tuners reach this machine, None for the one that the tracker sees. Raises
    UsageError when no tracker answers, ToolchainError when this machine has no C compiler.
    """
    from atim import toolchain  # brings TVM, which a tracker's supervisor can do without

    fleet.check()
    toolchain.find_compiler()
    what = {"host": fleet.host, "port": fleet.port, "key": fleet.full_key, "address": address}
    say(f"worker: {slots} slots offered as {fleet.full_key} to {fleet.host}:{fleet.port}")
    _supervise([("slot", what)] * slots, say)


def serve_tracker(host: str, port: int, say: Callable[[str], None] = print) -> None:
    """TVM's tracker, until interrupted."""
    say(f"tracker: {host}:{port}")
    _supervise([("tracker", {"host": host, "port": port})], say)


class _Child:
    """One process group: started, watched, ended as a whole."""

    def __init__(self, kind: str, what: Mapping[str, Any]) -> None:
        self.kind, self.what = kind, what
        self.pause_s, self.start_at = 0.0, 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self.served = False

    def tend(self, say: Callable[[str], None]) -> None:
        """Start it when it is time to; notice its end."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.start_at:
                self.start_at = now
                self._start()
            return
        code = self.process.poll()
        if code is None:
            return
        self.end()
        low, high = RESTART_S
        calm = now - self.start_at > CALM_S
        if self.kind == "tracker" and code > 0 and not (calm or self.served):
            raise UsageError("{host}:{port}: no tracker can start there".format(**self.what))
        self.served |= calm
        self.pause_s = 0.0 if calm else min(high, max(low, 2 * self.pause_s))
        self.start_at = now + self.pause_s
        say(f"{self.kind} ended with status {code}: again in {self.pause_s:g} s")

    def end(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            if self.process.stdin is not None:
                self.process.stdin.close()
            self.process = None

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-c", "from atim.tuner.worker import main; main()"),
                *(self.kind, json.dumps(self.what)),
            ],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )


def _supervise(kinds: list[tuple[str, dict[str, Any]]], say: Callable[[str], None]) -> None:
    children = [_Child(kind, what) for kind, what in kinds]
    with _terminable():
        try:
            while True:
                for child in children:
                    child.tend(say)
                time.sleep(POLL_S)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for child in children:
                child.end()


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM is an interruption as well."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt), signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


# --- in a child ---


def main() -> None:
    """A slot or a tracker, until its supervisor or its server ends."""
    kind, what = sys.argv[1], json.loads(sys.argv[2])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # TVM imports PyTorch where it is installed: a second and much memory, for nothing here.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    try:
        server = _tracker(**what) if kind == "tracker" else _slot(**what)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        hint = f"; {NEEDED}" if isinstance(error, ImportError) else ""
        raise SystemExit(f"{kind}: {error}{hint}") from error
    server.thread.join()


def _end_with_parent() -> None:
    # not sys.stdin: sessions are forks and close it, which would wait for this reader's lock
    while os.read(0, 1024):
        pass
    os.killpg(0, signal.SIGKILL)


def _slot(host: str, port: int, key: str, address: str | None) -> Any:
    # What `tvm.rpc.Server` runs in yet another process, which would survive this one.
    from tvm.rpc import server

    register()
    server._serve_loop = _forgiving(server._serve_loop)
    return server.PopenRPCServerState(
        "0.0.0.0", *PORTS, tracker_addr=(host, port), key=key, custom_addr=address, silent=True
    )


def _forgiving(serve_loop: Callable[..., None]) -> Callable[..., None]:
    """A session that ends in peace when its tuner is gone, instead of taking the slot with it."""

    def serve(*arguments: Any) -> None:
        try:
            serve_loop(*arguments)
        except RuntimeError as error:
            what = str(error).strip().splitlines() or [type(error).__name__]
            print(f"slot: the tuner is gone: {what[-1]}", file=sys.stderr, flush=True)

    return serve


def _tracker(host: str, port: int) -> Any:
    from tvm.rpc.tracker import PopenTrackerServerState

    return PopenTrackerServerState(host, port, port + 1, silent=True)


# --- in a server's session ---


class _Session:
    """One tuner's builder."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._job: Any = None
        self._memory_limit_bytes = 0
        self._order: tuple[Any, float] | None = None
        self._announced = False

    def start(self, job: bytes, memory_limit_bytes: int) -> None:
        """Begin to start a builder; `poll` tells when it is ready."""
        self._memory_limit_bytes = memory_limit_bytes
        self._job = pickle.loads(bytes(job))
        self._process = Process(self._job)

    def give(self, order: bytes) -> None:
        """Take a pickled (task, time limit)."""
        self._order = pickle.loads(bytes(order))
        if self._process is None or self._process.dead:  # of the task before
            self._process = Process(self._job)
        self._hand_out(self._process)

    def poll(self, wait_s: float) -> bytes:
        """What there is to tell after at most `wait_s`, pickled: ("ready", None), ("error",
        message), or (kind, value, wall_s) of a reply; empty when there is nothing."""
        process = self._process
        if process is None or process.dead:
            raise AtimError("poll without a task")
        process.wait(wait_s)
        try:
            reply = process.collect(self._memory_limit_bytes)
        except StartError as error:
            # after a task's death, the same for the next one
            wall = (0.0,) if self._announced else ()
            return pickle.dumps(("error", str(error), *wall))
        if reply is not None:
            # The next candidate gets the memory it is promised.
            if not process.dead and process.memory_bytes() > self._memory_limit_bytes // 2:
                process.kill()
            return pickle.dumps((reply.kind, reply.value, reply.wall_s))
        if process.started and not self._announced:
            self._announced = True
            return pickle.dumps(("ready", None))
        self._hand_out(process)
        return b""

    def _hand_out(self, process: Process) -> None:
        if self._order is not None and process.started:
            process.give(0, *self._order)
            self._order = None


def register() -> None:
    """Make `_Session` callable through RPC in a server that is about to start.

    Sessions are forks of the server, so each has its own. A session that is killed raises in the
    server's listening thread, which would leave a server that listens no more: it has to end.
    """
    import tvm_ffi

    session = _Session()
    for name in ("start", "give", "poll"):
        tvm_ffi.register_global_func(f"atim.worker.{name}", getattr(session, name), override=True)

    def end(what: threading.ExceptHookArgs) -> None:
        print(f"slot: {what.exc_value}".splitlines()[0], file=sys.stderr, flush=True)
        os._exit(1)

    threading.excepthook = end
