"""Wrong arguments of the Python interface: one line: name, what was given, what is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness import program

from upmem_sim import Dpu, DpuParams, System, compile_c, read_log, run_many
from upmem_sim.errors import CompileError, SimError
from upmem_sim.program import Symbol

SYMBOLS = {
    "n": Symbol("n", 64, 4, ".data.__sys_host"),
    "list": Symbol("list", 72, 12, ".data.__sys_host"),
}
LOADED = program("end: stop true, end", wram=bytes(96), symbols=SYMBOLS)

Call = Callable[[Dpu], object]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda d: d.read("n", np.int64), SimError, "4 bytes from offset 0, no whole number of"),
        (lambda d: d.read("list", np.int64), SimError, r"12 bytes .* int64 \(8 bytes\)"),
        (lambda d: d.read("n", np.dtype("S0")), TypeError, "dtype: .* at least 1 byte"),
        (lambda d: d.read("n", object), TypeError, "dtype: object given"),
        (lambda d: d.read("n", "what"), TypeError, "dtype: str 'what' given, a NumPy type"),
        (lambda d: d.read("n", None), TypeError, "dtype: NoneType None given"),
        (lambda d: d.read("n", np.uint8, 2.5), TypeError, "count: float 2.5 given, an integer"),
        (lambda d: d.read("n", np.uint8, -1), ValueError, "count: -1, limit at least 0"),
        (lambda d: d.read("n", np.uint8, 1, 1.0), TypeError, "offset: float 1.0 given"),
        (lambda d: d.read(5), TypeError, "symbol: int 5 given, str or Symbol is needed"),
        (lambda d: d.write(5, 5), TypeError, "symbol: int 5 given, str or Symbol is needed"),
        (lambda d: d.write("n", "a"), TypeError, "data for 'n': str 'a' given"),
        (lambda d: d.write("n", np.array(["a"])), TypeError, "an array of numbers is needed"),
        (lambda d: d.write("n", np.array([None])), TypeError, "an array of numbers is needed"),
        (lambda d: d.write("n", None), TypeError, "data for 'n': NoneType None given"),
        (lambda d: d.write("n", True), TypeError, "data for 'n': bool True given"),
        (lambda d: d.write("n", 3.5), TypeError, "data for 'n': float 3.5 given"),
        (lambda d: d.write("list", [1, 2]), TypeError, r"data for 'list': list \[1, 2\] given"),
        (lambda d: d.run(checks="race"), ValueError, "checks: race unknown, known are"),
        (lambda d: d.run(checks=3), TypeError, "checks: int 3 given, names are needed: uninit"),
        (lambda d: d.run(max_cycles=1e6), TypeError, "max_cycles: float 1000000.0 given, an int"),
        (lambda d: d.run(max_cycles=2**70), ValueError, "max_cycles: 11805.*, limit 1 to"),
        (lambda d: d.run(max_cycles=0), ValueError, "max_cycles: 0, limit 1 to"),
        (lambda d: Dpu("x"), TypeError, "program: str 'x' given, Program is needed"),
        (lambda d: Dpu(LOADED, 5), TypeError, "params: int 5 given, DpuParams"),
        (lambda d: Dpu(LOADED, index="a"), TypeError, "index: str 'a' given"),
        (lambda d: System("x", 1), TypeError, "program: str 'x' given"),
        (lambda d: System(LOADED, 2.0), TypeError, "dpus: float 2.0 given"),
        (lambda d: System(LOADED, 0), ValueError, "dpus: 0, limit 1 to 2560"),
        (lambda d: System(LOADED, 1).scatter("n", 5), TypeError, "data: int 5 given, a list or"),
        (lambda d: System(LOADED, 1).scatter("n", "a"), TypeError, "data: str 'a' given"),
        (lambda d: System(LOADED, 1).broadcast("n", 2.5), TypeError, "data for 'n': float 2.5"),
        (lambda d: System(LOADED, 1).gather("n", np.int64), SimError, "no whole number of int64"),
        (lambda d: System(LOADED, 1).run(checks="x"), ValueError, "checks: x unknown"),
        (lambda d: System(LOADED, 1).run("2"), TypeError, "threads: str '2' given"),
        (lambda d: System(LOADED, 1).scatter("n", np.array(3)), TypeError, "data: ndarray array"),
        (lambda d: run_many(d), TypeError, "dpus: Dpu .* given, Iterable is needed"),
        (lambda d: run_many([d, d]), ValueError, "dpus: 2 given, one of them twice"),
        (lambda d: run_many([d, 5]), TypeError, r"dpus\[1\]: int 5 given, Dpu is needed"),
        (lambda d: read_log(5), TypeError, "dpu: int 5 given, Dpu is needed"),
        (lambda d: DpuParams(tasklets=2.5), TypeError, "tasklets: float 2.5 given, an integer"),
        (lambda d: DpuParams(clock_mhz="fast"), TypeError, "clock_mhz: str 'fast' given, a number"),
    ],
)
def test_wrong_argument(call: Call, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        call(Dpu(LOADED))
    assert "\n" not in str(caught.value)


MAIN = "int main(void) { return 0; }"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"nr_tasklets": 2.5}, TypeError, "nr_tasklets: float 2.5 given, an integer is needed"),
        ({"nr_tasklets": "4"}, TypeError, "nr_tasklets: str '4' given"),
        ({"stack_bytes": "1024"}, TypeError, "stack_bytes: str '1024' given"),
        ({"stack_bytes": [1e3]}, TypeError, "stack_bytes: float 1000.0 given"),
        ({"defines": ["A"]}, TypeError, r"defines: list \['A'\] given, Mapping"),
        ({"hypothetical": "mul"}, CompileError, "hypothetical: 'mul' asked, known: mul32"),
        ({"hypothetical": 5}, TypeError, "hypothetical: int 5 given, Iterable is needed"),
        ({"include_dirs": 5}, TypeError, "include_dirs: int 5 given, Iterable is needed"),
        ({"stack_bytes": None}, TypeError, "stack_bytes: NoneType None given"),
        ({"source": b"int main;"}, TypeError, "source: bytes b'int main;' given, str or Path"),
        ({"source": [MAIN, None]}, TypeError, "source: NoneType None given"),
        ({"source": "folder"}, CompileError, "source 'folder': no C text, nor the name of a"),
        ({"source": "not/there.c"}, CompileError, "not/there.c: cannot be read: No such file"),
    ],
)
def test_wrong_argument_of_compile_c(
    arguments: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        compile_c(**{"source": MAIN, **arguments})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=re.escape(f"{tmp_path}: cannot be read: Is a dir")):
        compile_c(tmp_path)


def test_what_is_taken() -> None:
    dpu = Dpu(LOADED)
    for value in (7, np.int64(7)):
        Dpu(LOADED, index=value).run(max_cycles=np.int64(100))  # type: ignore[arg-type]
    dpu.write("n", np.float32(3.5))
    assert dpu.read("n", np.float32).tolist() == [3.5]
    dpu.write("n", memoryview(bytes(range(8)))[::2])
    assert dpu.read("n").tolist() == [0, 2, 4, 6]
    compile_c(MAIN, stack_bytes=np.int64(512), include_dirs="/tmp")  # type: ignore[arg-type]
    dpu.write("list", np.array([1, -2, 3], ">i4"))
    assert dpu.read("list", np.int32).tolist() == [1, -2, 3]
    assert dpu.read("list", ">i4").tolist() == [1, -2, 3]
    assert dpu.read("list", "S4", 1).dtype == "S4"
    assert dpu.run(checks="races") == dpu.run(checks=["races"])


def test_a_core_too_small_for_the_stacks_is_refused() -> None:
    stacks = compile_c(MAIN, nr_tasklets=8, stack_bytes=512)
    with pytest.raises(SimError, match=r"^program needs 4\d\d\d WRAM bytes, limit 1024$"):
        Dpu(stacks, DpuParams(wram_bytes=1024))
    Dpu(stacks, DpuParams(wram_bytes=8192)).run()
