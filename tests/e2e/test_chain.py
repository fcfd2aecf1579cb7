"""Stages over one allocation: values that stay in MRAM, those that cannot, the exported program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tvm import te, tirx, topi

import upmem_sim
from atim import pipeline, runtime, toolchain
from atim.chain import Chain, Step, link
from atim.codegen import Sources
from atim.codegen.chain_kernel import _rename
from atim.codegen.chain_padding import with_clear_padding
from atim.codegen.chain_plan import made_once
from atim.codegen.host_stage import HostStage, host_stage
from atim.errors import UsageError
from atim.export import Data
from atim.hardware import parse
from atim.schedules import design_space
from atim.schedules.stages import stages_of
from atim.target import Target
from atim.timing import model_of, push_seconds
from atim.tuner.search import Options
from atim.tuner.staged import HostStep, KernelStep, build_stages
from atim.tuner.staged_run import StagedPlan
from upmem_sim.host import places
from upmem_sim.program import MRAM_BASE

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


@pytest.mark.parametrize(("rows", "columns"), [(139, 8), (139, 7), (131, 13)])
def test_padded_results_stay_too(rows: int, columns: int, rng: np.random.Generator) -> None:
    """139 rows leave one DPU with half a tile, 131 some with nothing; odd rows end in padding."""
    chain = scale_and_sum(rows, columns, 70, 70, ["s"])
    assert symbols(chain, 0) == (["x"], [])
    assert symbols(chain, 1) == ([], ["s"])
    x = rng.integers(-1000, 1000, (rows, columns)).astype("int32")
    assert np.array_equal(chain({"x": x})[0][0], (x * 3 + 1).sum(1))


@pytest.mark.parametrize(
    ("shape", "dtype", "grid"),
    [
        ((7, 5), "int32", {"dpus_i0": 4, "tasklets": 2}),
        ((7, 13), "int8", {"dpus_i0": 4, "dpus_i1": 3, "tasklets": 2}),
        ((3, 5, 7), "int16", {"dpus_i0": 2, "dpus_i1": 3, "tasklets": 2}),
        ((1000,), "float32", {"dpus_i0": 3, "tasklets": 4}),
        ((7, 1), "int32", {"dpus_i0": 4}),
    ],
)
def test_kernels_clear_the_padding_of_their_results(
    shape: tuple[int, ...], dtype: str, grid: dict[str, int], rng: np.random.Generator
) -> None:
    """Every byte outside of the DPU's box is zero, whatever lay there; those inside are right."""
    x = te.placeholder(shape, dtype, "x")
    z = te.compute(shape, lambda *at: x(*at) * tirx.const(3, dtype), "z")
    sources = compiled([x, z], **grid)
    plan = sources.plan
    (tile,) = (t for t in plan.tiles if t.mode == "out")
    artifact = toolchain.build(with_clear_padding(sources, [tile]), TARGET)
    plan = artifact.sources.plan
    values = rng.integers(-40, 40, shape).astype(dtype)
    assert np.array_equal(runtime.run(artifact, {"x": values}).outputs["z"], values * 3)
    extents = plan.boxes(tile)[1]
    assert (extents < tile.padded).any()
    mover = runtime._Slices(plan, {"x": values, "z": values * 3})
    numbers = np.arange(plan.dpus, dtype=np.uint32)
    dpus, _ = runtime._load(artifact, mover, numbers)
    upmem_sim.run_many(dpus)
    at = artifact.program.symbols[tile.symbol].address - MRAM_BASE
    images = np.stack([dpu.mram[at : at + tile.slice_bytes] for dpu in dpus])
    assert np.array_equal(images, mover.pack(tile, numbers))


SHAPES = [(7, 21), (13, 31), (5, 127)]


def softmax_program(x: te.Tensor, columns: int) -> list[te.Tensor]:
    return [x, topi.nn.softmax(x, axis=1)]


