"""Lowered models as graphs: one root nest a function, what is a candidate, launches offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from atim.offload.hypothetical import CORES, HYPOTHETICAL
from atim.offload.importer import import_model
from atim.offload.launches import launches_of, why_not
from atim.offload.lowering import lower
from atim.offload.nests import Graph, read_graph
from atim.offload.split import root_nests
from benchmarks.model_zoo import gptj, llama


def graph_of(make: Callable[[str], tuple[Any, Any]], dtype: str) -> Graph:
    model, inputs = make(dtype)
    return read_graph(lower(import_model(model, inputs)).module)


@pytest.fixture(scope="module")
def layer() -> Graph:
    return graph_of(gptj(64, 4, 1, 16), "int32")


def test_every_function_has_one_root_nest(layer: Graph) -> None:
    assert {len(root_nests(n.func)) for n in layer.nests} == {1}
    assert len(layer.nests) < 35


def test_values_link_nests_in_order(layer: Graph) -> None:
    made = {v for v in layer.values if layer.values[v].kind in ("input", "parameter")}
    for nest in layer.nests:
        for value in nest.inputs:
            assert value in made or layer.values[value].kind == "host"
        made.update(nest.outputs)
    assert all(v in made or layer.values[v].kind == "host" for v in layer.outputs)


def test_products_are_found_and_stacked(layer: Graph) -> None:
    launches = launches_of(layer)
    products = [x for x in launches if x.form == "nest" and x.operands[0].tensor == "A"]
    assert len(products) == 6
    (stack,) = [x for x in launches if x.form == "stack"]
    assert len(stack.members) == 4  # q, k, v and up read the same vector
    assert stack.operands[0].shape == (64 * 3 + 256, 64)
    assert stack.resident == ("A",)
    by_shape = {x.operands[0].shape: x.key for x in products}
    assert [x.key for x in products if x.operands[0].shape == (64, 64)] == [by_shape[64, 64]] * 4


def test_gated_layers_stack_twice() -> None:
    launches = launches_of(graph_of(llama(128, 4, 1, 16), "int8"))
    assert sorted(len(x.members) for x in launches if x.form == "stack") == [2, 3]


def test_why_a_nest_is_no_candidate() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(1000, 64)

        def forward(self, i: Any) -> Any:
            x = self.table(i)
            return (x * 2).sum(-1) * x.abs().amax()

    graph = read_graph(lower(import_model(Net(), (torch.arange(500),))).module)
    reasons = {n.features.kind: why_not(graph, n) for n in graph.nests}
    assert "looked up" in reasons["indirect"]
    small = [why_not(graph, n) for n in graph.nests if n.features.spatial < 100]
    assert any("iterations" in r or "has no axes" in r for r in small), small


def test_a_what_if_core_says_so(layer: Graph) -> None:
    (stack,) = [x for x in launches_of(layer) if x.form == "stack"]
    slow, fast = (
        replace(core, clock_mhz=mhz).price(stack) for core in CORES for mhz in (350, 1000)
    )
    assert {slow.how, fast.how} == {HYPOTHETICAL}
    assert fast.kernel <= slow.kernel
