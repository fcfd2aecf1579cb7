"""Imports compute what the original does: each known fault of the importer, mended or refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from atim.errors import MismatchError, UnsupportedError, UsageError
from atim.offload import api, check, converters, importer
from atim.offload.placement import Problem
from atim.offload.profile import HostFile
from atim.target import Target


class Function(nn.Module):
    """A model that is one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def prepared(function: Callable[..., Any], *inputs: Any) -> api.Prepared:
    """`prepare` compares every output with the original, and raises when one differs."""
    return api.prepare(Function(function), inputs)


X = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
BYTES = torch.arange(-32, 32, dtype=torch.int8).reshape(4, 16)


def full_mask(x: Any) -> Any:
    return x[0, :, :3] + torch.full((3, 3), float("-inf")).triu(1)


def attention(x: Any, mask: Any) -> Any:
    return functional.scaled_dot_product_attention(x, x + 1, x - 1, attn_mask=mask)


UNKNOWN = torch.tensor([[float("nan"), float("inf"), 3.0, -9.0]])

RIGHT = {
    "clamp of bytes": (lambda x: x.clamp(min=-3) + x.clamp(max=4) + x.clamp(-2, 2), (BYTES,)),
    "clamp of NaN": (lambda x: x.clamp(-1.5, 2.5) + x.clamp(min=0.5), (UNKNOWN,)),
    "clamp by tensors": (lambda x: x.clamp(torch.tensor(1.5), x[0]), (X,)),
    "shift": (lambda x: (x >> 3) + (x << 2) + torch.bitwise_right_shift(x, 5), (BYTES,)),
    "shift of words": (lambda x: (x.int() * 99991 >> 10) << 1, (BYTES,)),
    "negative select": (lambda x: x[:, -1] + x[..., -2, :], (X,)),
    "negative index": (lambda x, i: x[:, i], (X, torch.tensor([-1, 0, -3]))),
    "negative index on every axis": (
        lambda x, i: x[i, i, i],
        (X, torch.tensor([-1, 0, -2])),
    ),
    "int32 product": (lambda a: a.int() @ a.int().t(), (BYTES,)),
    "full of infinity": (full_mask, (X,)),
    "amax": (lambda x: x.amax((1, 2)) - x.amin(0, keepdim=True).amax(), (X,)),
    "scalar input": (lambda x, s: x * s, (X, torch.tensor(3.0))),
    "logsumexp": (lambda x: torch.logsumexp(x, -1), (X,)),
    "tril": (lambda x: x.tril(-1) + x.triu(1), (X,)),
    "addmm": (lambda a: torch.addmm(a[0], a, a.t() @ a, alpha=2.0), (X[0],)),
    "attention with mask": (attention, (X[None], torch.ones(3, 3, dtype=torch.bool).tril())),
    "attention with float mask": (attention, (X[None] / 9, torch.zeros(3, 3))),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_the_importer_gets_wrong_is_mended(case: str) -> None:
    function, inputs = RIGHT[case]
    prepared(function, *inputs)


def test_clamp_and_shift_need_no_pytorch() -> None:
    found = prepared(lambda x: ((x.int() * 3) >> 2).clamp(min=0) << 1, BYTES)
    assert not found.imported.fallbacks
    # out of the type's range: as PyTorch has it
    beyond = prepared(lambda x: x.clamp(-5, 9), BYTES.to(torch.uint8))
    assert [place.operator for place in beyond.imported.fallbacks] == ["clamp.default"]


def test_a_difference_after_a_constant_names_its_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(node: Any, translator: Any) -> Any:
        x = translator.env[node.args[0]]
        return translator.block_builder.emit(converters.relax.op.add(x, x))

    monkeypatch.setitem(converters.CONVERTERS, "clamp.Tensor", wrong)
    with pytest.raises(MismatchError, match=r"operator clamp\.Tensor"):
        prepared(lambda x: x.clamp(torch.tensor(1.5)), X)


def test_integer_sums_above_2_to_the_24_are_exact() -> None:
    weight = torch.full((2, 1 << 10), 40_000, dtype=torch.int32)
    weight[1] += 1
    found = prepared(lambda x: functional.linear(x, weight), torch.full((1, 1 << 10), 3).int())
    assert 3 * 40_001 * (1 << 10) > 1 << 24
    nests = [n for n in found.graph.nests if n.features.reduced > 1]
    assert {n.features.dtype for n in nests} == {"int32"}


def test_products_of_bytes_read_bytes() -> None:
    weight = nn.Parameter(BYTES, requires_grad=False)
    found = prepared(lambda x: x.int() @ weight.int().t(), torch.ones(1, 16, dtype=torch.int8))
    (nest,) = [n for n in found.graph.nests if n.features.reduced > 1]
    assert sorted(nest.features.read_bytes.values()) == [16, 64]
    assert not [n for n in found.graph.nests if n.features.reads == 64 and n is not nest]


def test_large_buffers_stay_as_wide_as_they_are() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.ones(64, 64, dtype=torch.int8))

        def forward(self, x: Any) -> Any:
            return x.int() @ self.weight.int().t()

    found = api.prepare(Net(), (torch.ones(1, 64, dtype=torch.int8),))
    assert [str(p.dtype) for p in found.imported.parameters] == ["int8"]


