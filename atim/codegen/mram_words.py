"""Single elements of MRAM, through the 8 bytes that hold them: where checks keep a copy from being
one transfer, and where an index is data.

A store reads its 8 bytes, changes a part and writes them back, so two tasklets that store to the
same 8 bytes must take turns. Where no two can, the store takes no lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import tvm_ffi
from tvm import ir, tirx

from atim.codegen.access import accesses
from atim.codegen.affine import Ranges
from atim.codegen.copies import WRITE, flat_index, in_mram, item_bytes
from atim.codegen.kernel_func import external_name
from atim.target import DMA_ALIGN_BYTES

LOAD = """\
/* one element of MRAM, through the 8 bytes that hold it */
static inline {T} mram_load_{N}(const __mram_ptr {T} *from) {{
    __dma_aligned {T} word[{W}];
    const uintptr_t address = (uintptr_t)from;
    mram_read((const __mram_ptr void *)(address & ~(uintptr_t)7), word, 8);
    return word[(address & 7) / sizeof({T})];
}}
"""

STORE = """\
/* one element of MRAM; the lock keeps other tasklets off the 8 bytes that hold it */
static inline void mram_store_{N}(__mram_ptr {T} *to, {T} value) {{
    __dma_aligned {T} word[{W}];
    const uintptr_t address = (uintptr_t)to & ~(uintptr_t)7;
    mutex_lock(mram_word);
    mram_read((const __mram_ptr void *)address, word, 8);
    word[((uintptr_t)to & 7) / sizeof({T})] = value;
    mram_write(word, (__mram_ptr void *)address, 8);
    mutex_unlock(mram_word);
}}
"""

STORE_OWN = """\
/* one element of MRAM; no other tasklet stores to the 8 bytes that hold it */
static inline void mram_store_own_{N}(__mram_ptr {T} *to, {T} value) {{
    __dma_aligned {T} word[{W}];
    const uintptr_t address = (uintptr_t)to & ~(uintptr_t)7;
    mram_read((const __mram_ptr void *)address, word, 8);
    word[((uintptr_t)to & 7) / sizeof({T})] = value;
    mram_write(word, (__mram_ptr void *)address, 8);
}}
"""

STORE_WHOLE = """\
/* one element of MRAM, 8 bytes long */
static inline void mram_store_own_{N}(__mram_ptr {T} *to, {T} value) {{
    __dma_aligned {T} word[{W}];
    word[0] = value;
    mram_write(word, to, 8);
}}
"""


def store_helper(own: bool, item: int) -> tuple[str, str]:
    """(name without the type, C text) of the function that stores one element of `item` bytes."""
    if item == DMA_ALIGN_BYTES:
        return "store_own", STORE_WHOLE
    return ("store_own", STORE_OWN) if own else ("store", STORE)


def sole_stores(body: tirx.Stmt) -> set[tirx.Var]:
    """Arrays of MRAM that exactly one statement writes, element by element."""
    count: Counter[tirx.Var] = Counter(a.buffer for a in accesses(body, {}) if a.store)

    def call(node: ir.Call) -> None:
        if external_name(node) == WRITE:
            count[node.args[3].args[0].source] += 2

    tvm_ffi.structural_walk(body, [(ir.Call, call)])
    return {buffer for buffer, n in count.items() if n == 1 and in_mram(buffer)}


def owns_words(
    buffer: tirx.Var, indices: Sequence[ir.Expr], ranges: Ranges, tasklet: tirx.Var
) -> bool:
    """No two tasklets store to the same 8 bytes of the array by this statement.

    Proved where the finest loops run over whole words from a multiple of 8 bytes on, and every
    coarser loop, the tasklet's number among them, steps over all positions of the finer ones.
    """
    if ranges[tasklet] == (0, 0):
        return True
    flat = flat_index(buffer, list(indices), ranges)
    if flat is None or tasklet not in flat.terms:
        return False
    form = flat * item_bytes(buffer)
    steps = sorted(form.terms.items(), key=lambda term: term[1])
    reach, coarse = item_bytes(buffer), False
    if form.const % DMA_ALIGN_BYTES or steps[0][1] < 0:
        return False
    for var, step in steps:
        if var not in ranges:
            return False
        if not coarse and (var.same_as(tasklet) or step != reach):
            coarse = True
            reach = -(-reach // DMA_ALIGN_BYTES) * DMA_ALIGN_BYTES
        if coarse and (step % DMA_ALIGN_BYTES or step < reach):
            return False
        reach += step * ranges[var][1]
    return True
