"""Whole models: launches on simulated DPUs and host code give PyTorch's numbers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import atim
from atim import cli
from atim.errors import RecordError, UnsupportedError, UsageError
from atim.offload import api
from atim.offload.module import load
from atim.offload.placement import Placement, Problem
from atim.offload.pricing import PriceBook, data_class
from atim.offload.profile import HostFile
from atim.target import Target

TARGET = Target(dpus=8)
# so slow that everything pays
SLOW = HostFile("slow", "", 1, 1e6, 1e6, {"": 1e6}, 0.0)


class IntegerLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        weight = torch.randint(-40, 50, (outputs, inputs), dtype=torch.int32)
        bias = torch.randint(-40, 50, (outputs,), dtype=torch.int32)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = nn.Parameter(bias, requires_grad=False)

    def forward(self, x: Any) -> Any:
        return nn.functional.linear(x, self.weight) + self.bias


class TwoOfOne(nn.Module):
    """Two products of one vector, the second with an epilogue, then a third of both."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (IntegerLayer(96, 96) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return self.c(torch.relu(self.a(x)) - self.b(x))


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return TwoOfOne()


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    return torch.randint(0, 50, (1, 96), dtype=torch.int32, generator=torch.Generator())


@pytest.fixture(scope="module")
def prepared(model: nn.Module, x: torch.Tensor) -> api.Prepared:
    return api.prepare(model, (x,))


