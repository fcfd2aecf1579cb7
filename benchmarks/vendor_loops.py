"""Loops as our C compiler makes them, beside the forms of the vendor's: instructions each.

The vendor's forms are those of its assembly (SDK 2023.2 and 2025.1) and of decoded binaries of SDK
2021.3. Ours are counted by running each loop at two lengths: what one more element costs. Rows that
are no loop of their own (a comparison, a transfer, saved registers) are a function that is called
in a loop; what an empty function costs there is taken off. Every row is compiled at -O2 and -O3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from upmem_sim import Dpu, compile_c

LEVELS = ("-O2", "-O3")
SHORT, LONG = 32, 96
MULTIPLY = 6 + 4  # the routine's instructions for a factor of 4 bits
_PROGRAM = """
#include <stdint.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#define STAY __asm__ volatile("nop")
__host unsigned n;
unsigned m = 64;
int64_t k = 9;
int32_t a[256], b[256], c[256];
int64_t p[128], q[128], r[128];
uint32_t hist[256];
__dma_aligned char buffer[64];
__mram_noinit char bank[64];
MUTEX_INIT(lock);
__weak {head} {{ {body} }}
int main(void) {{
    for (int i = 0; i < 256; i++) a[i] = b[i] = 9;
    {use}
    return 0;
}}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A row: C of a function, and the instructions that the vendor's compiler needs for an element.

    head, body  the function, called `f`; `call` are its arguments
    repeated    False: the function holds the loop (over n). True: it is called n times, and what
                an empty function costs is taken off
    elements    rounds of a loop of constant length inside
    """

    name: str
    vendor: float
    head: str
    body: str
    call: str
    repeated: bool = False
    elements: int = 1


def _loop(name: str, vendor: float, result: str, parameters: str, body: str) -> Case:
    """A loop with a run-time count; arguments are the arrays of these names."""
    names = [word.split()[-1].lstrip("*") for word in parameters.split(",")]
    start, end = (f"{result} s = 0;", "return s;") if result != "void" else ("", "")
    if "n" not in names:
        parameters, names = f"{parameters}, unsigned n", [*names, "n"]
    text = f"{start} for (unsigned i = 0; i < n; i++) {{ {body} }} {end}"
    return Case(name, vendor, f"{result} f({parameters})", text, ", ".join(names))


def _unrolled(name: str, vendor: float, result: str, parameters: str, body: str) -> Case:
    names = [word.split()[-1].lstrip("*") for word in parameters.split(",")]
    start, end = (f"{result} s = 0;", "return s;") if result != "void" else ("", "")
    text = f'{start} _Pragma("unroll") for (int i = 0; i < 64; i++) {{ {body} }} {end}'
    return Case(name, vendor, f"{result} f({parameters})", text, ", ".join(names), True, 64)


def _branch(type_: str, condition: str) -> Case:
    """A comparison that does not hold, and the branch on it."""
    kind = "unsigned" if type_[0] == "u" else "signed"
    name = f"64-bit {kind} {condition}, branch"
    body = f"if ({condition}) return; STAY;"
    values = "0x100000003, 0x100000002" if "<" in condition else "3, 0x100000002"
    return Case(name, 4, f"void f({type_} x, {type_} y)", body, values, True)


_INTS, _LONGS = "int32_t *a, int32_t *b", "int64_t *p, int64_t *q"
CASES = (
    _loop("int64 sum", 5, "int64_t", "int64_t *p", "s += p[i];"),
    _loop("sum of two int32 arrays", 7, "int32_t", _INTS, "s += a[i] + b[i];"),
    _loop("sum of two int64 arrays", 9, "int64_t", _LONGS, "s += p[i] + q[i];"),
    _loop("histogram", 11 + MULTIPLY, "void", "int32_t *a, uint32_t *hist, unsigned n",
          "hist[(a[i] * n) >> 12] += 1;"),
    _loop("dot product", 7 + MULTIPLY, "int32_t", _INTS, "s += a[i] * b[i];"),
    _loop("three int32 arrays", 9, "void", f"{_INTS}, int32_t *c", "c[i] = a[i] + b[i];"),
    _loop("three int64 arrays", 10, "void", f"{_LONGS}, int64_t *r", "r[i] = p[i] + q[i];"),
    _loop("int32 array + scalar", 6, "void", "int32_t *a, int32_t k", "a[i] += k;"),
    _loop("int64 array + scalar", 7, "void", "int64_t *p, int64_t k", "p[i] += k;"),
    _loop("int32 array * scalar", 7 + MULTIPLY, "void", "int32_t *a, int32_t k", "a[i] *= k;"),
    _loop("int64 copy", 6, "void", _LONGS, "q[i] = p[i];"),
    _loop("lock, nop, unlock", 5, "void", "int *a", "mutex_lock(lock); STAY; mutex_unlock(lock);"),
    _unrolled("64 rounds: int32 sum in place", 4, "void", _INTS, "b[i] += a[i];"),
    _unrolled("64 rounds: int64 sum", 4, "int64_t", "int64_t *p", "s += p[i];"),
    _branch("int64_t", "x < y"),
    _branch("int64_t", "x <= y"),
    _branch("uint64_t", "x < y"),
    _branch("int64_t", "x == y"),
    _branch("int64_t", "x == 0"),
    Case("DMA of run-time size", 4, "void f(unsigned m, char *w, __mram_ptr char *x)",
         "mram_read(x, w, m); STAY;", "m, buffer, bank", True),
)  # fmt: skip


def _slope(case: Case, level: str, empty: bool) -> float:
    """Instructions that one more round costs."""
    body = "STAY;" if empty else case.body
    if empty and not case.head.startswith("void"):
        body += " return 0;"
    call = f"f({case.call});"
    use = f"for (unsigned i = 0; i < n; i++) {call}" if case.repeated else call
    program = compile_c(_PROGRAM.format(head=case.head, body=body, use=use), opt=level)
    counts = []
    for rounds in (SHORT, LONG):
        dpu = Dpu(program)
        dpu.write("n", np.uint32(rounds))
        counts.append(dpu.run().instructions)
    return (counts[1] - counts[0]) / (LONG - SHORT)


def measure(case: Case, level: str) -> float:
    """Instructions an element at an optimisation level."""
    cost = _slope(case, level, False)
    if case.repeated:
        cost -= _slope(case, level, True)
    return cost / case.elements


def run(quick: bool) -> int:
    """Print the table; 1 when a row is longer than the vendor's."""
    cases = CASES[::4] if quick else CASES
    longer = 0
    print(f"{'instructions an element':36} {'vendor':>7} {LEVELS[0]:>7} {LEVELS[1]:>7}")
    for case in cases:
        ours = [measure(case, level) for level in LEVELS]
        mark = "longer" if max(ours) > case.vendor else ""
        longer += bool(mark)
        print(f"{case.name:36} {case.vendor:7.2f} {ours[0]:7.2f} {ours[1]:7.2f} {mark}")
    print(f"{len(cases)} rows, {longer} longer than the vendor's")
    return int(longer > 0)
