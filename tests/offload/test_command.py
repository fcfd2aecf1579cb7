"""`atim offload`: what its arguments alone tell, in one line and without TVM or PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from atim import cli, offload
from atim.errors import UsageError
from atim.offload.command import load_model, parse_input

MODEL = """
class Sized:
    def __init__(self, rows, columns=3, *more): ...

class Broken:
    def __init__(self): raise KeyError("width")

class Net:
    def forward(self, x): return x
    def __call__(self, x): return x

def plain(x): return x + 1
def make(size=3): return Net()
made = Net()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path / "model.py"


@pytest.mark.parametrize("text", ["0x512", "4x0:int32", "0"])
def test_an_input_without_elements_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"input '{text}': size 0, at least 1 needed"):
        parse_input(text)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Sized", r"class Sized needs arguments \(rows\); name a class or a function that makes"),
        ("plain", r"function plain needs arguments \(x\); name a class or a function that makes"),
        ("Broken", r"Broken\(\): KeyError: 'width'"),
        ("Nett", "has no 'Nett', did you mean Net\\?"),
        ("other", "has no 'other'$"),
    ],
)
def test_what_makes_no_model_is_refused(path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_model(f"{path}:{name}")


@pytest.mark.parametrize("name", ["Net", "make", "made"])
def test_a_model_is_made_or_taken_as_it_is(path: Path, name: str) -> None:
    title, model = load_model(f"{path}:{name}")
    assert title == f"model-{name}"
    assert type(model).__name__ == "Net"


def test_a_missing_torch_is_told_with_what_brings_it(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("raise ModuleNotFoundError('No module', name='torch')")
    with pytest.raises(UsageError, match="No module; pip install torch"):
        load_model(f"{tmp_path}/model.py:Net")


def test_a_wrong_machine_is_told_before_the_model_is_read(
    capsys: pytest.CaptureFixture[str], path: Path
) -> None:
    assert cli.run(["offload", f"{path}:Broken", "--input", "1", "--dpus", "0"]) == 1
    assert capsys.readouterr().err == "atim: DPUs: 0 requested, at least 1 needed\n"


def test_python_gets_a_line_for_what_is_no_model() -> None:
    inputs = (np.zeros(3, np.float32),)
    with pytest.raises(UsageError, match=r"class ReLU given, an object of it needed, such as"):
        offload(torch.nn.ReLU, inputs, host="papers")
    with pytest.raises(UsageError, match=r"function given \(its code can be the forward"):
        offload(lambda x: x, inputs, host="papers")
    with pytest.raises(UsageError, match="method: 'guess' unknown, known: estimate, "):
        offload(torch.nn.ReLU(), inputs, method="guess")
