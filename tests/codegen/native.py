"""Runs emitted sources on this machine's own compiler: tasklets as threads, MRAM as globals.

A functional check without the simulator. DMA rules are enforced (8-byte alignment, sizes, both
ranges), a tasklet may touch only its own and the shared WRAM, no two tasklets may write the same
MRAM word (unless under the word lock), and every output is surrounded by guard bands.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from atim.codegen import Sources, Tile, TransferPlan

GUARD = 64  # elements before and behind every host tensor
FILL = 0x5A
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")
STRICT = ("-Wpedantic", "-Wshadow", "-Wconversion")  # of what is emitted
STRICTLY = "#pragma GCC diagnostic push\n" + "".join(
    f'#pragma GCC diagnostic error "{option}"\n' for option in STRICT
)
NO_LONGER = "#pragma GCC diagnostic pop\n"

SHIM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define __mram_noinit
#define __mram_ptr
#define __host
#define __dma_aligned __attribute__((aligned(8)))
static _Thread_local unsigned self;
static char fault[256];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int locked;
static int mram_word_index(const void *p, unsigned n);
static int wram_ok(const void *p, unsigned n);
static signed char owner[1 << 24];
static inline unsigned me(void) { return self; }
static void check(const void *m, const void *w, unsigned n, const char *what) {
    char here; /* a buffer on the stack is the tasklet's own */
    const char *wrong = 0;
    if (((uintptr_t)m & 7) || ((uintptr_t)w & 7)) wrong = "misaligned";
    if (n % 8 || n < 8 || n > 2048) wrong = "of wrong size";
    if (mram_word_index(m, n) < 0) wrong = "outside of MRAM arrays";
    if (llabs((char *)w - &here) > 4096 && !wram_ok(w, n)) wrong = "outside of own WRAM";
    if (wrong) snprintf(fault, sizeof fault, "%s of %u bytes %s", what, n, wrong);
}
static void mram_read(const void *m, void *w, unsigned n) {
    check(m, w, n, "read");
    if (!fault[0]) memcpy(w, m, n);
}
static void mram_write(const void *w, void *m, unsigned n) {
    check(m, w, n, "write");
    if (fault[0]) return;
    memcpy(m, w, n);
    int word = mram_word_index(m, n);
    for (unsigned i = 0; !locked && i < n / 8; i++, word++) {
        if (owner[word] && owner[word] != (signed char)(self + 1))
            snprintf(fault, sizeof fault, "two tasklets write word %d", word);
        owner[word] = (signed char)(self + 1);
    }
}
#define MUTEX_INIT(name) static int name
static inline void mutex_lock(int m) {
    (void)m;
    pthread_mutex_lock(&lock);
    locked = 1;
}
static inline void mutex_unlock(int m) {
    (void)m;
    locked = 0;
    pthread_mutex_unlock(&lock);
}
#define BARRIER_INIT(name, n) static pthread_barrier_t name; \
    static void __attribute__((constructor)) start_##name(void) { \
        pthread_barrier_init(&name, 0, n); } struct end_##name
static inline void barrier_wait(pthread_barrier_t *b) { pthread_barrier_wait(b); }
"""

RUN = r"""
static const struct { char *at; unsigned bytes; } arrays[] = { %(arrays)s };
static int mram_word_index(const void *p, unsigned n) {
    int base = 0;
    for (unsigned i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        const char *at = arrays[i].at, *q = p;
        if (q >= at && q + n <= at + arrays[i].bytes) return base + (int)((q - at) / 8);
        base += arrays[i].bytes / 8;
    }
    return -1;
}
static int wram_ok(const void *p, unsigned n) {
    const char *q = p;
    (void)q; (void)n;
    %(wram)s
    return 0;
}
static void *tasklet(void *argument) { self = (unsigned)(uintptr_t)argument; dpu_main(); return 0; }
const char *run(void) {
    pthread_t threads[32];
    memset(owner, 0, sizeof owner %(words)s);
    fault[0] = 0;
    for (unsigned t = 0; t < NR_TASKLETS; t++) {
        %(start)s
    }
    %(join)s
    (void)threads;
    return fault;
}
"""


class KernelFault(AssertionError):
    """The kernel broke a rule of the DPU."""


