"""Stages over one allocation: values that stay in MRAM, those that cannot, the exported program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tvm import te, tirx

from atim import pipeline
from atim.chain import Chain, Step, link
from atim.codegen import Sources
from atim.codegen.host_stage import HostStage, host_stage
from atim.errors import UsageError
from atim.export import Data
from atim.hardware import parse
from atim.schedules import design_space
from atim.target import Target
from upmem_sim.host import places

TARGET = Target(dpus=80)


def compiled(args: Sequence[te.Tensor], sketch_name: str = "", **chosen: int) -> Sources:
    func = te.create_prim_func(list(args))
    sketches = {s.name: s for s in design_space(func, TARGET)}
    sketch = sketches[sketch_name] if sketch_name else next(iter(sketches.values()))
    decisions = {d.name: min(d.values) for d in sketch.decisions}
    assert set(chosen) <= set(decisions), decisions
    return pipeline.compile(sketch, decisions | chosen, TARGET)


def matrix(rows: int, columns: int, name: str, dtype: str = "int32") -> te.Tensor:
    return te.placeholder((rows, columns), dtype, name)


def scaled(rows: int, columns: int, **chosen: int) -> Sources:
    x = matrix(rows, columns, "x")
    return compiled([x, te.compute(x.shape, lambda i, j: x[i, j] * 3 + 1, "z")], **chosen)


def row_sums(rows: int, columns: int, **chosen: int) -> Sources:
    z, k = matrix(rows, columns, "z"), te.reduce_axis((0, columns), "k")
    return compiled([z, te.compute((rows,), lambda i: te.sum(z[i, k], k), "s")], "rows", **chosen)


def scale_and_sum(rows: int, columns: int, first: int, second: int, outputs: list[str]) -> Chain:
    steps = [
        Step("scale", scaled(rows, columns, dpus_i=first, tasklets=2)),
        Step("sum", row_sums(rows, columns, dpus_i=second, tasklets=5)),
    ]
    return link(steps, TARGET, outputs=outputs)


def symbols(chain: Chain, stage: int) -> tuple[list[str], list[str]]:
    move = chain.moves[stage]
    assert move is not None
    return [t.symbol for t in move.pushed], [t.symbol for t in move.pulled]


@pytest.mark.parametrize(
    ("first", "second", "outputs", "pulled", "pushed"),
    [
        (70, 70, ["s"], [], []),  # z is written, read and never seen by the host
        (70, 70, ["z", "s"], ["z"], []),  # it is an output too
        (70, 35, ["s"], ["z"], ["z"]),  # other tiles
    ],
)
def test_values_stay_where_tiles_agree(
    first: int,
    second: int,
    outputs: list[str],
    pulled: list[str],
    pushed: list[str],
    rng: np.random.Generator,
) -> None:
    chain = scale_and_sum(140, 8, first, second, outputs)
    assert symbols(chain, 0) == (["x"], pulled)
    assert symbols(chain, 1) == (pushed, ["s"])
    x = rng.integers(-1000, 1000, (140, 8)).astype("int32")
    results, timing = chain({"x": x})
    expected = {"z": x * 3 + 1, "s": (x * 3 + 1).sum(1)}
    for name, values in zip(outputs, results, strict=True):
        assert np.array_equal(values, expected[name])
    assert timing.h2d > 0
    whole = 140 * 8 * 4
    assert chain.moved_bytes == whole * (1 + len(pulled) + len(pushed)) + second * 4 * 140 // second
    with_stage = chain.run({"x": x})[1]
    assert timing.kernel == pytest.approx(sum(t.kernel for t, _ in with_stage))


def test_padding_of_a_result_goes_through_the_host(rng: np.random.Generator) -> None:
    """139 rows leave one DPU with half a tile."""
    chain = scale_and_sum(139, 8, 70, 70, ["s"])
    assert symbols(chain, 0) == (["x"], ["z"])
    assert symbols(chain, 1) == (["z"], ["s"])
    x = rng.integers(-1000, 1000, (139, 8)).astype("int32")
    assert np.array_equal(chain({"x": x})[0][0], (x * 3 + 1).sum(1))


def rms_norm(rows: int, columns: int) -> list[Step]:
    x, k = matrix(rows, columns, "x", "float32"), te.reduce_axis((0, columns), "k")
    squares = te.compute((rows,), lambda i: te.sum(x[i, k] * x[i, k], k), "squares")
    s = te.placeholder((rows,), "float32", "s")
    root = te.compute((rows,), lambda i: tirx.rsqrt(s[i] / float(columns) + 1e-5), "inverse")
    g = te.placeholder((columns,), "float32", "g")
    r = te.placeholder((rows,), "float32", "inverse")
    y = te.compute((rows, columns), lambda i, j: x[i, j] * r[i] * g[j], "y")
    host: HostStage = host_stage(te.create_prim_func([s, root]), 4)
    return [
        Step("squares", compiled([x, squares], "rows", dpus_i=20, tasklets=3)),
        Step("inverse", host, {"s": "squares"}),
        Step("scale", compiled([x, r, g, y], dpus_i=20, tasklets=2)),
    ]


def test_rms_norm_reads_its_input_once(rng: np.random.Generator) -> None:
    """The matrix is brought for the first stage and read again by the last; g is resident."""
    chain = link(rms_norm(41, 7), TARGET, outputs=["y"], resident=["g"])
    assert chain.inputs == ("x", "g")
    assert symbols(chain, 0) == (["x"], ["squares"])
    assert symbols(chain, 2) == (["inverse"], ["y"])
    x = rng.standard_normal((41, 7)).astype("float32")
    g = rng.standard_normal(7).astype("float32")
    (y,), timing = chain({"x": x, "g": g})
    expected = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * g
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert timing.host > 0


def test_mistakes_are_named() -> None:
    z, s = scaled(8, 4, dpus_i=4), row_sums(8, 4, dpus_i=4)
    with pytest.raises(UsageError, match="stage sum reads z before it is made"):
        link([Step("sum", s), Step("scale", z)], TARGET, outputs=["s"])
    with pytest.raises(UsageError, match="output 'q' unknown, known: z"):
        link([Step("scale", z)], TARGET, outputs=["q"])
    with pytest.raises(UsageError, match=r"stage sum: z is int32\[8, 4\], not int32\[8, 6\]"):
        link([Step("scale", z), Step("sum", row_sums(8, 6, dpus_i=4))], TARGET, outputs=["s"])
    with pytest.raises(UsageError, match="two stages make z"):
        link([Step("a", z), Step("b", z)], TARGET, outputs=["z"])
    with pytest.raises(UsageError, match="needs x"):
        link([Step("scale", z)], TARGET, outputs=["z"])({})


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{places.bin_dir()}{os.pathsep}{os.environ['PATH']}")


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(-50, 50, shape).astype(dtype)


EXPORTED = {
    "kept": lambda: scale_and_sum(140, 8, 70, 70, ["s"]),
    "other tiles": lambda: scale_and_sum(140, 8, 70, 35, ["z", "s"]),
    "padding": lambda: scale_and_sum(139, 8, 70, 70, ["s"]),
    "host stage, resident": lambda: link(
        rms_norm(41, 7), TARGET, outputs=["squares", "y"], resident=["g"]
    ),
}


@pytest.mark.parametrize("case", EXPORTED)
def test_exported_program_does_the_same(
    case: str, tools: None, tmp_path: Path, rng: np.random.Generator
) -> None:
    """Builds without warnings; outputs bit for bit, cycles and times as the chain's."""
    chain = EXPORTED[case]()
    shapes = {step.value(t.name): t for step in chain.steps for t in step.tensors}
    arrays = {n: integers(rng, shapes[n].shape, shapes[n].dtype) for n in chain.inputs}
    outputs, timing = chain(arrays)
    expected = dict(zip(chain.outputs, outputs, strict=True))
    chain.export(tmp_path, name="two stages", data=Data(arrays, expected))
    flags = "CFLAGS=-std=c11 -O1 -fwrapv -Wall -Wextra -Werror"
    built = subprocess.run(["make", flags], cwd=tmp_path, capture_output=True, text=True)
    assert (built.returncode, built.stderr) == (0, "")
    done = subprocess.run(
        ["./check", "-r", "3", "-w", "0"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("right")
    told, cycles = parse(done.stdout)
    assert cycles == sum(cycles for _, cycles in chain.run(arrays)[1])
    assert told.kernel == pytest.approx(timing.kernel, abs=4e-9)
    assert told.h2d >= timing.h2d - 4e-9
    assert told.d2h >= timing.d2h - 4e-9
    measured, seconds = replace(chain, target=chain.target.on_hardware())(arrays)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(measured, outputs, strict=True))
    assert seconds.kernel == pytest.approx(timing.kernel, abs=4e-9)
