"""Workers on other machines: taken as they come, lost without harm, never of another version."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import ToyJob
from test_loop import HERE, tune, what

from atim.errors import AtimError, UsageError
from atim.tuner import pool
from atim.tuner.display import Display
from atim.tuner.loop import Limits, start_pool
from atim.tuner.pool import Pool
from atim.tuner.remote import Fleet, read_reply
from atim.tuner.trial import Measurement, Task
from atim.tuner.worker import _forgiving, serve_tracker

TASKS = [Task("rows", {"dpus": 8, "tasklets": n + 1, "tile": 8, "unroll": 1}) for n in range(12)]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def start(code: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": HERE}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code], env=environment, stderr=subprocess.DEVNULL
    )


def wait_until(condition) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "nothing changed in two minutes"
        time.sleep(0.1)


def answers(fleet: Fleet) -> bool:
    try:
        fleet.check()
    except UsageError:
        return False
    return True


@pytest.fixture(scope="module")
def fleet():
    port = free_port()
    tracker = start(f"from atim.tuner.worker import *; serve_tracker('127.0.0.1', {port})")
    found = Fleet("127.0.0.1", port, "test", "1")
    wait_until(lambda: answers(found))
    yield found
    tracker.terminate()
    tracker.wait()


def start_worker(fleet: Fleet) -> subprocess.Popen[bytes]:
    return start(
        "from atim.tuner.worker import *; from atim.tuner.remote import *\n"
        f"serve({fleet!r}, slots=2)"
    )


@pytest.fixture(scope="module")
def worker(fleet):
    process = start_worker(fleet)
    yield process
    process.terminate()
    process.wait()


def children_of(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in lists for child in path.read_text().split()]


def descendants(pid: int) -> list[int]:
    try:
        children = children_of(pid)
    except OSError:
        return []
    return children + [pid for child in children for pid in descendants(child)]


def test_workers_elsewhere_give_the_same_records_as_builders_here(tmp_path, fleet, worker):
    here = tune(tmp_path / "here")
    assert what(tune(tmp_path / "elsewhere", fleet=fleet, workers=4)) == what(here)


def test_a_lost_worker_costs_a_retry_and_nothing_else(fleet, worker):
    lines = []
    with Pool(ToyJob(slow_s=0.1), workers=4, fleet=fleet, say=lines.append) as pool:
        undone = dict(pool.run(TASKS))
        done = {}
        for index, reply in pool.run(TASKS):
            done[index] = reply
            if len(done) == 2:
                slots = children_of(worker.pid)
                os.killpg(slots[0], signal.SIGKILL)  # its session and builder die with it
            if len(done) == 6:
                (session,) = children_of(slots[1])
                os.kill(session, signal.SIGKILL)
    assert {n: r.kind for n, r in done.items()} == dict.fromkeys(range(12), "done")
    assert {n: r.value for n, r in done.items()} == {n: r.value for n, r in undone.items()}
    assert all("workers" in line for line in lines)


def test_a_worker_of_another_version_is_not_used(fleet, worker):
    other = Fleet(fleet.host, fleet.port, fleet.key, "2")
    wait_until(lambda: "2 of another software version" in other.situation()[1])
    workers, text = other.situation()
    assert workers == 0
    assert "has 0 workers 'test', 0 of them free" in text


def test_a_key_without_workers_is_told_and_an_error_after_a_while(
    fleet, worker, monkeypatch, capsys
):
    wait_until(lambda: fleet.situation()[0] == 2)
    monkeypatch.setattr(pool, "QUIET_S", 0.1)
    monkeypatch.setattr(pool, "LONELY_S", 0.5)
    unknown = replace(fleet, key="unknown")
    limits, display = Limits(time_s=60, memory_bytes=1 << 30), Display("quiet")
    with start_pool(ToyJob(), 2, limits, display, unknown) as lonely:
        missing = r"no worker for 0 s: tracker .* has 0 workers 'unknown', .*other keys: test"
        with pytest.raises(AtimError, match=missing):
            list(lonely.run(TASKS))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("atim: waiting: tracker ")


def test_a_session_whose_tuner_is_gone_is_one_line(capsys):
    def loop(number: int) -> None:
        raise RuntimeError(f"frame {number}\nConnection reset by peer")

    _forgiving(loop)(7)
    assert capsys.readouterr().err == "slot: the tuner is gone: Connection reset by peer\n"


def test_nothing_of_a_worker_survives_it(fleet, worker):
    family = descendants(worker.pid)
    assert len(family) >= 2
    worker.kill()
    worker.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family))


def test_a_reply_can_only_be_a_measurement():
    reply = ("done", Measurement("ok", timing=(1.0, 2.0, 3.0, 4.0)), 0.5)
    assert read_reply(pickle.dumps(reply)) == reply
    with pytest.raises(pickle.UnpicklingError, match=r"posix\.system in a worker's reply"):
        read_reply(pickle.dumps(os.system))


@pytest.mark.parametrize(
    ("address", "key", "message"),
    [
        ("host", "k", "tracker 'host': HOST:PORT needed"),
        ("host:x", "k", "tracker 'host:x': HOST:PORT needed"),
        (":9190", "k", "tracker ':9190': HOST:PORT needed"),
        ("host:9190", "a b", "key 'a b': a word without spaces"),
    ],
)
def test_bad_addresses_are_one_line(address, key, message):
    with pytest.raises(UsageError, match=message):
        Fleet.at(address, key)


def test_a_tracker_that_is_not_there_is_one_line():
    with pytest.raises(UsageError, match="Connection refused"):
        Fleet("127.0.0.1", free_port()).check()


def test_a_tracker_on_a_taken_port_ends():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{port}: no tracker can start there"):
            serve_tracker("127.0.0.1", port, say=lambda text: None)