def test_complex_numbers_and_data_dependent_shapes_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="complex numbers"):
        prepared(lambda x: torch.fft.fft(x).real, torch.ones(8))
    with pytest.raises(UnsupportedError):
        prepared(lambda x: x[x > 3], X)


def test_what_is_missing_runs_through_pytorch_and_is_named() -> None:
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.logcumsumexp(x, -1)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Any) -> Any:
            return self.inner(x) + x.kthvalue(2, dim=-1)[0][..., None]

    found = api.prepare(Net(), (X,))
    places = {p.operator: p for p in found.imported.fallbacks}
    assert set(places) == {"logcumsumexp.default", "kthvalue.default"}
    assert places["logcumsumexp.default"].module == "inner"


def test_a_shared_linear_and_tied_weights() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 8)
            self.mix = nn.Linear(8, 8)

        def forward(self, i: Any) -> Any:
            x = self.mix(self.mix(self.embedding(i)))
            return functional.linear(x, self.embedding.weight)

    found = api.prepare(Net(), (torch.tensor([[3, 1]]),))
    shapes = [tuple(map(int, p.shape)) for p in found.imported.parameters]
    assert shapes.count((10, 8)) == 1
    assert shapes.count((8, 8)) == 1


def test_what_tvm_translates_wrongly_runs_through_pytorch() -> None:
    found = prepared(lambda x: functional.group_norm(x + 1, 3), X)  # without weights
    assert [p.operator for p in found.imported.fallbacks] == ["native_group_norm.default"]


def test_what_tvm_cannot_lower_runs_through_pytorch() -> None:
    """The operator that fails alone, not the whole model."""

    def function(x: Any) -> Any:
        return functional.layer_norm(x @ x.mT, (3,)), x.median(1).values

    found = prepared(function, X.double())
    names = [p.operator for p in found.imported.fallbacks]
    assert names == ["native_layer_norm.default", "median.dim"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_floats(dtype: Any) -> None:
    torch.manual_seed(0)
    x, w = (torch.randn(2, 64, dtype=dtype), torch.randn(64, 64, dtype=dtype) / 8)
    prepared(lambda x, w: functional.gelu(x @ w).softmax(-1), x, w)


@pytest.mark.parametrize(
    ("function", "x", "message"),
    [
        (lambda x: x + 1, X.bfloat16(), "input 0: NumPy has no torch.bfloat16"),
        (lambda x: x + torch.rand(4), X, "rand.default .*: random numbers"),
        (lambda x: functional.dropout(x, 0.5), X, "random numbers"),
        (lambda x: 3, X, "no tensor among its outputs"),
    ],
)
def test_what_is_refused_in_one_line(
    function: Any, x: Any, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnsupportedError, match=message) as found:
        prepared(function, x)
    assert "\n" not in str(found.value)
    assert capfd.readouterr() == ("", "")


def test_how_many_inputs_a_model_takes() -> None:
    with pytest.raises(UsageError, match=r"2 inputs given, forward takes .*: too many positional"):
        api.prepare(nn.Linear(4, 4), (X, X))
    with pytest.raises(UsageError, match=r"0 inputs given, forward takes .*'input'"):
        api.prepare(nn.Linear(4, 4), ())


def test_a_list_of_tensors_is_no_input() -> None:
    with pytest.raises(UsageError, match="input 0: a tensor or array needed, list given"):
        prepared(lambda x: x[0], [X, X[0]])


def test_a_model_stays_in_the_mode_it_was_in() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    model[1].eval()
    api.prepare(model, (X,))
    assert model.training
    assert model[0].training
    assert not model[1].training


def test_a_model_that_fails_says_so() -> None:
    with pytest.raises(UsageError, match="the model fails on these inputs"):
        prepared(lambda x: functional.linear(x, torch.ones(2, 4)), X.int())


def test_outputs_may_be_a_dictionary() -> None:
    prepared(lambda x: {"a": x + 1, "b": [x * 2, (x.sum(), x.argmax(-1))]}, X)


def test_normalisation_with_constant_operands() -> None:
    net = nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.MaxPool2d(2))
    found = api.prepare(net, (torch.rand(1, 3, 14, 14),))
    assert any("constant of the program" in n.features.why_not for n in found.graph.nests)


