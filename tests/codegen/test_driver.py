"""The C driver on programs beyond the named workloads: host stages, gathers, scalars, residents."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_any_program import convolution, gather, maximum, scalar_total
from tvm import te, tirx
from tvm.s_tir import Schedule

from atim import hardware, runtime, toolchain
from atim.codegen import Sources
from atim.codegen.driver_c import emit_program
from atim.export import Data, write_folder
from atim.pipeline import compile_func
from atim.target import Target
from upmem_sim.host import places

TARGET = Target(dpus=64)


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{places.bin_dir()}{os.pathsep}{os.environ['PATH']}")


def inputs(sources: Sources, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        t.name: rng.integers(-50, 50, t.shape).astype(t.dtype)
        for t in sources.plan.tensors
        if t.role == "input"
    }


@pytest.mark.parametrize("program", [convolution, maximum, gather, scalar_total])
def test_program(program, rng):
    schedule, _ = program()
    sources = compile_func(schedule.mod["main"], TARGET)
    arrays = inputs(sources, rng)
    simulated = runtime.run(toolchain.build(sources, TARGET), arrays)
    measured = hardware.run(sources, arrays, repeats=2)
    assert simulated.counters["cycles"] == measured.counters["cycles"]
    for name, values in simulated.outputs.items():
        assert measured.outputs[name].tobytes() == values.tobytes()


def host_padding(n=41, dtype="int32"):
    """The host pads and scales A, the DPUs sum neighbours, the host adds A again: A is used on the
    host before and after the kernel, and never by the DPUs."""
    a, zero = te.placeholder((n,), dtype, "A"), tirx.const(0, dtype)
    padded = te.compute(
        (n + 2,),
        lambda i: tirx.if_then_else(tirx.all(i >= 1, i < n + 1), a[i - 1] * 2, zero),
        "padded",
    )
    sums = te.compute((n,), lambda i: padded[i] + padded[i + 1] + padded[i + 2], "sums")
    y = te.compute((n,), lambda i: sums[i] + a[i], "y")
    s = Schedule(te.create_prim_func([a, y]))
    d, t, _ = s.split(s.get_loops(s.get_sblock("sums"))[0], [5, 2, None])
    s.bind(d, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    for name in ("padded", "y"):
        s.parallel(s.get_loops(s.get_sblock(name))[0])
    return compile_func(s.mod["main"], TARGET)


@pytest.mark.parametrize("resident", [(), ("A",)])
def test_host_stages_before_and_after(resident, rng):
    sources = host_padding()
    assert sources.plan.prepare
    assert sources.plan.finish
    a = rng.integers(-50, 50, 41).astype(np.int32)
    wide = np.pad(a * 2, 1)
    outcome = hardware.run(sources, {"A": a}, resident, repeats=3)
    np.testing.assert_array_equal(outcome.outputs["y"], wide[:-2] + wide[1:-1] + wide[2:] + a)


def test_resident_operands_of_the_host_must_stay(rng):
    program = emit_program(host_padding(), "pad", "t", ["A"])
    assert "\n * The host works on A too: leave it there. */" in program.header


def test_names_are_kept_clear_of_the_drivers():
    """A tensor or a program called as something in the driver, C or the SDK."""
    n = 24
    dpus, status = (te.placeholder((n,), "int32", name) for name in ("dpus", "status"))
    out = te.compute((n,), lambda i: dpus[i] + status[i], "routes")
    s = Schedule(te.create_prim_func([dpus, status, out]))
    d, _ = s.split(s.get_loops(s.get_sblock("routes"))[0], [3, None])
    s.bind(d, "blockIdx.x")
    sources = compile_func(s.mod["main"], TARGET)
    a, b = np.arange(n, dtype=np.int32), np.ones(n, np.int32)
    assert (hardware.run(sources, {"dpus": a, "status": b}).outputs["routes"] == a + b).all()
    assert emit_program(sources, "launch", "t").name == "launch_1"
    assert emit_program(sources, "2d conv", "t").name == "v2d_conv"


USER = """
#include <stdio.h>
#include "mtv.h"
int main(void) {
    static int32_t A[30 * 50], x[50], y[30];
    for (int i = 0; i < 30 * 50; i++) A[i] = i % 7;
    for (int j = 0; j < 50; j++) x[j] = j;
    int early = mtv(NULL, x, y);
    int first = mtv(A, x, y);
    for (int j = 0; j < 50; j++) x[j] = 2 * j;
    int again = mtv(NULL, x, y);
    long long sum = 0;
    for (int i = 0; i < 30; i++) sum = sum * 31 % 1000003 + y[i];
    mtv_free();
    mtv_free();
    int reopened = mtv(A, x, y);
    mtv_free();
    printf("%d %d %d %d %lld %d\\n", early, first, again, reopened, sum,
           mtv_last_times()->kernel > 0);
    return 0;
}
"""


def test_plain_interface(tmp_path: Path, rng: np.random.Generator) -> None:
    """Called without init; resident operands missing, given, kept; freed and used again."""
    import te_programs

    sources = compile_func(te_programs.mtv_split(30, 50), TARGET)
    arrays = inputs(sources, rng)
    write_folder(tmp_path, sources, name="mtv", title="t", resident=["A"], data=Data(arrays))
    (tmp_path / "user.c").write_text(USER)
    command = (
        "make -s mtv.dpu && cc -std=c11 -Wall -Wextra -Werror user.c host.c"
        " $(dpu-pkg-config --cflags --libs dpu) -pthread -lm -o user && ./user"
    )
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    y = (np.arange(1500).reshape(30, 50) % 7) @ (2 * np.arange(50))
    total = 0
    for value in y.tolist():
        total = total * 31 % 1000003 + value
    assert done.stdout.split() == ["3", "0", "0", "0", str(total), "1"]