@pytest.fixture(scope="module")
def problem(prepared: api.Prepared, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    book = PriceBook(TARGET, tmp_path_factory.mktemp("prices"))
    return api.place(prepared, SLOW, book, method="estimate")


def with_launches(prepared: api.Prepared, problem: Problem, chosen: Sequence[int]) -> api.Offloaded:
    return api.finish(prepared, problem, Placement("chosen", tuple(chosen), 0.0, ()))


@pytest.mark.parametrize("form", ["nest", "epilogue", "stack"])
def test_launches_of_every_form_compute_what_pytorch_does(
    model: nn.Module, x: torch.Tensor, prepared: api.Prepared, problem: Problem, form: str
) -> None:
    places = [n for n, launch in enumerate(problem.launches) if launch.form == form]
    assert places
    module = with_launches(prepared, problem, places)
    np.testing.assert_array_equal(module(x), model(x).numpy())
    assert len(module.timings) == len(places)
    other = x + 1
    np.testing.assert_array_equal(module(other), model(other).numpy())


def test_a_simulated_price_is_what_the_module_takes(
    prepared: api.Prepared, problem: Problem, x: torch.Tensor, tmp_path: Path
) -> None:
    place = next(n for n, launch in enumerate(problem.launches) if launch.form == "stack")
    launch = problem.launches[place]
    book = PriceBook(TARGET, tmp_path)
    price = book.price(launch, "simulate", prepared.arrays(launch))
    assert not isinstance(price, str)
    prices = tuple(price if n == place else p for n, p in enumerate(problem.prices))
    priced = Problem(problem.graph, SLOW, TARGET, problem.launches, prices)
    module = with_launches(prepared, priced, [place])
    module(x)
    assert module.timings[0].total == pytest.approx(price.total, rel=0.05)
    again = PriceBook(TARGET, tmp_path)
    assert again.price(launch, "simulate", prepared.arrays(launch)) == price


def test_a_tuned_price_is_never_above_the_simulated_one(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, x = IntegerLayer(64, 96), torch.randint(0, 50, (1, 64), dtype=torch.int32)
    options: dict[str, Any] = {"host": SLOW, "work_dir": tmp_path, "trials": 2}
    simulated = atim.offload(model, (x,), TARGET, **options, method="simulate")
    tuned = atim.offload(model, (x,), TARGET, **options, method="tune")
    pairs = list(zip(tuned.problem.prices, simulated.problem.prices, strict=True))
    assert {p.how for p, _ in pairs if not isinstance(p, str)} == {"tuned"}
    for after, before in pairs:
        if not isinstance(after, str) and not isinstance(before, str):
            assert after.total <= before.total * 1.001
    assert "tuned" in tuned.report()
    assert tuned.verify((x,)).startswith("outputs equal")


def test_reload_in_a_process_without_pytorch(
    prepared: api.Prepared, problem: Problem, x: torch.Tensor, tmp_path: Path
) -> None:
    module = with_launches(prepared, problem, [0])
    wanted = module(x)
    module.save(tmp_path / "saved")
    np.save(tmp_path / "x.npy", x.numpy())
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np\n"
        "from atim.offload import load\n"
        f"y = load({str(tmp_path / 'saved')!r})(np.load({str(tmp_path / 'x.npy')!r}))\n"
        f"np.save({str(tmp_path / 'y.npy')!r}, y)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)


class Arranged(NamedTuple):
    value: Any
    extra: Any


def test_outputs_are_arranged_as_the_models(tmp_path: Path) -> None:
    """Also by a module that was saved; what is no tensor comes back as it is."""

    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"a": [x + 1, None], "b": Arranged(x * 2, {"n": 3, "c": x - 1}), "d": (x,)}

    x = torch.arange(4.0)
    result = atim.offload(Net(), (x,), TARGET, host=SLOW, work_dir=tmp_path, method="estimate")
    result.module.save(tmp_path / "saved")
    for module in (result, load(tmp_path / "saved")):
        found = module(x)
        assert list(found) == ["a", "b", "d"]
        np.testing.assert_array_equal(found["a"][0], [1, 2, 3, 4])
        assert found["a"][1] is None
        value, extra = found["b"]
        np.testing.assert_array_equal(value, [0, 2, 4, 6])
        assert extra["n"] == 3
        np.testing.assert_array_equal(extra["c"], [-1, 0, 1, 2])
        assert isinstance(found["d"], tuple)
        np.testing.assert_array_equal(found["d"][0], x)


def test_a_folder_without_a_module(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no saved module"):
        load(tmp_path)


def test_wrong_inputs_are_one_line(
    prepared: api.Prepared, problem: Problem, x: torch.Tensor
) -> None:
    module = with_launches(prepared, problem, [])
    with pytest.raises(UsageError):
        module(x[:, :5])


def test_a_module_that_needs_pytorch_is_not_saved(tmp_path: Path) -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.logcumsumexp(x, -1)

    found = api.prepare(Net(), (torch.rand(4),))
    problem = Problem(found.graph, SLOW, TARGET, (), ())
    with pytest.raises(UnsupportedError, match="PyTorch"):
        with_launches(found, problem, []).save(tmp_path)


def test_float32_stays_on_the_host_and_says_why(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(512, 512, bias=False)

        def forward(self, x: Any) -> Any:
            return self.layer(x)

    fast = HostFile("fast", "", 1, 1e9, 1e9, {"": 1e10}, 0.0)
    model, x = Net(), torch.rand(1, 512)
    result = atim.offload(model, (x,), TARGET, host=fast, work_dir=tmp_path, method="estimate")
    assert result.placement.moved == ()
    assert "float32 in software" in result.report()
    np.testing.assert_allclose(result(x), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_relax_module_and_inputs_as_parameters(tmp_path: Path) -> None:
    from tvm import relax

    builder = relax.BlockBuilder()
    x, w = (
        relax.Var(name, relax.TensorType(shape, "int32"))
        for name, shape in (("x", [1, 64]), ("w", [64, 128]))
    )
    with builder.function("main", [x, w], attrs={"num_input": 1}):
        with builder.dataflow():
            y = builder.emit_output(relax.op.matmul(x, w))
        builder.emit_func_output(y)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 50, shape, dtype=np.int32) for shape in ((1, 64), (64, 128))]
    options: dict[str, Any] = {"host": SLOW, "work_dir": tmp_path, "method": "estimate"}
    result = atim.offload(builder.get(), arrays, TARGET, **options)
    assert len(result.placement.moved) == 1
    np.testing.assert_array_equal(result(arrays[0]), arrays[0] @ arrays[1])


def test_bad_arguments(tmp_path: Path, model: nn.Module, x: torch.Tensor) -> None:
    for options in ({"strategy": "best"}, {"layers": 0}):
        with pytest.raises(UsageError):
            atim.offload(model, (x,), TARGET, host="papers", work_dir=tmp_path, **options)


def test_what_a_price_depends_on() -> None:
    assert data_class(np.full(9, -(2**63))).endswith("63/63 bits")
    small = data_class(np.full(9, 49, np.int32))
    assert small != data_class(np.full(9, -49, np.int32))
    assert small != data_class(np.full(9, 1 << 20, np.int32))
    assert data_class(np.ones(3, np.float32)) == data_class(np.zeros(5, np.float32))


MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(
            torch.randint(0, 50, (256, 128), dtype=torch.int32), requires_grad=False)
    def forward(self, x):
        return torch.nn.functional.linear(x, self.w)
"""


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    common = ["offload", f"{tmp_path / 'model.py'}:Net", "--dpus", "8", "--host", "papers"]
    common += ["--work-dir", str(tmp_path / "run"), "--prices", "estimate"]
    whole = [*common, "--input", "1x128:int32", "--run", "--strategy", "all-pim"]
    assert cli.run([*whole, "--save", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "outputs equal the original's; launches took" in out
    assert (tmp_path / "run" / "placement.png").stat().st_size > 1000
    assert "all-host" in out
    assert "fused" in out or "matmul" in out
    x = np.ones((1, 128), np.int32)
    assert load(tmp_path / "out")(x).shape == (1, 256)
    for wrong in ("1x", "1x128:complex", "axb", "1x128:int32=x", "1x64:int32", "1x128"):
        assert cli.run([*common, "--input", wrong]) != 0
        assert capsys.readouterr().err.count("\n") == 1
    assert cli.run(["offload", f"{tmp_path / 'model.py'}:Other", "--input", "1x2"]) != 0
    capsys.readouterr()
    for state in (["0:0"], ["3:0"], ["all"], ["0:0", "auto"]):
        given = [part for text in state for part in ("--state", text)]
        assert cli.run([*common, "--input", "1x128:int32", *given]) != 0
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert "state" in err


class Wide(nn.Module):
    """PyTorch sums int32 in int64: a nest whose result is of that type, and one that reads it; and
    values of 64 bits inside a nest, with a constant that 32 bits can't hold."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.arange(67 * 129, dtype=torch.int32).reshape(67, 129) % 90)

    def forward(self, x: Any) -> Any:
        inside = ((self.w + x).to(torch.int64) * 1234567890123 >> 20).to(torch.int32)
        return (self.w * x).sum(-1) * 3, self.w + x.to(torch.int64), inside


def test_nests_with_values_of_64_bits_run_on_dpus(tmp_path: Path) -> None:
    model, x = Wide(), torch.arange(129, dtype=torch.int32) - 40
    result = api.offload(
        model, (x,), TARGET, host=SLOW, method="estimate", strategy="all-pim", work_dir=tmp_path
    )
    for got, wanted in zip(result(x * 5), model(x * 5), strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted.numpy())
    assert [p for p in result.problem.prices if isinstance(p, str)] == []
    assert len(result.placement.chosen) == 3
