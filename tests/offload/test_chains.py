"""Values that stay in MRAM between two kernels: offered where tiles agree, right, and cheaper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from atim.errors import AtimError
from atim.offload import api
from atim.offload.chains import agreeing
from atim.offload.module import load
from atim.offload.placement import Placement, Problem
from atim.offload.pricing import Price, PriceBook
from atim.offload.profile import HostFile
from atim.target import Target

TARGET = Target(dpus=16)
# so slow that everything pays
SLOW = HostFile("slow", "", 1, 1e6, 1e6, {"": 1e6}, 0.0)


class MLP(nn.Module):
    """Up, ReLU, down: sums of int32."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        up = torch.randint(-40, 50, (hidden, inputs), dtype=torch.int32)
        down = torch.randint(-40, 50, (outputs, hidden), dtype=torch.int32)
        self.up = nn.Parameter(up, requires_grad=False)
        self.down = nn.Parameter(down, requires_grad=False)

    def forward(self, x: Any) -> Any:
        grown = torch.relu(nn.functional.linear(x, self.up))
        return nn.functional.linear(grown, self.down)


def example(inputs: int) -> torch.Tensor:
    return torch.randint(0, 50, (1, inputs), dtype=torch.int32)


@pytest.fixture(scope="module")
def model() -> MLP:
    torch.manual_seed(0)
    return MLP(40, 512, 10)


@pytest.fixture(scope="module")
def prepared(model: MLP) -> api.Prepared:
    return api.prepare(model, (example(40),))


@pytest.fixture(scope="module")
def problem(prepared: api.Prepared, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    book = PriceBook(TARGET, tmp_path_factory.mktemp("prices"))
    return api.place(prepared, SLOW, book)


def test_the_hidden_values_of_an_mlp_stay(
    model: MLP, prepared: api.Prepared, problem: Problem, tmp_path: Path
) -> None:
    placement = problem.place("ours")
    (chosen,) = (problem.launches[n] for n in placement.chosen)
    assert chosen.form == "chain"
    assert all("stays in MRAM" in v.reason for v in placement.verdicts if v.on_pim)
    module = api.finish(prepared, problem, placement)
    module.save(tmp_path)
    for run in (module, load(tmp_path)):
        x = example(40)
        np.testing.assert_array_equal(run(x), model(x).numpy())
        assert run.timings[0].total == pytest.approx(placement.seconds, rel=0.05)
    (kernel,) = module.kernels
    pushed = [t.tensor for m in kernel.chain.moves if m is not None for t in m.pushed]
    assert len(pushed) == 1, pushed  # the input; the hidden values and the weights lie there


def test_a_chain_takes_less_than_its_launches(problem: Problem) -> None:
    """No other set of launches does the same in less time."""
    prices = {x.form: p for x, p in zip(problem.launches, problem.prices, strict=True)}
    assert isinstance(prices["chain"], Price)
    assert problem.place("ours").seconds == pytest.approx(prices["chain"].total)
    assert problem.place("ours").seconds < 0.95 * problem.place("greedy").seconds


@pytest.mark.parametrize(
    ("hidden", "dpus"),
    [
        (499, 16),  # a prime: no equal spans
        (512, 1),  # nothing to cut
    ],
)
def test_where_tiles_disagree_values_go_through_the_host(
    tmp_path: Path, hidden: int, dpus: int
) -> None:
    found = api.prepare(MLP(40, hidden, 10), (example(40),))
    target = Target(dpus=dpus)
    (chain,) = (x for x in found.launches if x.form == "chain")
    with pytest.raises(AtimError, match="disagree"):
        agreeing(chain, target)
    placed = api.place(found, SLOW, PriceBook(target, tmp_path), method="estimate").place("ours")
    assert placed.moved
    assert not any("stays" in v.reason for v in placed.verdicts)


@pytest.mark.parametrize("reader", ["the caller", "another product"])
def test_what_others_read_does_not_stay(reader: str) -> None:
    class Shared(MLP):
        def forward(self, x: Any) -> Any:
            grown = torch.relu(nn.functional.linear(x, self.up))
            other = grown @ self.up
            return nn.functional.linear(grown, self.down), other if "product" in reader else grown

    found = api.prepare(Shared(40, 512, 10), (example(40),))
    assert len(found.launches) > 1
    assert not [x for x in found.launches if x.form == "chain"]


def test_a_chain_beside_other_launches(
    model: MLP, prepared: api.Prepared, problem: Problem
) -> None:
    """Every chain offered computes what PyTorch does, on awkward values."""
    for place, (launch, price) in enumerate(zip(problem.launches, problem.prices, strict=True)):
        if launch.form != "chain" or isinstance(price, str):
            continue
        module = api.finish(prepared, problem, Placement("chosen", (place,), 0.0, ()))
        for x in (example(40) - 60, torch.full((1, 40), -(1 << 20), dtype=torch.int32)):
            np.testing.assert_array_equal(module(x), model(x).numpy())
