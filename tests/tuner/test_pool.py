"""Whatever a task does to its process, the pool answers, goes on, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from atim.errors import AtimError
from atim.tuner.pool import Pool

HERE = str(Path(__file__).parent)


@dataclass(frozen=True)
class Deeds:
    """A job whose tasks are deeds by name."""

    def prepare(self):
        return act


def act(task):
    name, value = task
    if name == "add":
        return value + 1
    if name == "print":
        print("noise on standard output", flush=True)
        return value
    if name == "raise":
        raise ValueError(f"bad\nvalue {value}")
    if name == "sleep":
        time.sleep(value)
    if name == "child":
        subprocess.run([sys.executable, "-c", f"import time; time.sleep({value})"], check=False)
    if name == "die":
        print("last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "die once":
        if not os.path.exists(value):
            Path(value).touch()
            os._exit(3)
        return "second attempt"
    if name == "eat":
        filled = bytearray(value)
        filled[::4096] = b"x" * len(filled[::4096])
        time.sleep(30)
    return None


@dataclass(frozen=True)
class Broken:
    def prepare(self):
        raise OSError("no such machine")


@dataclass(frozen=True)
class Dying:
    def prepare(self):
        os._exit(7)


def replies(pool, tasks, **options):
    return [reply for _, reply in sorted(pool.run(tasks, **options))]


@pytest.fixture(scope="module")
def pool():
    with Pool(Deeds(), workers=2, time_limit_s=30) as pool:
        yield pool


def test_every_task_is_answered_by_index(pool):
    got = replies(pool, [("add", n) for n in range(20)])
    assert [r.value for r in got] == list(range(1, 21))
    assert all(r.kind == "done" for r in got)


def test_tasks_may_be_added_while_others_are_done(pool):
    tasks = [("add", 0)]
    found = {}
    heard = []
    for index, reply in pool.run(tasks, heard=lambda index, _: heard.append(index)):
        assert index in heard
        found[index] = reply.value
        if len(tasks) < 6:
            tasks += [("add", reply.value), ("add", 100)]
    assert sorted(found) == list(range(7))
    assert found[1] == 2
    assert found[2] == found[4] == found[6] == 101


def test_printing_does_not_disturb_the_replies(pool):
    assert replies(pool, [("print", 5)])[0].value == 5


def test_an_exception_is_one_line_with_its_place(pool):
    (reply,) = replies(pool, [("raise", 9)])
    assert reply.kind == "error"
    assert reply.value.startswith("ValueError: bad value 9 (test_pool.py:")


def test_limits_and_crashes_cost_only_their_task(pool, tmp_path):
    tasks = [("die", 0), ("add", 1), ("die once", str(tmp_path / "mark")), ("add", 2)]
    got = replies(pool, tasks)
    assert [r.kind for r in got] == ["crash", "done", "done", "done"]
    assert got[0].value == "builder ended by signal SIGSEGV: last words"
    assert got[2].value == "second attempt"
    got = replies(pool, [("sleep", 60), ("add", 1)], time_limit_s=0.5)
    assert [r.kind for r in got] == ["timeout", "done"]
    assert got[0].value == "not done after 0.5 s"


def test_memory_is_limited():
    with Pool(Deeds(), workers=1, memory_limit_bytes=500 << 20) as pool:
        got = replies(pool, [("eat", 600 << 20), ("add", 1)])
    assert [r.kind for r in got] == ["memory", "done"]
    assert "limit 500 MB" in got[0].value


def test_a_job_that_cannot_be_prepared_is_an_error_of_the_run():
    with Pool(Broken(), workers=2) as pool, pytest.raises(AtimError, match="no such machine"):
        list(pool.run([1]))
    with Pool(Dying(), workers=1) as pool, pytest.raises(AtimError, match="exit status 7"):
        list(pool.run([1]))


def test_leaving_early_does_not_mix_up_the_next_run(pool):
    run = pool.run([("sleep", 60), ("add", 1)])
    assert next(run)[0] == 1
    run.close()
    assert [r.value for r in replies(pool, [("add", 10), ("add", 20)])] == [11, 21]


def processes_with(text: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if text in (entry / "cmdline").read_bytes().decode(errors="replace"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_survives_the_parent(how):
    nap = 3600 + os.getpid() / 1e6 + how / 1e9  # a child of a builder that can be told by its nap
    script = (
        f"import sys; sys.path.insert(0, {HERE!r})\n"
        "from test_pool import Deeds, Pool\n"
        "with Pool(Deeds(), workers=2, time_limit_s=4000) as pool:\n"
        f"    for _ in pool.run([('add', 1), ('child', {nap!r}), ('child', {nap!r})]):\n"
        "        print('going', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"going\n"
        mark = f"time.sleep({nap!r})"
        wait_until(lambda: len(processes_with(mark)) == 2)
        parent.send_signal(how)
    wait_until(lambda: not processes_with(mark) and not processes_with(f"child', {nap!r}"))


def wait_until(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "nothing changed in 20 s"
        time.sleep(0.02)
