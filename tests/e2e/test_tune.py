"""`atim tune` from the outside: odd shapes, exhausted spaces, interruptions, bad surroundings."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from atim import cli
from atim.errors import RecordError
from atim.tuner.database import Database, Record

ATIM = [sys.executable, "-P", "-c", "from atim.cli import main; main()"]
SMALL = ["--dpus", "16", "--trials", "4", "--workers", "1"]


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def atim(capsys: pytest.CaptureFixture[str]) -> Command:
    """A command in this process, which has TVM already."""

    def command(*arguments: object) -> Done:
        status = cli.run([str(a) for a in arguments])
        return Done(status, *capsys.readouterr())

    return command


def records(folder: Path) -> list[Record]:
    with Database(folder, write=False) as database:
        return [r for r in database.records(database.runs()[-1].id) if r.status != "pending"]


@pytest.mark.parametrize(
    ("workload", "shape"),
    [("mtv", "100,77"), ("mtv", "1,1"), ("mtv", "13,819"), ("va", "1021"), ("va", "1")],
)
def test_odd_shapes_end_with_a_verified_schedule(
    atim: Command, tmp_path: Path, workload: str, shape: str
) -> None:
    done = atim("tune", workload, "--shape", shape, *SMALL, "--work-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "best: sketch " in done.stdout
    assert "Traceback" not in done.stderr
    with Database(tmp_path, write=False) as database:
        (run,) = database.runs()
    measured = records(tmp_path)
    assert run.winner is not None
    assert f"trials: {len(measured)} measured" in done.stdout
    assert f"{len(measured)}/{len(measured)}" in done.stderr  # the progress display's last total
    assert all(r.status == "ok" for r in measured), [r.message for r in measured]


def test_a_small_space_ends_early_and_says_so(atim: Command, tmp_path: Path) -> None:
    small = ("--shape", "1,1", "--dpus", "1", "--tasklets", "1", "--trials", "5000")
    done = atim("tune", "mtv", *small, "--work-dir", tmp_path, "--quiet")
    assert done.returncode == 0, done.stderr
    assert "ended: the space is exhausted (asked for 5000 trials)" in done.stdout
    assert 0 < len(records(tmp_path)) < 5000


def test_quiet_says_nothing_on_standard_error(atim: Command, tmp_path: Path) -> None:
    done = atim("tune", "va", "--shape", "64", *SMALL, "--work-dir", tmp_path, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_json_lines_end_with_the_result_and_runs_can_be_merged(
    atim: Command, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, seed in ((first, 0), (second, 1)):
        done = atim(
            *("tune", "va", "--shape", "64", *SMALL, "--seed", seed),
            *("--work-dir", folder, "--json"),
        )
        assert (done.returncode, done.stderr) == (0, "")
    end = json.loads(done.stdout.splitlines()[-1])
    assert (end["event"], end["trials"]) == ("end", len(records(second)))
    assert end["total_s"] == min(r.objective_s for r in records(second))
    done = atim("merge", first, second, "--into", tmp_path / "both")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert records(tmp_path / "both") == records(second)


def start(folder: Path, trials: int) -> subprocess.Popen[str]:
    """A tune in a session of its own, once its first trials are recorded."""
    arguments = ["tune", "mtv", "--shape", "256,256", "--dpus", "16", "--trials", str(trials)]
    process = subprocess.Popen(
        [*ATIM, *arguments, "--work-dir", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        if (folder / "records.db").exists() and len(records_or_none(folder)) >= 3:
            return process
        time.sleep(0.05)
    pytest.fail("no trial in two minutes")


def records_or_none(folder: Path) -> list[Record]:
    try:
        return records(folder)
    except (IndexError, RecordError):  # not made yet, or just being made
        return []


def children_of(process: subprocess.Popen[str]) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process.pid:
            found.append(int(path.parent.name))
    return found


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}").exists() and not zombie(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_tune_loses_nothing_and_goes_on(
    atim: Command, tmp_path: Path, blow: signal.Signals
) -> None:
    process = start(tmp_path, 24)
    children = children_of(process)
    assert children
    process.send_signal(blow)
    _, errors = process.communicate(timeout=60)
    if blow == signal.SIGINT:
        assert process.returncode == 130
        assert errors.splitlines()[-1] == "atim: interrupted; what was measured is kept"
        assert "Traceback" not in errors
    assert gone(children)
    before = {r.number: r for r in records(tmp_path)}
    assert 3 <= len(before) < 24
    arguments = ["--shape", "256,256", "--dpus", "16", "--trials", "24", "--work-dir", tmp_path]
    done = atim("tune", "mtv", *arguments)
    assert done.returncode == 0, done.stderr
    after = {r.number: r for r in records(tmp_path)}
    assert len(after) == 24
    assert {n: after[n].timing for n in before} == {n: r.timing for n, r in before.items()}


def test_the_same_seed_gives_the_same_trials_for_any_number_of_workers(
    atim: Command, tmp_path: Path
) -> None:
    found = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        arguments = ["--shape", "96,80", *SMALL, "--work-dir", folder, "--workers", workers]
        assert atim("tune", "mtv", *arguments).returncode == 0
        found.append([(r.sketch, dict(r.decisions), r.timing) for r in records(folder)])
    assert found[0] == found[1]


def test_a_folder_that_cannot_be_made_is_one_line(atim: Command) -> None:
    done = atim("tune", "va", "--shape", "64", "--work-dir", "/proc/run")  # refused to root too
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("atim: folder /proc/run can't be written: ")


def test_a_folder_that_is_a_file_is_one_line(atim: Command, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    done = atim("tune", "va", "--shape", "64", "--work-dir", tmp_path / "run")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "can't be written: File exists" in done.stderr


def test_no_compiler_is_one_line(
    atim: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = atim("tune", "va", "--shape", "64", "--work-dir", tmp_path / "run")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "no C compiler found on PATH" in done.stderr


def test_report_draws_and_prints_a_recorded_run(atim: Command, tmp_path: Path) -> None:
    assert atim("tune", "va", "--shape", "64", *SMALL, "--work-dir", tmp_path).returncode == 0
    done = atim("report", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "best is " in done.stdout
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "report.html").read_text()
