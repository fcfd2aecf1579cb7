"""Programs of several stages on simulated DPUs, equal to NumPy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special
from tvm import te, tirx, topi

import atim
from atim import cli
from atim.chain import Chain
from atim.errors import ScheduleError
from atim.schedules import Sketch
from atim.schedules.stages import Stage
from atim.target import Target
from atim.tuner.folder import open_best
from atim.tuner.linked import StagedBest, first_that_fits
from atim.tuner.staged import Staged, build_stages
from atim.tuner.staged_run import StagedRun
from upmem_sim.host import places

TARGET = Target(dpus=6)
SHAPE = (7, 21)
Array = np.ndarray


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x: Array, g: Array, b: Array) -> Array:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def rms_norm(x: Array, g: Array) -> Array:
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * g


def row(name: str) -> te.Tensor:
    return te.placeholder((SHAPE[1],), "float32", name)


def softmax_program(x: te.Tensor) -> list[te.Tensor]:
    return [x, topi.nn.softmax(x, axis=1)]


def layer_norm_program(x: te.Tensor) -> list[te.Tensor]:
    g, b = row("g"), row("b")
    return [x, g, b, topi.nn.layer_norm(x, g, b, [1])]


def rms_norm_program(x: te.Tensor) -> list[te.Tensor]:
    g = row("g")
    return [x, g, topi.nn.rms_norm(x, g, [1])]


@pytest.mark.parametrize(
    ("program", "reference"),
    [(softmax_program, softmax), (layer_norm_program, layer_norm), (rms_norm_program, rms_norm)],
)
def test_floats(
    program: Callable[[te.Tensor], list[te.Tensor]],
    reference: Callable[..., Array],
    rng: np.random.Generator,
) -> None:
    args = program(te.placeholder(SHAPE, "float32", "X"))
    shapes = [[int(n) for n in t.shape] for t in args[:-1]]
    inputs = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    output, timing = build_stages(args, TARGET)(*inputs)
    np.testing.assert_allclose(output, reference(*inputs), rtol=1e-5, atol=1e-6)
    assert timing.kernel > 0


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + special.erf(x / np.sqrt(2)))


def gelu_of(x: te.Tensor) -> te.Tensor:
    inner = topi.add(topi.erf(topi.multiply(x, 0.5**0.5)), 1.0)
    return topi.multiply(topi.multiply(x, 0.5), inner)


@pytest.mark.parametrize("layer", [False, True])
def test_functions_alone_and_after_a_sum_are_computed_by_dpus(
    layer: bool, rng: np.random.Generator
) -> None:
    x, w = te.placeholder(SHAPE, "float32", "X"), te.placeholder((5, SHAPE[1]), "float32", "W")
    args = [x, w, gelu_of(topi.nn.dense(x, w))] if layer else [x, gelu_of(x)]
    inputs = [rng.standard_normal([int(n) for n in t.shape]).astype("float32") for t in args[:-1]]
    output, timing = build_stages(args, TARGET)(*inputs)
    expected = gelu(inputs[0] @ inputs[1].T if layer else inputs[0])
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    assert timing.host == 0


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("last", [False, True])
def test_places_of_maxima_with_ties(axis: int, last: bool, rng: np.random.Generator) -> None:
    a = te.placeholder(SHAPE, "int32", "A")
    built = build_stages([a, topi.argmax(a, axis=axis, select_last_index=last)], TARGET)
    values = rng.integers(-3, 4, SHAPE).astype("int32")
    expected = values.argmax(axis)
    if last:
        expected = SHAPE[axis] - 1 - np.flip(values, axis).argmax(axis)
    np.testing.assert_array_equal(built(values)[0], expected)


def tuned(folder: Path, workers: int, **options: Any) -> StagedRun:
    x = te.placeholder(SHAPE, "float32", "X")
    run = atim.tune(
        softmax_program(x), TARGET, trials=3, work_dir=folder, workers=workers, seed=2, **options
    )
    assert isinstance(run, StagedRun)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StagedRun:
    """Softmax, a trial for each of its three stages on DPUs."""
    return tuned(tmp_path_factory.mktemp("run"), 1, progress=False)


def test_a_tuned_program_is_right(run: StagedRun, rng: np.random.Generator) -> None:
    values = rng.standard_normal(SHAPE).astype("float32")
    output, timing = run.best.build()(values)
    np.testing.assert_allclose(output, softmax(values), rtol=1e-5)
    assert timing.total == pytest.approx(run.best.timing.total, rel=0.1)
    alone = [part.timing for part in run.best.parts]
    # with a trial a stage the tiles need not agree; where they do, values stay and don't count
    assert run.best.timing.h2d <= sum(t.h2d for t in alone)
    assert run.best.timing.total < sum(t.total for t in alone) * 1.01


def test_every_stage_is_in_the_report(run: StagedRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert "stage 2, T_softmax_exp, on the host: " in run.report()
    assert "block T_softmax_exp: exp is done on the host" in run.report()
    assert cli.run(["report", str(run.folder)]) == 0
    told = capsys.readouterr().out
    assert "PrIM-style stages" in told
    assert "3 T_softmax_expsum: sketch " in told
    assert "trials: 3 measured, 3 valid" in told
    assert cli.run(["explain", str(run.folder)]) == 0
    told = capsys.readouterr().out
    assert f"{run.best.timing.total * 1e3:.3f} ms in 4 stages" in told


def test_a_finished_run_is_found_again(
    run: StagedRun, capsys: pytest.CaptureFixture[str], rng: np.random.Generator
) -> None:
    again = tuned(run.folder, 2, progress="json")
    assert again.records == run.records
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events if event["event"] == "trial"] == []
    assert len(events[-1]["stages"]) == 4
    best = open_best(run.folder)
    assert isinstance(best, StagedBest)
    assert best.timing == run.best.timing


def test_the_exported_program_checks_itself(run: StagedRun, tmp_path: Path) -> None:
    assert cli.run(["export", str(run.folder), "--out", str(tmp_path)]) == 0
    path = f"{places.bin_dir()}:/usr/bin:/bin"
    command = ["make", "-C", str(tmp_path), "run"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": path})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("right") == 1


def test_schedules_that_do_not_fit_together_give_way(
    run: StagedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next in time is taken; when nothing fits, the message is that of the first try."""
    records = [[r for r in part.records if r.timing is not None] for part in run.runs]
    slower = replace(records[0][0], number=99, timing=(1.0, 1.0, 1.0, 1.0), digest="other")
    tried: list[int] = []

    def refuse(self: Staged) -> Chain:
        tried.append(len(tried))
        if len(tried) <= refused:
            raise ScheduleError(f"no room {len(tried)}")
        return link_all(self)

    link_all = Staged.chain.func
    monkeypatch.setattr(Staged, "chain", property(refuse))
    refused = 1
    linked = first_that_fits(run.best, [[*records[0], slower], *records[1:]])
    assert linked.records == (99, None, 0, 0)
    refused = 99
    tried[:] = [0, 0, 0]
    with pytest.raises(ScheduleError, match="no room 4 "):
        first_that_fits(run.best, records)


