"""Records of a tuning run in SQLite: what was tried, how it went, and for whom it is valid.

One file, `records.db`, in the run's folder; one writer at a time (a lock file that dies with its
process), readers at any time. Every finished trial is committed at once, so a killed run loses
nothing measured; what it had proposed but not measured stays `pending` and is measured first by the
next run. Records are found by their `RunKey` alone: those of another program, target, seed or
software version are kept but never used.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from atim.errors import RecordError

__all__ = ["FILE_NAME", "SCHEMA_VERSION", "Database", "Record", "RunKey", "StoredRun"]

FILE_NAME = "records.db"
LOCK_NAME = "records.lock"
SCHEMA_VERSION = 2
BUSY_WAIT_S = 30.0
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,      -- RunKey as JSON
    trials INTEGER NOT NULL,       -- as asked last
    ended TEXT NOT NULL,           -- why the search ended; empty while it runs or after a kill
    winner INTEGER,                -- trial whose full output was compared with the reference
    facts TEXT NOT NULL,           -- JSON: baseline and other figures for the report
    program BLOB NOT NULL,         -- the PrimFunc as TVM's JSON, by zlib; may be empty
    setting TEXT NOT NULL,         -- JSON: target and resident operands, field by field
    created REAL NOT NULL          -- seconds since the epoch; never used for a decision
);
CREATE TABLE trials (
    run INTEGER NOT NULL REFERENCES runs(id),
    number INTEGER NOT NULL,       -- order of proposal, from 0
    round INTEGER NOT NULL,
    sketch TEXT NOT NULL,
    decisions TEXT NOT NULL,       -- JSON object
    status TEXT NOT NULL,          -- pending | ok | failed
    reason TEXT NOT NULL,          -- of a failure: one of measure.REASONS
    message TEXT NOT NULL,
    h2d_s REAL, kernel_s REAL, d2h_s REAL, host_s REAL,
    counters TEXT NOT NULL,        -- JSON object
    wall_s REAL NOT NULL,          -- building, running and checking
    digest TEXT NOT NULL,          -- of the emitted C and the transfer plan
    same_as INTEGER,               -- trial of the same digest whose result this is
    trace BLOB NOT NULL,           -- of the schedule as TVM's JSON, by zlib; may be empty
    finished REAL,                 -- seconds since the epoch
    PRIMARY KEY (run, number)
);
"""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What a record is valid for. `workload` is for people, `program` is the structural hash."""

    workload: str
    program: str
    target: str
    objective: str
    seed: int
    version: str

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Record:
    """One trial. `timing` is (h2d, kernel, d2h, host) in seconds, None unless status is "ok".

    digest: of the emitted C and its transfer plan, empty when it got no further. same_as: the trial
    with the same digest that was measured in place of this one.
    """

    number: int
    round: int
    sketch: str
    decisions: Mapping[str, int]
    status: str = "pending"
    reason: str = ""
    message: str = ""
    timing: tuple[float, float, float, float] | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    wall_s: float = 0.0
    digest: str = ""
    same_as: int | None = None

    @property
    def objective_s(self) -> float:
        """Seconds to be minimised; infinite for what failed or is pending."""
        return sum(self.timing) if self.timing is not None else float("inf")

    @property
    def rank_groups(self) -> int:
        """How many groups of ranks work one after the other: chosen when it was measured."""
        return int(self.counters.get("rank_groups", 1))


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as found in the file. program: TVM's JSON of the PrimFunc; setting: target, resident;
    either may be empty."""

    id: int
    key: RunKey
    trials: int
    ended: str
    winner: int | None
    facts: Mapping[str, object]
    program: str = ""
    setting: Mapping[str, Any] = field(default_factory=dict)