def layer_norm_program(x: te.Tensor, columns: int) -> list[te.Tensor]:
    g, b = (te.placeholder((columns,), "float32", name) for name in "gb")
    return [x, g, b, topi.nn.layer_norm(x, g, b, [1])]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("program", "reference", "stays"),
    [(softmax_program, softmax, "T_softmax_expsum"), (layer_norm_program, layer_norm, "X_mean")],
)
def test_programs_at_odd_shapes_move_less(
    program: Callable[[te.Tensor, int], list[te.Tensor]],
    reference: Callable[..., np.ndarray],
    stays: str,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    """A large input is brought once, and sums of rows stay where the next stage reads them, unless
    the host needs them; both were moved for each stage."""
    args = program(te.placeholder(shape, "float32", "X"), shape[1])
    staged = build_stages(args, Target(dpus=6))
    inputs = [rng.standard_normal([int(n) for n in t.shape]).astype("float32") for t in args[:-1]]
    output, _ = staged(*inputs)
    np.testing.assert_allclose(output, reference(*inputs), rtol=1e-5, atol=1e-6)
    chain = staged.chain
    pushed = [t.tensor for m in chain.moves if m is not None for t in m.pushed]
    assert stays not in pushed
    assert len(pushed) == len(set(pushed))
    alone = sum(
        t.slice_bytes * s.work.plan.dpus
        for s in chain.steps
        if isinstance(s.work, Sources)
        for t in s.work.plan.tiles
    )
    assert chain.moved_bytes < 0.75 * alone


def weighted(rows: int, columns: int, name: str, **chosen: int) -> Sources:
    """All DPUs read the same row of weights."""
    z, w = matrix(rows, columns, "z"), te.placeholder((columns,), "int32", "w")
    return compiled([z, w, te.compute(z.shape, lambda i, j: z[i, j] * w[j], name)], **chosen)


@pytest.mark.parametrize(("first", "second"), [(70, 35), (35, 70), (70, 70)])
def test_stages_of_fewer_dpus_read_what_all_have(
    first: int, second: int, rng: np.random.Generator
) -> None:
    """The row is brought once if the stage that needs it on the most DPUs comes first."""
    steps = [
        Step("once", weighted(140, 8, "y", dpus_i=first), {"z": "x"}),
        Step("twice", weighted(140, 8, "v", dpus_i=second), {"z": "y"}),
    ]
    chain = link(steps, TARGET, outputs=["v"])
    assert ("w" in symbols(chain, 1)[0]) == (first < second)
    x = rng.integers(-100, 100, (140, 8)).astype("int32")
    w = rng.integers(-100, 100, 8).astype("int32")
    assert np.array_equal(chain({"x": x, "w": w})[0][0], x * w * w)


def test_groups_of_ranks_are_of_single_kernels() -> None:
    """In a chain all DPUs work as one, and its times say so."""
    plain = scaled(140, 8, dpus_i=70)
    grouped = replace(plain, plan=replace(plain.plan, groups=2))
    x = {"x": np.ones((140, 8), "int32")}
    chains = [link([Step("scale", s)], TARGET, outputs=["z"]) for s in (plain, grouped)]
    assert chains[0](x)[1] == chains[1](x)[1]
    assert [s.work.plan.groups for c in chains for s in c.steps] == [1, 1]


def test_stages_use_the_same_wram(rng: np.random.Generator) -> None:
    """Two stages whose buffers together exceed a DPU's WRAM."""
    steps = [
        Step("first", scaled(2, 10246, dpus_i=1, tasklets=20, tile=512), {"z": "y"}),
        Step("second", scaled(2, 10246, dpus_i=1, tasklets=20, tile=512), {"x": "y"}),
    ]
    sizes = [s.work.wram_bytes for s in steps if isinstance(s.work, Sources)]
    assert sum(sizes) > 65536
    x = rng.integers(-100, 100, (2, 10246)).astype("int32")
    assert np.array_equal(link(steps, TARGET, outputs=["z"])({"x": x})[0][0], (x * 3 + 1) * 3 + 1)


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


def test_tensors_may_be_called_as_the_constraints_of_inline_assembly() -> None:
    """ "=r" and "r" are strings of the kernel, r is a tensor of it."""
    text = 'int r[2]; __asm__("mul %0" : "=r"(x) : "r"(r[0])); y.r = r[1];'
    renamed = _rename(text, {"r": "stage_0_r"})
    assert renamed == (
        'int stage_0_r[2]; __asm__("mul %0" : "=r"(x) : "r"(stage_0_r[0])); y.r = stage_0_r[1];'
    )


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


def repeated_rows_vector() -> list[te.Tensor]:
    w, x = matrix(7, 9, "W"), te.placeholder((9,), "int32", "x")
    k = te.reduce_axis((0, 9), "k")
    return [w, x, te.compute((20,), lambda i: te.sum(w[i // 3, k] * x[k], axis=k), "y")]


def test_residents_that_the_host_puts_in_order_count_once(rng: np.random.Generator) -> None:
    """Neither the host's work nor the transfer of what it makes is part of a call."""
    w, x = rng.integers(-50, 50, (7, 9), "int32"), rng.integers(-50, 50, 9, "int32")
    there = build_stages(repeated_rows_vector(), TARGET, resident=["W"])
    result, timing = there(w, x)
    assert (result == np.repeat(w, 3, 0)[:20] @ x).all()
    order, kernel = there.steps
    assert isinstance(order, HostStep)
    assert (order.once, order.timing.total) == (True, 0.0)
    assert isinstance(kernel, KernelStep)
    (x_tile,) = [t for t in kernel.code.plan.tiles if t.tensor == "x"]
    model = model_of(TARGET)
    assert timing.h2d == push_seconds(model, x_tile, kernel.code.plan.dpus)
    sent = build_stages(repeated_rows_vector(), TARGET)
    _, every = sent(w, x)
    assert every.h2d > timing.h2d
    assert every.host > timing.host


def test_what_the_program_gives_back_is_made_in_every_call() -> None:
    host = [(["W"], ["V"]), None, (["V"], ["U"]), (["V", "x"], ["t"]), ([], ["ones"])]
    assert made_once(host, ["W"], ["t"]) == ({0, 2}, ("W", "V", "U"))
    assert made_once(host, ["W"], ["V"]) == (set(), ("W",))
    assert made_once(host, [], []) == (set(), ())


def test_the_search_takes_it_for_resident() -> None:
    args = repeated_rows_vector()
    stages = stages_of(te.create_prim_func(args))
    options = Options(trials=4, seed=0)
    plan = StagedPlan.of(
        te.create_prim_func(args), "y", stages, TARGET, options, ["W"], "evolutionary"
    )
    assert plan.kernels[0].sketches[0].resident == ("W_at",)


EXPORTED = {
    "kept": lambda: scale_and_sum(140, 8, 70, 70, ["s"]),
    "other tiles": lambda: scale_and_sum(140, 8, 70, 35, ["z", "s"]),
    "padding": lambda: scale_and_sum(139, 7, 70, 70, ["s"]),
    "host stage, resident": lambda: link(
        rms_norm(41, 7), TARGET, outputs=["squares", "y"], resident=["g"]
    ),
    "resident put in order": lambda: (
        build_stages(repeated_rows_vector(), TARGET, resident=["W"]).chain
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
