"""State kept by placed modules: updates in place; caches in MRAM, to which only rows are sent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import atim
from atim import workloads
from atim.codegen import Tensor, Tile, TransferPlan
from atim.errors import UnsupportedError, UsageError
from atim.offload import api
from atim.offload.launches import Launch, Operand
from atim.offload.module import load
from atim.offload.nests import features_of
from atim.offload.placement import Problem
from atim.offload.pricing import Price, PriceBook
from atim.offload.profile import HostFile
from atim.offload.state import Kept, Update
from atim.target import Target
from upmem_sim import TransferModel

TARGET = Target(dpus=8)
# so slow that everything pays
SLOW = HostFile("slow", "", 1, 1e6, 1e6, {"": 1e6}, 0.0)
HEADS, LENGTH, SIZE = 2, 48, 64


class Cached(nn.Module):
    """One update of a buffer, by a function of (cache, rows [1, 2, 1, 4], position [1])."""

    def __init__(self, write: Callable[..., Any]) -> None:
        super().__init__()
        self.write = write
        self.register_buffer("cache", torch.arange(64.0).reshape(1, 2, 8, 4))

    def forward(self, rows: Any, position: Any) -> Any:
        self.write(self.cache, rows, position)
        return self.cache.sum(-1) - rows.mean()


def set_rows(cache: Any, rows: Any, position: Any) -> None:
    cache[:, :, position] = rows


def set_slice(cache: Any, rows: Any, position: Any) -> None:
    cache[:, :, 2:3] = rows


def set_last(cache: Any, rows: Any, position: Any) -> None:
    cache[:, :, -1] = rows[:, :, 0] + position


def set_head(cache: Any, rows: Any, position: Any) -> None:
    cache[0, :, position] = rows[0]


def set_masked(cache: Any, rows: Any, position: Any) -> None:
    cache[cache > 30] = 1.5


INDEX_PUT = torch.ops.aten.index_put_

WRITES: dict[str, Callable[..., Any]] = {
    "positions": set_rows,
    "negative positions": lambda c, r, p: set_rows(c, r, p - 8),
    "two rows": lambda c, r, p: set_rows(c, torch.cat((r, -r), 2), torch.cat((p, p + 1))),
    "one position": lambda c, r, p: INDEX_PUT(c, [None, None, p.sum()], r[:, :, 0]),
    "index_copy": lambda c, r, p: c.index_copy_(2, p, r),
    "slice": set_slice,
    "last": set_last,
    "one head": set_head,
    "sliding window": lambda c, r, p: c.copy_(torch.cat((c[:, :, 1:], r), 2)),
    "where": lambda c, r, p: c.copy_(torch.where(torch.arange(8)[:, None] == p, r, c)),
    "scatter": lambda c, r, p: c.scatter_(2, p.view(1, 1, 1, 1).expand(1, 2, 1, 4), r),
    "sum": lambda c, r, p: c.add_(r),
    "twice": lambda c, r, p: (set_rows(c, r, p), set_rows(c, r + 1, p + 1)),
    "added rows": lambda c, r, p: c.index_add_(2, p, r),
    "mask": set_masked,
}
THROUGH_PYTORCH = ("added rows", "mask")


def placed(found: api.Prepared) -> Any:
    problem = Problem(found.graph, SLOW, TARGET, (), ())
    return api.finish(found, problem, problem.place("all-host"))


@pytest.mark.parametrize("name", WRITES)
def test_updates_in_place_are_kept_from_call_to_call(name: str) -> None:
    model = Cached(WRITES[name])
    inputs = (torch.rand(1, 2, 1, 4), torch.tensor([3]))
    before = model.cache.clone()
    found = api.prepare(model, inputs)
    assert torch.equal(model.cache, before)
    assert bool(found.imported.fallbacks) == (name in THROUGH_PYTORCH)
    module = placed(found)
    for step in range(4):
        rows, position = torch.rand(1, 2, 1, 4), torch.tensor([step])
        wanted = model(rows, position).numpy()
        np.testing.assert_allclose(module(rows, position), wanted, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(module.state["b_cache"], model.cache.numpy(), rtol=1e-6)


def test_a_position_outside_is_one_line() -> None:
    module = placed(api.prepare(Cached(set_rows), (torch.rand(1, 2, 1, 4), torch.tensor([3]))))
    with pytest.raises(UsageError, match="out of bounds"):
        module(torch.rand(1, 2, 1, 4), torch.tensor([8]))


class Decoder(nn.Module):
    """Attention of one token over caches of fixed length: buffers, or inputs and outputs."""

    def __init__(self, functional: bool = False, heads: int = HEADS) -> None:
        super().__init__()
        self.heads, width = heads, heads * SIZE
        self.functional = functional
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        if not functional:
            self.register_buffer("keys", torch.zeros(1, heads, LENGTH, SIZE))
            self.register_buffer("values", torch.zeros(1, heads, LENGTH, SIZE))

    def forward(self, x: Any, position: Any, *caches: Any) -> Any:
        q, k, v = (
            layer(x).view(1, 1, self.heads, SIZE).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        if self.functional:
            keys, values = caches[0].index_copy(2, position, k), caches[1].clone()
            values[:, :, position] = v
        else:
            self.keys.index_copy_(2, position, k)
            self.values[:, :, position] = v
            keys, values = self.keys, self.values
        scores = q @ keys.transpose(-1, -2) / SIZE**0.5
        scores = scores.masked_fill(torch.arange(LENGTH) > position, float("-inf"))
        mixed = (torch.softmax(scores, -1) @ values).transpose(1, 2).reshape(1, 1, -1)
        return (mixed, keys, values) if self.functional else mixed


def inputs(step: int, heads: int = HEADS) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(step)
    return torch.rand(1, 1, heads * SIZE, generator=generator), torch.tensor([step])


def caches() -> tuple[Any, Any]:
    shape = (1, HEADS, LENGTH, SIZE)
    return torch.zeros(shape), torch.zeros(shape)


def offloaded(model: nn.Module, examples: tuple[Any, ...], folder: Path, **options: Any) -> Any:
    with torch.no_grad():
        return atim.offload(
            model, examples, TARGET, host=SLOW, work_dir=folder, method="estimate", **options
        )


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    torch.manual_seed(0)
    return Decoder()


@pytest.fixture(scope="module")
def result(decoder: Decoder, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return offloaded(decoder, inputs(0), tmp_path_factory.mktemp("prices"))


def kept(result: Any) -> list[Launch]:
    chosen = [result.problem.launches[n] for n in result.placement.chosen]
    return [x for x in chosen if any(o.kept for o in x.operands)]


def test_attention_over_caches_in_mram(decoder: Decoder, result: Any, tmp_path: Path) -> None:
    assert len(kept(result)) == 2
    assert "1 row of its cache is sent" in result.report()
    result.module.reset()
    for step in range(3):
        with torch.no_grad():
            wanted = decoder(*inputs(step)).numpy()
        np.testing.assert_allclose(result(*inputs(step)), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result.module.state["b_keys"], decoder.keys.numpy(), atol=1e-6)
    # a saved module goes on where it was, without PyTorch
    result.module.save(tmp_path / "saved")
    np.savez(tmp_path / "x.npz", *(v.numpy() for v in inputs(3)))
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np\n"
        "from atim.offload import load\n"
        f"x = np.load({str(tmp_path / 'x.npz')!r})\n"
        f"y = load({str(tmp_path / 'saved')!r})(x['arr_0'], x['arr_1'])\n"
        f"np.save({str(tmp_path / 'y.npy')!r}, y)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)
    with torch.no_grad():
        wanted = decoder(*inputs(3)).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-4, atol=1e-5)
    for name in ("keys", "values"):
        getattr(decoder, name).zero_()


def test_state_is_set_and_reset(result: Any) -> None:
    module = result.module
    module.reset()
    first = module(*inputs(0))
    after = module.state
    module(*inputs(1))
    module.reset()
    np.testing.assert_array_equal(module(*inputs(0)), first)
    for name, value in after.items():
        module.set_state(name, value)
    second = module(*inputs(1))
    module.reset()
    module(*inputs(0))
    np.testing.assert_array_equal(module(*inputs(1)), second)
    with pytest.raises(UsageError, match="unknown, known: b_keys, b_values"):
        module.set_state("keys", after["b_keys"])
    with pytest.raises(UsageError, match="needed"):
        module.set_state("b_keys", after["b_keys"][:, :1])


@pytest.mark.parametrize("state", [[(2, 1), (3, 2)], "auto"])
def test_caches_of_a_functional_model(state: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, own = Decoder(functional=True), caches()
    result = offloaded(model, (*inputs(0), *own), tmp_path, state=state)
    assert len(kept(result)) == 2
    for step in range(3):
        with torch.no_grad():
            wanted, *own = model(*inputs(step), *own)
        np.testing.assert_allclose(result(*inputs(step)), wanted.numpy(), rtol=1e-4, atol=1e-5)
    assert "equal" in result.verify(inputs(0))


def test_without_state_caches_come_and_go() -> None:
    found = api.prepare(Decoder(functional=True), (*inputs(0), *caches()))
    assert not [o for x in found.launches for o in x.operands if o.kept]
    assert len(placed(found)(*inputs(0), *caches())) == 3


def product(kept: Kept | None, resident: bool) -> Launch:
    """q K^T of GPT-J, 512 tokens."""
    func = workloads.get("mmtv", (16, 512, 256), "int32").func
    operands = (
        Operand("A", (16, 512, 256), ("cache",), resident, kept=kept),
        Operand("x", (16, 256), ("q",), False),
    )
    return Launch("nest", (0,), func, operands, ("y",))


def test_a_kept_cache_costs_its_rows(tmp_path: Path) -> None:
    kept = Kept(Update("cache", "k", "position", 2, -1), (1, 16, 512, 256), 1)
    book = PriceBook(Target(dpus=2048), tmp_path)
    launches = [product(kept, True), product(None, True), product(None, False)]
    rows, nothing, whole = (book.price(x, "estimate") for x in launches)
    assert isinstance(rows, Price)
    assert isinstance(nothing, Price)
    assert isinstance(whole, Price)
    assert nothing.total < rows.total < whole.total
    # a small attention shape stays on the host all the same, as in ATiM's table
    host = HostFile.load("papers").estimate("", features_of(launches[0].func)).seconds
    assert rows.total > host


def test_rows_are_sent_piece_by_piece() -> None:
    """2 heads x 16 rows x 64 floats on a DPU: the rows of two heads are two pushes."""
    tile = Tile("A", "A", "float32", "in", (16, 512, 64), (2, 16, 64), (2, 16, 64), (0, 0, 0),
                ((2, 0), (0, 16), (0, 0)))  # fmt: skip
    tensor = Tensor("A", (16, 512, 64), "float32", "input")
    plan = TransferPlan((8, 32), (tensor,), (tile,))
    push = TransferModel.preset("common").to_dpus(256, 256)  # every rank has a holder
    update = Update("cache", "k", "position", 2, -1)
    one = Kept(update, (1, 16, 512, 64), 1).send_s(plan, "A", "common")
    assert one == pytest.approx(2 * push)
    across = Update("cache", "k", "position", 3, -1)
    column = Kept(across, (1, 16, 512, 64), 1).send_s(plan, "A", "common")
    assert column == pytest.approx(32 * TransferModel.preset("common").to_dpus(8, 256))


def test_a_cache_that_is_more_than_written_is_not_kept() -> None:
    class Scaled(Cached):
        def forward(self, rows: Any, position: Any) -> Any:
            set_rows(self.cache, rows, position)
            result = self.cache.sum(-1)
            self.cache.mul_(0.5)
            return result

    found = api.prepare(Scaled(set_rows), (torch.rand(1, 2, 1, 4), torch.tensor([3])))
    assert not any(found.graph.kept(name) for name in found.graph.updates)


def test_wrong_state_is_named() -> None:
    model = Decoder(functional=True)
    examples = (*inputs(0), *caches())
    for state, words in (
        ([(2, 9)], "has 4 inputs and 3 outputs"),
        ([(0, 1)], "its new value"),
        ([(2,)], r"\(input, output\) needed"),
        ([(-1, 0)], "from 0 on"),
        ("all", "'auto' needed"),
    ):
        with pytest.raises(UsageError, match=words):
            api.prepare(model, examples, state=state)


def test_an_input_updated_in_place() -> None:
    class Writes(nn.Module):
        def forward(self, rows: Any, position: Any, cache: Any) -> Any:
            set_rows(cache, rows, position)
            return cache.sum(-1)

    examples = (torch.rand(1, 2, 1, 4), torch.tensor([3]), torch.zeros(1, 2, 8, 4))
    with pytest.raises(UnsupportedError, match="input cache is updated in place"):
        api.prepare(Writes(), examples)
    module = placed(api.prepare(Writes(), examples, state="auto"))
    cache = torch.zeros(1, 2, 8, 4)
    for step in range(2):
        rows, position = torch.rand(1, 2, 1, 4), torch.tensor([step])
        wanted = Writes()(rows, position, cache).numpy()
        np.testing.assert_allclose(module(rows, position), wanted, rtol=1e-5)


def test_a_growing_cache_can_not_be_state() -> None:
    class Grows(nn.Module):
        def forward(self, rows: Any, cache: Any) -> Any:
            longer = torch.cat((cache, rows), 1)
            return longer.sum(-1), longer

    with pytest.raises(UsageError, match="a cache of fixed size needed"):
        api.prepare(Grows(), (torch.rand(1, 1, 4), torch.rand(1, 8, 4)), state=[(1, 1)])


def test_a_saved_module_keeps_its_state(tmp_path: Path) -> None:
    model = Cached(set_rows)
    module = placed(api.prepare(model, (torch.rand(1, 2, 1, 4), torch.tensor([3]))))
    rows = torch.rand(1, 2, 1, 4)
    module(rows, torch.tensor([5]))
    again = load(module.save(tmp_path))
    model(rows, torch.tensor([5]))
    wanted = model(rows, torch.tensor([2])).numpy()
    np.testing.assert_allclose(again(rows, torch.tensor([2])), wanted, rtol=1e-5)