class Database:
    """`records.db` of one folder; a context manager.

    write=True makes folder and file when they are missing, and takes the writer's lock. Raises
    RecordError, in one line, when the folder can't be written, another process holds the lock, the
    file is damaged or of another schema version, or the disk is full.
    """

    def __init__(self, folder: str | os.PathLike[str], *, write: bool) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE_NAME
        self._lock = _take_lock(self.folder) if write else None
        try:
            self._connection = self._open(write)
        except BaseException:
            self._unlock()
            raise

    def _open(self, write: bool) -> sqlite3.Connection:
        if not write and not self.path.is_file():
            raise RecordError(f"no records: {self.path} does not exist")
        with self._told():
            uri = self.path.resolve().as_uri() + ("" if write else _reader_mode(self.path))
            connection = sqlite3.connect(
                uri, uri=True, timeout=BUSY_WAIT_S, isolation_level=None, check_same_thread=False
            )
            try:
                if write:
                    connection.execute("PRAGMA journal_mode=WAL")
                    # on disk when a commit returns, whatever happens to the machine after it
                    connection.execute("PRAGMA synchronous=FULL")
                self._check_schema(connection, write)
            except BaseException:
                connection.close()
                raise
        return connection

    def _check_schema(self, connection: sqlite3.Connection, write: bool) -> None:
        found = connection.execute("SELECT name FROM sqlite_master WHERE name='meta'").fetchone()
        if found is None:
            if not write:
                raise RecordError(f"{self.path} holds no records of atim")
            script = f"BEGIN; {SCHEMA} INSERT INTO meta VALUES ('schema', '{SCHEMA_VERSION}');"
            connection.executescript(script + "COMMIT;")
            return
        row = connection.execute("SELECT value FROM meta WHERE name='schema'").fetchone()
        version = row[0] if row else "none"
        if version != str(SCHEMA_VERSION):
            raise RecordError(
                f"{self.path}: schema version {version}, this software reads {SCHEMA_VERSION}:"
                " use another folder, or the software that wrote it"
            )
        damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise RecordError(f"{self.path} is damaged: {damage}")

    def close(self) -> None:
        if self._lock is not None:
            # Leave one plain file that readers need nothing beside; refused while one is reading.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA busy_timeout=0")
                self._connection.execute("PRAGMA journal_mode=DELETE")
        self._connection.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors, and contents that can't be read, as one line that names the file."""
        try:
            yield
        except sqlite3.Error as error:
            damaged = getattr(error, "sqlite_errorcode", 0) in DAMAGED
            hint = ": move it away to begin anew" if damaged else ""
            raise RecordError(f"{self.path}: {error}{hint}") from error
        except (ValueError, TypeError, zlib.error) as error:
            raise RecordError(f"{self.path}: damaged: {error}") from error

    # --- runs ---

    def start(
        self, key: RunKey, trials: int, program: str = "", setting: Mapping[str, Any] | None = None
    ) -> int:
        """The run of this key, made when it is missing; its number for the other methods."""
        packed, text = zlib.compress(program.encode()), json.dumps(dict(setting or {}))
        with self._told():
            self._connection.execute(
                "INSERT INTO runs (key, trials, ended, facts, program, setting, created)"
                " VALUES (?, ?, '', '{}', ?, ?, ?)"
                " ON CONFLICT (key) DO UPDATE SET trials = excluded.trials, ended = ''",
                (key.text(), trials, packed, text, time.time()),
            )
            row = self._connection.execute("SELECT id FROM runs WHERE key = ?", (key.text(),))
            return int(row.fetchone()[0])

    def runs(self) -> list[StoredRun]:
        """Every run of the file, oldest first."""
        with self._told():
            rows = self._connection.execute(
                "SELECT id, key, trials, ended, winner, facts, program, setting FROM runs"
                " ORDER BY id"
            ).fetchall()
            return [
                StoredRun(
                    row[0],
                    RunKey(**json.loads(row[1])),
                    trials=row[2],
                    ended=row[3],
                    winner=row[4],
                    facts=json.loads(row[5]),
                    program=zlib.decompress(row[6]).decode(),
                    setting=json.loads(row[7]),
                )
                for row in rows
            ]

    def end(self, run: int, why: str, winner: int | None) -> None:
        """Store why the search ended, and the trial that was verified as a whole."""
        with self._told():
            self._connection.execute(
                "UPDATE runs SET ended = ?, winner = ? WHERE id = ?", (why, winner, run)
            )

    def note(self, run: int, facts: Mapping[str, object]) -> None:
        """Store figures for the report, in place of those stored before."""
        with self._told():
            self._connection.execute(
                "UPDATE runs SET facts = ? WHERE id = ?", (json.dumps(facts), run)
            )

    # --- trials ---

    def propose(self, run: int, records: Sequence[Record]) -> None:
        """Store a round of pending trials, all or none."""
        self.add(run, records, {})

    def add(self, run: int, records: Sequence[Record], traces: Mapping[int, str]) -> None:
        """Store new trials as they are, all or none; traces by number."""
        rows = [
            (
                *(run, r.number, r.round, r.sketch, json.dumps(dict(r.decisions))),
                *(r.status, r.reason, r.message, *(r.timing or (None,) * 4)),
                *(json.dumps(dict(r.counters)), r.wall_s, r.digest, r.same_as),
                zlib.compress(traces.get(r.number, "").encode()),
                None if r.status == "pending" else time.time(),
            )
            for r in records
        ]
        places = ", ".join("?" * 18)
        with self._told(), self._transaction():
            self._connection.executemany(
                "INSERT INTO trials (run, number, round, sketch, decisions, status, reason,"
                " message, h2d_s, kernel_s, d2h_s, host_s, counters, wall_s, digest, same_as,"
                f" trace, finished) VALUES ({places})",
                rows,
            )

    def finish(self, run: int, record: Record, trace: str | None = None) -> None:
        """Store the result of a trial; it is on disk when this returns. trace: of its schedule as
        TVM's JSON, None for the one that is there."""
        timing = record.timing or (None,) * 4
        with self._told():
            self._connection.execute(
                "UPDATE trials SET status = ?, reason = ?, message = ?, h2d_s = ?, kernel_s = ?,"
                " d2h_s = ?, host_s = ?, counters = ?, wall_s = ?, digest = ?, same_as = ?,"
                " trace = coalesce(?, trace), finished = ? WHERE run = ? AND number = ?",
                (
                    *(record.status, record.reason, record.message, *timing),
                    *(json.dumps(dict(record.counters)), record.wall_s),
                    *(record.digest, record.same_as),
                    *(None if trace is None else zlib.compress(trace.encode()), time.time()),
                    *(run, record.number),
                ),
            )

    def records(self, run: int) -> list[Record]:
        """The trials of a run in the order they were proposed."""
        with self._told():
            rows = self._connection.execute(
                "SELECT number, round, sketch, decisions, status, reason, message, h2d_s,"
                " kernel_s, d2h_s, host_s, counters, wall_s, digest, same_as FROM trials"
                " WHERE run = ? ORDER BY number",
                (run,),
            ).fetchall()
            return [
                Record(
                    number=row[0],
                    round=row[1],
                    sketch=row[2],
                    decisions=json.loads(row[3]),
                    status=row[4],
                    reason=row[5],
                    message=row[6],
                    timing=None if row[7] is None else row[7:11],
                    counters=json.loads(row[11]),
                    wall_s=row[12],
                    digest=row[13],
                    same_as=row[14],
                )
                for row in rows
            ]

    def trace(self, run: int, number: int) -> str:
        """The schedule of a trial as TVM's JSON; empty when there is none."""
        with self._told():
            row = self._connection.execute(
                "SELECT trace FROM trials WHERE run = ? AND number = ?", (run, number)
            ).fetchone()
            return zlib.decompress(row[0]).decode() if row and row[0] else ""

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # A full disk has already rolled it back.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _reader_mode(path: Path) -> str:
    # A reader of a WAL file makes a small index beside it; where that can't be, nobody writes.
    if os.access(path.parent, os.W_OK) or path.with_name(path.name + "-wal").exists():
        return "?mode=ro"
    return "?mode=ro&immutable=1"


def _take_lock(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RecordError(f"folder {folder} can't be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    except BlockingIOError:
        owner = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise RecordError(f"another tune writes to {folder} (process {owner})") from None
    except OSError as error:
        os.close(lock)
        raise RecordError(f"folder {folder} can't be written: {error.strerror}") from error
    return lock