def compile_native(text: str, name: str, flags: tuple[str, ...] = ()) -> ctypes.CDLL:
    """Shared library of a C text, with strict warnings; built once for each content."""
    digest = hashlib.sha256((text + repr(flags)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / "atim_native_tests"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}_{digest}.so"
    if not path.exists():
        # other processes may want the same library: it appears as a whole
        part = path.with_suffix(f".{os.getpid()}.so")
        source = part.with_suffix(".c")
        source.write_text(text)
        options = [
            "-O1",
            "-fwrapv",
            "-std=gnu11",
            *WARNINGS,
            "-shared",
            "-fPIC",
            "-pthread",
            *flags,
        ]
        subprocess.run(["cc", *options, "-o", str(part), str(source), "-lm"], check=True)
        os.replace(part, path)
    return ctypes.CDLL(str(path))


def kernel_library(sources: Sources) -> ctypes.CDLL:
    """The kernel with the shim around it."""
    kernel = re.sub(r"#include <(defs|mram|barrier|mutex)\.h>\n", "", sources.kernel_c)
    kernel = kernel.replace("int main(void)", "static int dpu_main(void)")
    kernel = kernel.replace("__mram_noinit ", "__attribute__((aligned(8))) ")
    shared = re.findall(r"^static __dma_aligned \w+ (\w+)\[", kernel, re.M)
    wram = [f"if (q >= (char *){n} && q + n <= (char *){n} + sizeof {n}) return 1;" for n in shared]
    if "wram_of[NR_TASKLETS]" in kernel:
        wram.append(
            "if (q >= (char *)&wram_of[self] && q + n <= (char *)&wram_of[self + 1]) return 1;"
        )
    arrays = [f"{{(char *){t.symbol}, sizeof {t.symbol}}}" for t in sources.plan.tiles]
    words = sum(t.slice_bytes for t in sources.plan.tiles) // 8
    assert words < 1 << 24
    threaded = "BARRIER_INIT" in kernel
    start = "pthread_create(&threads[t], 0, tasklet, (void *)(uintptr_t)t);"
    join = "for (unsigned t = 0; t < NR_TASKLETS; t++) pthread_join(threads[t], 0);"
    run = RUN % {
        "arrays": ", ".join(arrays),
        "wram": "\n    ".join(wram),
        "words": f"* 0 + {words}",
        "start": start if threaded else "tasklet((void *)(uintptr_t)t);",
        "join": join if threaded else "",
    }
    flags = (f"-DNR_TASKLETS={sources.nr_tasklets}", "-Wno-unused-function")
    text = SHIM + STRICTLY + kernel + NO_LONGER + run
    return compile_native(text, "kernel", flags)


class GuardedArray:
    """A host tensor with guard bands around it."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        count = int(np.prod(shape))
        self.whole = np.full(count + 2 * GUARD, 0, dtype)
        self.whole.view(np.uint8)[:] = FILL
        self.count = count
        self.array = self.whole[GUARD : GUARD + count].reshape(shape)

    def intact(self) -> bool:
        bands = np.concatenate([self.whole[:GUARD], self.whole[GUARD + self.count :]])
        return bool(np.all(bands.view(np.uint8) == FILL))


def run_native(
    sources: Sources, inputs: dict[str, np.ndarray], threads: int = 2
) -> dict[str, np.ndarray]:
    """Outputs of a whole run over all DPUs; KernelFault on a broken rule or a torn guard band."""
    plan = sources.plan
    kernel = kernel_library(sources)
    kernel.run.restype = ctypes.c_char_p
    host = compile_native(sources.host_c, "host", ("-Wno-unused-function", *STRICT))
    held = {t.name: GuardedArray(t.shape, t.dtype) for t in plan.tensors}
    for name, array in inputs.items():
        held[name].array[...] = array
    if plan.prepare:
        _work(host, plan.prepare, plan.prepare_args, held, threads)
    every = np.arange(plan.dpus, dtype=np.uint32)
    slices = {t.symbol: np.full((plan.dpus, t.slice_bytes), FILL, np.uint8) for t in plan.tiles}
    for tile in plan.tiles:
        if tile.mode != "out":
            name = f"pack_{tile.symbol}"
            _move(host, name, held[tile.tensor], slices[tile.symbol], every, threads)
    for dpu in range(plan.dpus):
        _run_dpu(kernel, plan, dpu, slices)
    for tile in plan.tiles:
        if tile.mode != "in":
            name = f"unpack_{tile.symbol}"
            _move(host, name, held[tile.tensor], slices[tile.symbol], every, threads)
    if plan.finish:
        _work(host, plan.finish, plan.finish_args, held, threads)
    for name, tensor in held.items():
        if not tensor.intact():
            raise KernelFault(f"guard band of {name} was overwritten")
    return {t.name: held[t.name].array for t in plan.tensors if t.role == "output"}


def _run_dpu(
    kernel: ctypes.CDLL, plan: TransferPlan, dpu: int, slices: dict[str, np.ndarray]
) -> None:
    """Load, run and read back one DPU."""
    if plan.grid_symbol:
        _poke(kernel, plan.grid_symbol, plan.grid_words()[dpu])
    for tile in plan.tiles:
        _poke(kernel, tile.symbol, slices[tile.symbol][dpu])
    fault = kernel.run().decode()
    if fault:
        raise KernelFault(f"DPU {dpu}: {fault}")
    for tile in plan.tiles:
        after = _peek(kernel, tile)
        if tile.mode == "in" and not np.array_equal(after, slices[tile.symbol][dpu]):
            raise KernelFault(f"DPU {dpu}: input {tile.tensor} was overwritten")
        slices[tile.symbol][dpu] = after


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _work(
    host: ctypes.CDLL, name: str, args: tuple[str, ...], held: dict[str, GuardedArray], threads: int
) -> None:
    pointers = (ctypes.c_void_p * len(args))(*[held[a].array.ctypes.data for a in args])
    getattr(host, name)(pointers, ctypes.c_uint32(threads))


def _move(
    host: ctypes.CDLL,
    name: str,
    tensor: GuardedArray,
    slices: np.ndarray,
    dpus: np.ndarray,
    threads: int,
) -> None:
    function = getattr(host, name)
    function(
        _pointer(tensor.array),
        _pointer(slices),
        _pointer(dpus),
        ctypes.c_uint32(len(dpus)),
        ctypes.c_uint32(threads),
    )


def _poke(kernel: ctypes.CDLL, symbol: str, data: np.ndarray) -> None:
    data = np.ascontiguousarray(data)
    target = (ctypes.c_char * data.nbytes).in_dll(kernel, symbol)
    ctypes.memmove(target, data.ctypes.data, data.nbytes)


def _peek(kernel: ctypes.CDLL, tile: Tile) -> np.ndarray:
    source = (ctypes.c_uint8 * tile.slice_bytes).in_dll(kernel, tile.symbol)
    return np.frombuffer(source, np.uint8).copy()
