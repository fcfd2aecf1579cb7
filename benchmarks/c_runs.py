"""Random C functions run natively, built by g++, and on a simulated DPU."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.c_generator import INPUTS, generate
from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu

_names = itertools.count()

_NATIVE = 'extern "C" void native(const int64_t *in, int64_t *out, int n, int nf) {\n' \
    "    for (int i = 0; i < n; i++) run_all(in + 4 * i, out + nf * i);\n}\n"  # fmt: skip
_DEVICE = """
#define HOST __attribute__((section(".dpu_host"), used, aligned(8)))
HOST int64_t inputs[{rows}][4];
HOST int64_t outputs[{rows}][{functions}];
int main(void) {{
    for (int i = 0; i < {rows}; i++) run_all(inputs[i], outputs[i]);
    return 0;
}}
"""


def program(seed: int, functions: int, rows: int) -> str:
    """C text of a whole DPU program: `generate` with a `main`."""
    return generate(seed, functions) + _DEVICE.format(rows=rows, functions=functions)


def random_inputs(seed: int, rows: int) -> NDArray[np.int64]:
    """Mixed magnitudes: small, 32-bit, 64-bit and special values; shape [rows, INPUTS]."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-(1 << 63), (1 << 63) - 1, (rows, INPUTS), dtype=np.int64)
    values >>= rng.choice([0, 0, 16, 31, 32, 40, 48, 56, 60], (rows, INPUTS))
    special = np.array([0, 1, -1, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 255, 65535])
    pick = rng.random((rows, INPUTS)) < 0.25
    values[pick] = rng.choice(special, int(pick.sum()))
    return values


def run_native(
    source: str, inputs: NDArray[np.int64], functions: int, folder: Path
) -> NDArray[np.int64]:
    """Results by g++, shape [rows, functions]."""
    # a name of its own each time: the loader would hand out a loaded library with its old data
    library = folder / f"{next(_names)}_{os.getpid()}.so"
    flags = ["-O0", "-fwrapv", "-shared", "-fPIC", "-w", "-x", "c++", "-", "-o", str(library)]
    text = (source + _NATIVE).encode()
    subprocess.run(["g++", *flags], input=text, check=True, capture_output=True)
    out = np.zeros((len(inputs), functions), np.int64)
    inputs = np.ascontiguousarray(inputs)
    ctypes.CDLL(str(library)).native(
        ctypes.c_void_p(inputs.ctypes.data),
        ctypes.c_void_p(out.ctypes.data),
        len(inputs),
        functions,
    )
    library.unlink()
    return out


def run_on_dpu(source: str, inputs: NDArray[np.int64], functions: int, opt: str) -> NDArray[Any]:
    """Results of the simulated DPU, shape [rows, functions]."""
    text = source + _DEVICE.format(rows=len(inputs), functions=functions)
    dpu = Dpu(compile_c(text, opt=opt, stack_bytes=8192, debug=False))
    dpu.write("inputs", inputs)
    dpu.run(max_cycles=500_000_000)
    return dpu.read("outputs", np.int64, len(inputs) * functions).reshape(len(inputs), functions)


def check(seed: int, opt: str, folder: Path, rows: int = 12, functions: int = 5) -> str | None:
    """None if DPU and host agree on a random program, else what differs."""
    if opt == "-O0":  # IRAM holds 4096 instructions
        functions = min(functions, 3)
    source = generate(seed, functions)
    inputs = random_inputs(seed, rows)
    expected = run_native(source, inputs, functions, folder)
    found = run_on_dpu(source, inputs, functions, opt)
    wrong = np.argwhere(expected != found)
    if not len(wrong):
        return None
    row, function = wrong[0]
    return (
        f"seed {seed} {opt}: function {function} of input {inputs[row].tolist()}: "
        f"g++ {expected[row, function]}, DPU {found[row, function]}"
    )
