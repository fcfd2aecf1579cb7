"""Host files: what ships, what is saved, what a nest is bound by; a short measurement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import te, tirx

from atim.errors import UsageError
from atim.offload import profile
from atim.offload.host import host_target, schedule
from atim.offload.nests import Features, Graph, Nest, features_of
from atim.offload.profile import HostFile

# rows of the CPU column of ATiM's table (ISCA 2025, artefact): bytes, milliseconds
PUBLISHED = (
    (4 * 4096 * 4096, 5.168),
    (4 * 16384 * 4096, 18.195),
    (4 * 4096 * 16384, 17.586),
    (4 * 64 * 512 * 256, 2.565),
    (4 * 112 * 256 * 256, 2.154),
    (4 * 21504 * 7168, 37.855),
)


def features(reads: int = 0, writes: int = 0, operations: int = 0) -> Features:
    counted = {("add", "float32"): operations} if operations else {}
    return Features("mtv", 1, 1, {"a": reads}, {"b": writes}, counted, "float32")


@pytest.mark.parametrize(("nbytes", "milliseconds"), PUBLISHED)
def test_the_papers_host_is_that_of_the_table(nbytes: int, milliseconds: float) -> None:
    seconds = HostFile.load("papers").estimate("", features(reads=nbytes)).seconds
    assert seconds * 1e3 == pytest.approx(milliseconds, rel=0.25)


def test_what_bounds_a_nest() -> None:
    host = HostFile("h", "", 1, 2e9, 1e9, {"float32": 1e9}, 0.0)
    assert host.estimate("", features(8, 2)).limit == "reads"
    assert host.estimate("", features(2, 8)).limit == "writes"
    assert not host.estimate("", features(8, 8, 1000)).memory_bound


def test_a_host_file_comes_back(tmp_path: Path) -> None:
    host = HostFile("h", "d", 2, 1e9, 2e9, {"": 3e9}, 1e-6, ratios={"k": (0.5, "blas")})
    host.save(tmp_path / "h.json")
    assert HostFile.load(tmp_path / "h.json") == host
    slow = host.estimate("k", features(1 << 20)).seconds - 1e-6
    assert slow == pytest.approx(2 * (host.estimate("", features(1 << 20)).seconds - 1e-6))


@pytest.mark.parametrize(
    ("name", "text"),
    [("nobody", None), ("bad.json", "{"), ("bad.json", '{"a": 1}'), ("bad.json", "[]")],
)
def test_bad_host_files(tmp_path: Path, name: str, text: str | None) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match="host"):
        HostFile.load(path if text is not None else name)


def matrix_vector(rows: int, columns: int, dtype: str = "float32") -> tirx.PrimFunc:
    a = te.placeholder((rows, columns), dtype, "a")
    x = te.placeholder((columns,), dtype, "x")
    k = te.reduce_axis((0, columns), "k")
    y = te.compute((rows,), lambda i: te.sum(a[i, k] * x[k], axis=k), "y")
    return te.create_prim_func([a, x, y])


def test_counts_of_a_nest() -> None:
    found = features_of(matrix_vector(64, 100))
    assert (found.kind, found.spatial, found.reduced) == ("mtv", 64, 100)
    assert found.reads - found.read_bytes.get("y", 0) == 4 * (64 * 100 + 100)
    assert found.operations == {("add", "float32"): 6400, ("mul", "float32"): 6400}
    assert found.intensity == pytest.approx(12800 / (found.reads + found.writes))


def test_nests_with_scalar_operands_can_be_timed() -> None:
    """ascontiguousarray would make vectors of scalars."""
    a = te.placeholder((256,), "float32", "a")
    s = te.placeholder((), "float32", "s")
    func = te.create_prim_func([a, s, te.compute((256,), lambda i: a[i] * s(), "y")])
    profile._compiled(func)()


def test_a_peak_that_is_beaten_changes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the nest that beats it nor of the others."""
    slow = HostFile("slow", "", 1, 1e6, 1e6, {"": 1e6}, 0.0)
    seconds = {1024: 1e-3, 32: 1e-5}  # rows; 16 MB in a millisecond is more than 1 MB a second
    monkeypatch.setattr(profile, "_Probe", lambda: None)
    monkeypatch.setattr(profile, "_peaks", lambda probe, rounds: slow)
    monkeypatch.setattr(
        profile,
        "_nest_seconds",
        lambda nest, probe, rounds: (seconds[nest.features.spatial], "loops", lambda: None),
    )
    nests = []
    for number, rows in enumerate(seconds):
        func = matrix_vector(rows, 4096)
        nests.append(Nest(number, "n", "n", func, ("a", "x"), ("y",), features_of(func)))
    host = profile.measure_host(Graph(tuple(nests), {}, (), ()))
    assert host.read_bytes_s > 1e9 or host.operations_s[""] > 1e9
    for nest, wanted in zip(nests, seconds.values(), strict=True):
        assert host.cost(nest).seconds == pytest.approx(wanted)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float32"])
def test_products_of_matrices_go_over_rows_once(dtype: str) -> None:
    a = te.placeholder((2, 5, 96), dtype, "a")
    w = te.placeholder((2, 64, 96), dtype, "w")
    k = te.reduce_axis((0, 96), "k")
    total = "float32" if dtype == "float32" else "int32"
    func = te.create_prim_func(
        [
            a,
            w,
            te.compute(
                (2, 5, 64),
                lambda b, i, j: te.sum(a[b, i, k].astype(total) * w[b, j, k].astype(total), axis=k),
                "c",
            ),
        ]
    )
    scheduled = schedule(func)
    assert "T.parallel(16)" in scheduled.script()  # batches and blocks of rows, not what repeats
    built = tvm.compile(tvm.IRModule({"main": scheduled}), target=host_target())
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-50, 50, s).astype(dtype) for s in ((2, 5, 96), (2, 64, 96))]
    out = tvm.runtime.tensor(np.zeros((2, 5, 64), total))
    built["main"](*(tvm.runtime.tensor(v) for v in arrays), out)
    left, right = (v.astype(np.int64) for v in arrays)
    np.testing.assert_array_equal(out.numpy(), left @ right.swapaxes(1, 2))


def test_this_machine_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "PROBE_ROWS", 256)
    monkeypatch.setattr(profile, "PROBE_COLUMNS", 1024)
    func = matrix_vector(128, 256)
    nest = Nest(0, "n", "n", func, ("a", "x"), ("y",), features_of(func))
    host = profile.measure_host(Graph((nest,), {}, (), ()), rounds=1)
    ratio, code = host.ratios[nest.key]
    assert ratio > 0
    assert code in ("loops", "blas")
    assert bool(host.no_counters) != (nest.key in host.counters)
    assert host.read_bytes_s > 1e7
    assert (host.threads, host.description) == profile.this_machine()
    assert profile.measure_host(Graph((nest,), {}, (), ()), known=host, rounds=1) == host
