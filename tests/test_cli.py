"""The command line: every mistake is one line with a non-zero status, and never a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from atim import cli

KERNEL = """
from tvm import te

def add(n=64, dtype="int32"):
    a = te.placeholder((n,), dtype, "A")
    return [a, te.compute((n,), lambda i: a[i] + a[i], "B")]

def number():
    return 3

def broken():
    raise KeyError("width")
"""


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """(exit status, the one line on standard error)."""
    status = cli.run(arguments)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith("atim: ")
    return status, captured.err.removeprefix("atim: ").rstrip()


BAD_USE = [
    ("tune mtvv", "workload 'mtvv' is unknown, did you mean mtv? (known: va, "),
    ("tune qqqq", "workload 'qqqq' is unknown (known: va, "),
    ("tune mtv --shape 64", "mtv: shape of 2 (M,K) sizes needed, 1 given"),
    ("tune mtv --shape 64,-3", "size -3 in '64,-3', at least 1 needed"),
    ("tune mtv --shape 64,0", "size 0 in '64,0', at least 1 needed"),
    ("tune mtv --shape 64x3", "'64x3' is not a list of integers such as 4096,777"),
    ("tune mtv --shape 99999999,99999", "elements requested, limit 2,147,483,647"),
    ("tune mtv --dtype int4", "mtv: dtype 'int4' not supported, supported: int32"),
    ("tune mtv --dpus 5000", "DPUs: 5000 requested, limit 2560"),
    ("tune mtv --dpus 0", "DPUs: 0 requested, at least 1 needed"),
    ("tune mtv --tasklets 25", "tasklets: 25 requested, limit 24"),
    ("tune mtv --tasklets 0", "tasklets: 0 requested, at least 1 needed"),
    ("tune mtv --target gpu", "target: 'gpu' unknown, known: upmem-v1a"),
    ("tune mtv --transfer fast", "transfer: 'fast' unknown, known: common"),
    ("tune mtv --trials 0", "'--trials': 0 is not in the range x>=1"),
    ("tune mtv --seed x", "'--seed': 'x' is not a valid integer range"),
    ("tune mtv --resident A --count-all", "contradict each other"),
    ("tune mtv --nonsense", "No such option"),
    ("tune va --trials 99999999999999999999", "requested, limit 1000000"),
    ("tune va --search fast", "search: 'fast' unknown, known: evolutionary, "),
    ("tune va --workers 1000", "workers: 1000 requested, limit 256"),
    ("tune kernel.py", "kernel.py: which function? kernel.py:NAME"),
    ("tune missing.py:f", "file missing.py does not exist"),
    ("tune", "Missing argument"),
    ("tune-tasks", "Missing argument"),
    ("tune-tasks mtv@0", "mtv@0: @0 is no count; at least 1 needed, as in mtv@28"),
    ("tune-tasks va=10@3 mtv=64", "mtv: shape of 2 (M,K) sizes needed, 1 given"),
    ("tune-tasks va=1.5", "'1.5' is not a list of integers such as 4096,777"),
    ("tun", "No such command 'tun'"),
    ("report /nowhere", "no records: /nowhere/records.db does not exist"),
    ("merge /nowhere --into /nowhere/too", "no records: /nowhere/records.db does not exist"),
    ("merge a", "Missing option '--into'"),
    ("tvm-export /nowhere b", "no records: /nowhere/records.db does not exist"),
    ("tvm-import /nowhere b", "/nowhere holds no TVM database"),
    ("worker --tracker host", "tracker 'host': HOST:PORT needed"),
    ("worker --tracker 127.0.0.1:1", "tracker 127.0.0.1:1: Connection refused"),
    ("tune va --tracker 127.0.0.1:1", "tracker 127.0.0.1:1: Connection refused"),
    ("tracker --port 70000", "port 70000 requested, limit 65535"),
]


@pytest.mark.parametrize(("line", "message"), BAD_USE)
def test_bad_use_is_one_line(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    status, text = told(capsys, *line.split())
    assert status in (1, 2)
    assert message in text


# what only a tracker, or TVM, can say
AFTER_TVM = ("tvm-import", "worker", "tune va --tracker", "tracker")


def test_what_arguments_alone_tell_needs_no_tvm() -> None:
    """Nor xgboost, nor torch: all of it in one process in which importing them raises."""
    early = [line for line, _ in BAD_USE if not line.startswith(AFTER_TVM)]
    late = ("tune-tasks mtv va=3,4", "explain /nowhere", "export /nowhere")
    script = (
        "import sys; sys.modules |= dict.fromkeys(['tvm', 'xgboost', 'torch', 'scipy'])\n"
        "from atim import cli\n"
        "for line in sys.stdin: cli.run(line.split())"
    )
    lines = [*early, *late, "trace /nowhere"]
    ran = subprocess.run(
        [sys.executable, "-c", script],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    told = ran.stderr.splitlines()
    assert len(told) == len(lines)
    wrong = [pair for pair in zip(lines, told, strict=True) if "internal error" in pair[1]]
    assert wrong == []
    for message, (_, wanted) in zip(
        told, [row for row in BAD_USE if row[0] in early], strict=False
    ):
        assert wanted in message


@pytest.mark.parametrize(
    ("line", "name", "count"),
    [("mtv", "mtv-4096x4096-int32", 1.0), ("mtv=64,32@28", "mtv-64x32-int32", 28.0)],
)
def test_a_program_of_several_has_sizes_and_a_count(line: str, name: str, count: float) -> None:
    found = cli._task(line)
    assert (found[0], found[2]) == (name, count)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sub", "has no 'sub' (it has: add, number, broken)"),
        ("number", "gave int, needs a list of te tensors, the output last"),
        ("broken", "KeyError: 'width'"),
    ],
)
def test_bad_functions_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    status, text = told(capsys, "tune", f"{tmp_path}/kernel.py:{name}")
    assert status == 1
    assert message in text


def test_a_file_that_does_not_run_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "kernel.py").write_text("import nothing_of_this_name\n")
    _, text = told(capsys, "tune", f"{tmp_path}/kernel.py:f")
    assert "kernel.py: ModuleNotFoundError: No module named 'nothing_of_this_name'" in text


def test_a_function_of_a_file_gets_shape_and_dtype(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    name, tensors = cli.load_program(f"{tmp_path}/kernel.py:add", (96,), "int64")
    assert name == "kernel-add-96"
    assert [(int(t.shape[0]), str(t.dtype)) for t in tensors] == [(96, "int64")] * 2


def test_a_workload_names_its_run() -> None:
    name, workload = cli.load_program("mtv", (1000, 777), None)
    assert name == "mtv-1000x777-int32"
    assert workload.resident == ("A",)


def test_interruption_is_one_line_and_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "load_program", stop)
    assert told(capsys, "tune", "mtv") == (130, "interrupted; what was measured is kept")


def test_our_own_mistakes_are_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATIM_DEBUG", raising=False)
    monkeypatch.setattr(cli, "load_program", lambda *_: 1 / 0)
    status, text = told(capsys, "tune", "mtv")
    assert status == 70
    assert text.startswith("internal error: ZeroDivisionError: division by zero (test_cli.py:")


@pytest.mark.parametrize("line", ["--help", "tune --help", "report -h", "--version"])
def test_help_needs_no_tvm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tvm", None)  # importing it would raise
    assert cli.run(line.split()) == 0
    assert capsys.readouterr().out


def test_every_option_has_help_or_a_default() -> None:
    for command in cli.cli.commands.values():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help or option.show_default, option.name