def test_a_trace_needs_one_kernel(run: StagedRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["trace", str(run.folder)]) == 1
    error = capsys.readouterr().err
    assert "4 stages (T_softmax_maxelem, T_softmax_exp, T_softmax_expsum, T_softmax_norm)" in error
    assert error.count("\n") == 1


def test_the_same_seed_gives_the_same_records(run: StagedRun, tmp_path: Path) -> None:
    other = tuned(tmp_path, 2, progress=False)
    assert [(r.sketch, r.decisions, r.timing) for r in other.records] == [
        (r.sketch, r.decisions, r.timing) for r in run.records
    ]


def test_unknown_resident_names(tmp_path: Path) -> None:
    x = te.placeholder(SHAPE, "float32", "X")
    with pytest.raises(atim.UsageError, match="resident: 'W' unknown, inputs: X"):
        atim.tune(softmax_program(x), TARGET, resident=["W"], work_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_results_without_axes(dtype: str, rng: np.random.Generator) -> None:
    a = te.placeholder(SHAPE, dtype, "A")
    values = (rng.standard_normal(SHAPE) * 50).astype(dtype)
    output, _ = build_stages([a, topi.argmax(a)], TARGET)(values)
    assert (output.shape, int(output)) == ((), int(values.argmax()))


def test_scalars_as_operands(rng: np.random.Generator) -> None:
    a, s = te.placeholder(SHAPE, "float32", "A"), te.placeholder((), "float32", "s")
    total = topi.sum(a)
    y = te.compute(SHAPE, lambda i, j: a[i, j] / total() * s(), "y")
    values, scale = rng.random(SHAPE, "float32"), np.asarray(3, "float32")
    output, _ = build_stages([a, s, y], TARGET)(values, scale)
    np.testing.assert_allclose(output, values / values.sum() * 3, rtol=1e-5)


def test_wide_loops_over_wide_values(rng: np.random.Generator) -> None:
    rows, columns = (tirx.IntImm("int64", n) for n in SHAPE)
    a = te.placeholder((rows, columns), "int64", "A")
    values = rng.integers(-(2**40), 2**40, SHAPE)
    output, _ = build_stages([a, topi.argmax(a, axis=1)], TARGET)(values)
    np.testing.assert_array_equal(output, values.argmax(1))


def test_squares_by_multiply_steps(rng: np.random.Generator) -> None:
    """Both operands are one register: the running pair may not share it."""
    a = te.placeholder((7, 11), "int32", "A")
    i, k = te.reduce_axis((0, 7), "i"), te.reduce_axis((0, 11), "k")
    y = te.compute((1,), lambda o: te.sum(a[i, k] * a[i, k], axis=[i, k]), "y")

    def steps(stage: Stage, sketches: list[Sketch]) -> tuple[Sketch, dict[str, int]]:
        sketch = next(s for s in sketches if s.name == "reduce")
        least = {d.name: min(d.values) for d in sketch.decisions}
        return sketch, least | {
            "pieces": 2,
            "tasklets": 8,
            "tile": 4,
            "unroll": 8,
            "multiply": 2,
            "even": 1,
        }

    values = rng.integers(-6, 7, (7, 11)).astype("int32")
    output, _ = build_stages([a, y], TARGET, choose=steps)(values)
    np.testing.assert_array_equal(output, [(values * values).sum()])
