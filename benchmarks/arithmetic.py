"""Instructions an element of the arithmetic and STREAM loops, beside those silicon implies.

The loops have the structure of PrIM's microbenchmarks (github.com/CMU-SAFARI/prim-benchmarks,
Arithmetic-Throughput and STREAM): blocks of 1 KB in WRAM, 16 tasklets, an operand of 31 random bits
and the scalar 2^20. A full pipeline issues one instruction a cycle, so instructions = 350 MHz /
published rate. Counted is the difference to a program whose block function is empty.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upmem_sim import Dpu, compile_c

CLOCK_MHZ = 350.0
TASKLETS = 16
BLOCK = 1024
LIMITS = {"int32": 2.0, "int64": 2.0, "stream": 2.0, "float": 10.0, "double": 10.0}
DATA = Path(__file__).parent / "data" / "arithmetic.csv"

_KERNEL = """
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#define COUNT (BLOCK / sizeof(T))
__host uint32_t bytes;  /* of each array in MRAM */
__host T scalar;
BARRIER_INIT(ready, NR_TASKLETS);

LOOPS

int main(void) {
  if (me() == 0) mem_reset();
  barrier_wait(&ready);
  T *a = mem_alloc(BLOCK), *b = mem_alloc(BLOCK), *c = mem_alloc(BLOCK);
  uint32_t base = (uint32_t)DPU_MRAM_HEAP_POINTER;
  for (uint32_t at = me() * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
    mram_read((__mram_ptr void const *)(base + at), a, BLOCK);
    mram_read((__mram_ptr void const *)(base + bytes + at), b, BLOCK);
    block(a, b, c, scalar);
    mram_write(RESULT, (__mram_ptr void *)(base + 2 * bytes + at), BLOCK);
  }
  return 0;
}
"""
_EMPTY = """
__attribute__((noinline)) static void block(T *a, T *b, T *c, T s) {
  (void)s;
  __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
}
"""
_IN_PLACE = """
__attribute__((noinline)) static void block(T *a, T *b, T *c, T s) {
  (void)b, (void)c;
  for (unsigned int i = 0; i < COUNT; i++) a[i] = a[i] OPERATOR s;
}
"""
_STREAM = """
__attribute__((noinline)) static void block(T *a, T *b, T *c, T s) {
  (void)b, (void)s;
#pragma unroll
  for (unsigned int i = 0; i < COUNT; i++) c[i] = EXPRESSION;
}
"""
_TYPES = {"int32": ("int32_t", "i4"), "int64": ("int64_t", "i8"), "float": ("float", "f4"),
          "double": ("double", "f8"), "stream": ("int64_t", "i8")}  # fmt: skip
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_EXPRESSIONS = {"copy": "a[i]", "add": "a[i] + b[i]", "scale": "a[i] * s",
                "triad": "a[i] + b[i] * s"}  # fmt: skip
Array = NDArray[Any]
_RESULTS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "copy": lambda a, b, s: a, "scale": lambda a, b, s: a * s, "triad": lambda a, b, s: a + b * s,
}  # fmt: skip
_NUMPY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@dataclass(frozen=True, slots=True)
class Published:
    """A row of data/arithmetic.csv."""

    loop: str
    value: float
    unit: str
    bytes: int

    @property
    def instructions(self) -> float:
        """Instructions an element when each takes one cycle."""
        return CLOCK_MHZ * (self.bytes or 1) / self.value


def published() -> list[Published]:
    """The rows of the table."""
    lines = [line for line in DATA.read_text().splitlines() if not line.startswith("#")]
    return [
        Published(row["loop"], float(row["value"]), row["unit"], int(row["bytes"]))
        for row in csv.DictReader(lines)
    ]


def _expected(family: str, name: str, a: Array, b: Array, scalar: Array) -> Array:
    with np.errstate(over="ignore"):
        if family == "stream":
            return a + b if name == "add" else _RESULTS[name](a, b, scalar)
        if name == "div" and a.dtype.kind == "i":
            return a // scalar  # both positive
        return np.asarray(_NUMPY[name](a, scalar))


def measure(loop: str, elements: int) -> float:
    """Instructions an element of a loop such as "int32 mul"; results are checked with NumPy."""
    family, name = loop.split()
    c_type, kind = _TYPES[family]
    stream = family == "stream"
    body = (
        _STREAM.replace("EXPRESSION", _EXPRESSIONS[name])
        if stream
        else _IN_PLACE.replace("OPERATOR", _OPERATORS[name])
    )
    rng = np.random.default_rng(31)
    a, b = (rng.integers(0, 1 << 31, elements).astype(kind) for _ in range(2))
    scalar = np.array([1 << 20], kind)
    defines = {"T": c_type, "BLOCK": BLOCK, "RESULT": "c" if stream else "a"}
    counts = []
    for function in (_EMPTY, body):
        source = _KERNEL.replace("LOOPS", function)
        program = compile_c(source, nr_tasklets=TASKLETS, stack_bytes=512, defines=defines)
        dpu = Dpu(program)
        dpu.write("bytes", np.uint32(a.nbytes))
        dpu.write("scalar", scalar)
        dpu.write("DPU_MRAM_HEAP_POINTER_NAME", np.concatenate([a, b]))
        counts.append(dpu.run().instructions)
    got = dpu.read("DPU_MRAM_HEAP_POINTER_NAME", kind, elements, 2 * a.nbytes)
    if not np.array_equal(got, _expected(family, name, a, b, scalar)):
        raise ArithmeticError(f"{loop}: wrong results")
    return (counts[1] - counts[0]) / elements


def run(quick: bool) -> int:
    """Print the table; exit status 1 if a loop is outside its limit."""
    elements = 1 << (14 if quick else 18)
    print(f"{elements} elements, {TASKLETS} tasklets; instructions an element")
    titles = f"{'published':>16} {'implied':>8} {'simulated':>10} {'error %':>8} {'limit':>6}"
    print(f"{'loop':13} {titles}")
    failed = 0
    for row in published():
        count = measure(row.loop, elements)
        error = 100 * (count / row.instructions - 1)
        limit = LIMITS[row.loop.split()[0]]
        outside = abs(error) > limit
        failed += outside
        print(
            f"{row.loop:13} {row.value:11.2f} {row.unit:4} {row.instructions:8.2f} {count:10.2f} "
            f"{error:+8.1f} {limit:6.0f}{'  outside' if outside else ''}",
            flush=True,
        )
    print("published: PrIM (Gomez-Luna et al., IEEE Access 2022), figures 4 and 5")
    return 1 if failed else 0
