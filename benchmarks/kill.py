"""kill -9 of tuner, builders and workers at random moments: what is lost, what is damaged.

A tune is killed over and over and started again until it ends. After each kill every trial that it
had reported must be in its database, unchanged, and the database whole. The finished run must have
the records of one that was never disturbed. Half of the kills are of a tune with local builders,
half of one with workers of a tracker.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

from atim.tuner.database import Database, Record

__all__ = ["Torture", "descendants", "run"]

ATIM = (sys.executable, "-P", "-c", "from atim.cli import main; main()")
TUNE = (*ATIM, "tune", "mtv", "--shape", "256,256", "--dpus", "16", "--trials", "40", "--json")
KILLS, QUICK_KILLS = 50, 6
# At most so many trials are reported before the next blow.
PATIENCE = 6
SEED = 0


def run(quick: bool) -> int:
    """Print a table of the blows; the status is not 0 when anything was lost or damaged."""
    kills = (QUICK_KILLS if quick else KILLS) // 2
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        undisturbed = Torture(TUNE, base / "undisturbed", random.Random(SEED))
        undisturbed.finish()
        near = Torture(TUNE, base / "near", random.Random(SEED))
        problems = _torture(near, kills, undisturbed.records(), "builders here")
        with _fleet() as (address, worker):
            far_tune = (*TUNE, "--tracker", address, "--workers", "2")
            far = Torture(far_tune, base / "far", random.Random(SEED + 1), worker)
            problems += _torture(far, kills, undisturbed.records(), "workers of a tracker")
    for line in problems:
        print(f"problem: {line}")
    return 1 if problems else 0


def _torture(torture: Torture, kills: int, expected: Sequence[Record], title: str) -> list[str]:
    since = time.monotonic()
    while sum(torture.blows.values()) < kills:
        torture.round(kills - sum(torture.blows.values()))
    torture.finish()
    if _told(torture.records()) != _told(expected):
        torture.problems.append("the finished run differs from an undisturbed one")
    blows = ", ".join(f"{n} {victim}" for victim, n in sorted(torture.blows.items()))
    print(
        f"{title}: killed {blows}; {torture.starts} starts, {len(torture.problems)} problems,"
        f" {time.monotonic() - since:.0f} s"
    )
    return torture.problems


class Torture:
    """One tune that is killed at random moments.

    command: gets --work-dir, and tells its trials as JSON lines. worker: gives the process whose
    descendants are victims too.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        rng: random.Random,
        worker: Callable[[], int] | None = None,
    ) -> None:
        self.command = [*command, "--work-dir", str(folder)]
        self.folder = folder
        self.rng = rng
        self.worker = worker
        self.blows: Counter[str] = Counter()
        self.starts = 0
        self.problems: list[str] = []
        self.reported: dict[int, dict[str, Any]] = {}
        self.over = False

    def round(self, kills: int) -> None:
        """Start the tune and deal blows until it is gone; a finished one starts from nothing."""
        if self.over:
            for path in self.folder.glob("records.*"):
                path.unlink()
            self.reported, self.over = {}, False
        process = self._start()
        while process.poll() is None and kills:
            self._wait(process)
            victim, pid = self._choose(process)
            if pid is None or process.poll() is not None:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.blows[victim] += 1
                kills -= 1
            if victim == "tuner":
                break
        else:
            process.wait()
        self._end(process)

    def finish(self) -> None:
        """Let it run to its end."""
        if not self.over:
            process = self._start()
            process.wait()
            self._end(process)
            if process.returncode:
                self.problems.append(f"exit status {process.returncode} at the end")

    def records(self) -> list[Record]:
        """What the database holds; raises RecordError when it is damaged."""
        with Database(self.folder, write=False) as database:
            return database.records(database.runs()[0].id)

    def _start(self) -> subprocess.Popen[str]:
        self.starts += 1
        process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._reader = Thread(target=self._read, args=(process,), daemon=True)
        self._reader.start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with contextlib.suppress(ValueError):  # a line that a kill cut short
                event = json.loads(line)
                if event["event"] == "trial":
                    self.reported[event["number"]] = event

    def _wait(self, process: subprocess.Popen[str]) -> None:
        """For some more trials, then for a moment."""
        wanted = len(self.reported) + self.rng.randrange(PATIENCE)
        while process.poll() is None and len(self.reported) < wanted:
            time.sleep(0.01)
        time.sleep(self.rng.random() * 0.3)

    def _choose(self, process: subprocess.Popen[str]) -> tuple[str, int | None]:
        builders = [("builder", pid) for pid in descendants(process.pid)]
        workers = [("worker", pid) for pid in descendants(self.worker())] if self.worker else []
        kinds = [k for k in ([("tuner", process.pid)], builders, workers) if k]
        return self.rng.choice(self.rng.choice(kinds))

    def _end(self, process: subprocess.Popen[str]) -> None:
        """Compare what it has told with what is recorded."""
        process.wait()
        self._reader.join()
        assert process.stdout is not None
        process.stdout.close()
        self.over = process.returncode == 0
        if not self.reported:
            return
        try:
            stored = {r.number: r for r in self.records()}
        except Exception as error:
            self.problems.append(f"{type(error).__name__}: {error}")
            return
        for number, event in self.reported.items():
            record = stored.get(number)
            total = None if record is None or record.timing is None else record.objective_s
            if record is None or record.status != event["status"] or total != event["total_s"]:
                self.problems.append(f"trial {number} was reported and is {record}")


def _told(records: Sequence[Record]) -> list[tuple[object, ...]]:
    return [(r.number, r.sketch, tuple(r.decisions.items()), r.timing) for r in records]


def descendants(pid: int) -> list[int]:
    """Processes below a process."""
    try:
        lists = [p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    children = [int(child) for text in lists for child in text.split()]
    return children + [below for child in children for below in descendants(child)]


@contextlib.contextmanager
def _fleet() -> Iterator[tuple[str, Callable[[], int]]]:
    """A tracker, and a worker with two slots."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    address = f"127.0.0.1:{port}"
    tracker = subprocess.Popen([*ATIM, "tracker", "--host", "127.0.0.1", "--port", str(port)])
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    worker = subprocess.Popen([*ATIM, "worker", "--tracker", address, "--slots", "2"])
    try:
        yield address, lambda: worker.pid
    finally:
        for process in (worker, tracker):
            process.terminate()
            process.wait()