def test_rotary_without_a_tail_is_no_nest_of_its_own() -> None:
    def turned(x: Any, size: int) -> Any:
        even, odd = x[..., 0:size:2], x[..., 1:size:2]
        pairs = torch.stack((even - odd, odd + even), -1).flatten(-2)
        return torch.cat((pairs, x[..., size:]), -1) * 2

    whole = prepared(lambda x: turned(x, 4), X)
    part = prepared(lambda x: turned(x, 2), X)
    assert len(whole.graph.nests) <= len(part.graph.nests)


def test_a_wrong_import_names_the_first_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(node: Any, translator: Any) -> Any:
        from tvm import relax

        x = translator.env[node.args[0]]
        return translator.block_builder.emit(relax.op.nn.relu(x))

    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.tanh(x)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Any) -> Any:
            return torch.exp(self.inner(x + 1))

    monkeypatch.setitem(converters.CONVERTERS, "tanh.default", wrong)
    with pytest.raises(
        MismatchError, match=r"first: nest \d+ \S+, operator tanh\.default in inner"
    ):
        api.prepare(Net(), (X,))


def test_a_dynamic_length_is_right_at_another_length() -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    model = Function(lambda x: torch.softmax(x * 2, -1).sum(-1))
    found = api.prepare(model, (torch.rand(3, 5),), (({0: batch},),))
    kinds = {n.features.kind for n in found.graph.nests}
    assert kinds == {"dynamic"}
    assert found.launches == ()
    host = HostFile.load("papers")
    problem = Problem(found.graph, host, Target(dpus=16), (), ())
    module = api.finish(found, problem, problem.place("ours"))
    x = torch.rand(7, 5)
    np.testing.assert_allclose(module(x), model(x).numpy(), rtol=1e-5)


def test_onnx_with_outer_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is an optional extra")
    from onnx import TensorProto, helper, numpy_helper

    weight = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 128]), ("y", [1, 64]))
    ]
    initial = [numpy_helper.from_array(weight, "w")]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], initial)
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), path)
    found = api.prepare(path, (np.ones((1, 128), np.float32),))
    (launch,) = [x for x in found.launches if x.form == "nest"]
    matrix = launch.operands[0]
    assert (matrix.shape, matrix.transposed, matrix.resident) == ((64, 128), True, True)
    with pytest.raises(UsageError, match="can't be read as ONNX"):
        api.prepare(tmp_path / "none.onnx", ())
    with pytest.raises(UsageError, match="input x: 1x127 given, the model takes 1x128"):
        api.prepare(path, (np.ones((1, 127), np.float32),))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UsageError, match="need the package onnx: pip install"):
        api.prepare(path, ())


def test_onnx_with_initialisers_among_its_inputs() -> None:
    pytest.importorskip("onnx", reason="onnx is an optional extra")
    from onnx import TensorProto, helper, numpy_helper

    weight = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    shapes = {"x": [1, 64], "w": [64, 32], "y": [1, 32]}
    x, w, y = (
        helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items()
    )
    graph = helper.make_graph([node], "g", [x, w], [y], [numpy_helper.from_array(weight, "w")])
    for opset in (11, 21):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        found = api.prepare(model, (np.ones((1, 64), np.float32),))
        assert len(found.imported.examples) == 1
        assert len(model.graph.input) == 2


def test_relax_functions_that_main_calls_are_part_of_it() -> None:
    from tvm import relax

    def pair() -> list[Any]:
        shapes = {"x": [1, 64], "w": [64, 32]}
        return [relax.Var(n, relax.TensorType(s, "float32")) for n, s in shapes.items()]

    builder = relax.BlockBuilder()
    x, w = pair()
    with builder.function("helper", [x, w]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.nn.relu(relax.op.matmul(x, w)))
        builder.emit_func_output(y)
    (helper,) = builder.get().get_global_vars()
    x, w = pair()
    with builder.function("main", [x, w], attrs={"num_input": 1}):
        with builder.dataflow():
            y = builder.emit(relax.Call(helper, [x, w]))
            z = builder.emit_output(relax.op.add(y, y))
        builder.emit_func_output(z)
    rng = np.random.default_rng(0)
    a, b = (rng.random(s, np.float32) for s in ((1, 64), (64, 32)))
    found = api.prepare(builder.get(), (a, b))
    problem = Problem(found.graph, HostFile.load("papers"), Target(dpus=16), (), ())
    module = api.finish(found, problem, problem.place("all-host"))
    np.testing.assert_allclose(module(a), 2 * np.maximum(a @ b, 0), rtol=1e-5)


def test_other_things_are_no_models() -> None:
    with pytest.raises(UsageError, match="int given"):
        importer.import_model(3, ())


def test_compare_sees_small_differences() -> None:
    a = np.array([1.0, np.inf, np.nan], np.float32)
    assert check.compare([a], [a]) is None
    assert "output 0" in (check.compare([a], [np.array([1.01, np.inf, np.nan], np.float32)]) or "")
    assert check.compare([np.array([7])], [np.array([8])]) is not None
    assert check.compare([a], [a, a]) == "1 outputs, 2 expected"
