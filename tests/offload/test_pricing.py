"""Prices against the papers' host: where products begin to pay, by closed form alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from atim import workloads
from atim.errors import RecordError
from atim.offload.factors import factor_of
from atim.offload.launches import Launch, Operand
from atim.offload.nests import features_of
from atim.offload.pricing import Price, PriceBook
from atim.offload.profile import HostFile
from atim.target import Target


def launch(name: str, shape: tuple[int, ...], dtype: str, resident: bool = True) -> Launch:
    func = workloads.get(name, shape, dtype).func
    operands = (
        Operand("A", shape, ("a",), resident),
        Operand("x", tuple(int(n) for n in func.params[1].shape), ("x",), False),
    )
    return Launch("nest", (0,), func, operands, ("y",))


@pytest.mark.parametrize(
    ("dtype", "dpus", "pays"),
    [
        ("int32", 16, False),
        ("int32", 512, True),
        ("int8", 64, False),
        ("int8", 512, True),
        ("float32", 256, False),
    ],
)
def test_where_a_product_begins_to_pay(tmp_path: Path, dtype: str, dpus: int, pays: bool) -> None:
    product = launch("mtv", (4096, 16384), dtype)
    host = HostFile.load("papers").estimate("", features_of(product.func)).seconds
    price = PriceBook(Target(dpus=dpus), tmp_path).price(product, "estimate")
    if isinstance(price, str):  # 16 DPUs do not hold the matrix
        assert not pays
    else:
        assert (price.total < host) == pays


def test_attention_over_a_short_cache_does_not_pay(tmp_path: Path) -> None:
    product = launch("mmtv", (16, 512, 256), "float32", resident=False)
    host = HostFile.load("papers").estimate("", features_of(product.func)).seconds
    price = PriceBook(Target(dpus=2048), tmp_path).price(product, "estimate")
    assert isinstance(price, Price)
    assert price.total > host


@pytest.mark.parametrize("limits", [(0, 50), (-50, 50), (0, 5000), (-(2**30), 2**30)])
def test_closed_forms_know_the_values(tmp_path: Path, limits: tuple[int, int]) -> None:
    """Kernels of every form of product, on values of every kind."""
    rng = np.random.default_rng(0)
    product = launch("mtv", (256, 512), "int32")
    arrays = {"A": (256, 512), "x": (512,)}
    found = {n: rng.integers(*limits, shape, dtype=np.int32) for n, shape in arrays.items()}
    factors = {name: factor_of(array) for name, array in found.items()}
    book = PriceBook(Target(dpus=64), tmp_path)
    estimated = book.price(product, "estimate", factors=factors)
    simulated = book.price(product, "simulate", found, factors)
    assert isinstance(estimated, Price)
    assert isinstance(simulated, Price)
    assert estimated.kernel == pytest.approx(simulated.kernel, rel=0.3)
    assert estimated.decisions["multiply"] == simulated.decisions["multiply"]


def test_a_refusal_is_kept_like_a_price(tmp_path: Path) -> None:
    product = launch("mtv", (8192, 65536), "int32")
    refused = PriceBook(Target(dpus=8), tmp_path).price(product, "estimate")
    assert isinstance(refused, str)
    assert PriceBook(Target(dpus=8), tmp_path).price(product, "estimate") == refused


def test_a_damaged_price_file(tmp_path: Path) -> None:
    product = launch("mtv", (256, 256), "int32")
    assert isinstance(PriceBook(Target(dpus=8), tmp_path).price(product, "estimate"), Price)
    (path,) = (tmp_path / "prices").glob("*.json")
    for text in ("{", "[]", "{}"):
        path.write_text(text)
        with pytest.raises(RecordError, match=f"price {path}"):
            PriceBook(Target(dpus=8), tmp_path).price(product, "estimate")


def test_prices_found_by_another_process_are_used(tmp_path: Path) -> None:
    """Of two books on one folder, each sees what the other finds."""
    product = launch("mtv", (256, 256), "int32")
    first, second = (PriceBook(Target(dpus=8), tmp_path) for _ in range(2))
    price = first.price(product, "estimate")
    (path,) = (tmp_path / "prices").glob("*.json")
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(facts | {"kernel": 1.0}))
    assert first.price(product, "estimate") == price
    found = second.price(product, "estimate")
    assert isinstance(found, Price)
    assert found.kernel == 1.0


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_hypothetical_cores_are_compiled_for_and_simulated(tmp_path: Path, dtype: str) -> None:
    """Results are compared with NumPy before there is a price."""
    product = launch("mtv", (64, 512), dtype)
    prices = [
        PriceBook(Target(name, dpus=8), tmp_path / name).price(product, "simulate")
        for name in ("upmem-v1a", "hypothetical-units", "hypothetical-units-1ghz")
    ]
    assert all(isinstance(price, Price) for price in prices), prices
    silicon, units, fast = (price for price in prices if isinstance(price, Price))
    assert silicon.how == "simulated"
    assert units.how == fast.how == "simulated, HYPOTHETICAL core"
    if dtype == "float32":
        assert units.total < 0.6 * silicon.total
