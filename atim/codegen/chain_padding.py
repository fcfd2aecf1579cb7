"""Padding of what a kernel leaves in MRAM for later stages, cleared by the kernel itself.

In: a stage's sources and the tiles to clear. Out: sources whose kernel, when it is done, stores
zeros to all elements of those tiles that lie outside of the DPU's part of the tensor, as the host
does when it packs tiles. So stages read a tile where it lies, whatever its shape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from atim.codegen import Sources, Tile
from atim.codegen.names import Names

__all__ = ["with_clear_padding"]

STACK_BYTES = 48  # of clear_row, which the kernel calls when its own frame is not deep
BARRIER = "all_have_written"

ROW = """\
static const __dma_aligned uint8_t zeros[64] = {{0}};

/* The bytes of a row from `kept` on become zero. */
static void {row}(__mram_ptr uint8_t *row, uint32_t kept, uint32_t bytes) {{
    uint32_t at = kept & ~7u;
    if (kept > at && kept < bytes) {{
        __dma_aligned uint8_t word[8];
        mram_read(row + at, word, 8);
        for (uint32_t byte = kept - at; byte < 8; byte++) {{
            word[byte] = 0;
        }}
        mram_write(word, row + at, 8);
        at += 8;
    }}
    for (; at < bytes; at += sizeof zeros) {{
        const uint32_t left = bytes - at;
        mram_write(zeros, row + at, left < sizeof zeros ? left : sizeof zeros);
    }}
}}

/* How many of the elements from `start` on lie inside of the tensor. */
static int32_t {inside}(int32_t start, int32_t extent, int32_t size) {{
    const int32_t left = size - start;
    return left < 0 ? 0 : left < extent ? left : extent;
}}
"""

TILE = """\
/* What lies outside of the tensor in {symbol}. */
static void {clear}(void) {{
    const int32_t *const place = (const int32_t *)&{grid};
    (void)place;
    __mram_ptr uint8_t *const tile = (__mram_ptr uint8_t *){symbol};
{held}
    if ({full}) {{
        return;
    }}
{loops}
}}
"""

MAIN = """\
int main(void) {{
    {compute}();
    barrier_wait(&{barrier});
{clears}
    return 0;
}}
"""


def with_clear_padding(sources: Sources, tiles: Sequence[Tile]) -> Sources:
    """The kernel with a part that clears these tiles' padding; their boxes begin at or after the
    beginning of the tensor. The host sends the grid index, if it did not already."""
    text, plan = sources.kernel_c, sources.plan
    names = Names(set(re.findall(r"[A-Za-z_]\w*", text)) | set(re.findall(r"\w+", ROW + TILE)))
    row, inside, compute = (names.new(n) for n in ("clear_row", "inside_of", "compute"))
    grid = plan.grid_symbol or names.new("grid_index")
    words = len(plan.grid) + len(plan.grid) % 2
    parts = [re.sub(r"^int main\(void\)", f"static int {compute}(void)", text, flags=re.M)]
    assert parts[0] != text
    if plan.grid_symbol is None:
        parts.append(f"__host int32_t {grid}[{words}]; /* this DPU's place in the grid */\n")
    parts += [f"BARRIER_INIT({BARRIER}, NR_TASKLETS);\n", ROW.format(row=row, inside=inside)]
    clears = {tile.symbol: names.new(f"clear_{tile.symbol}") for tile in tiles}
    parts += [_tile(tile, clears[tile.symbol], grid, row, inside) for tile in tiles]
    calls = "\n".join(f"    {name}();" for name in clears.values())
    parts.append(MAIN.format(compute=compute, barrier=BARRIER, clears=calls))
    whole = "\n".join(parts).replace("#include <defs.h>", "#include <barrier.h>\n#include <defs.h>")
    return replace(
        sources,
        kernel_c=whole,
        plan=replace(plan, grid_symbol=grid),
        stack_bytes=sources.stack_bytes + STACK_BYTES,
    )


def _tile(tile: Tile, clear: str, grid: str, row: str, inside: str) -> str:
    """Rows along the last axis that is not 1; tasklets share the first axis."""
    sizes = tile.padded
    last = max((a for a, n in enumerate(sizes) if n != 1), default=len(sizes) - 1)
    item = np.dtype(tile.dtype).itemsize
    pitch = sizes[last] * item
    held = []
    for axis, coeffs in enumerate(tile.offset_coeffs):
        terms = [f"{c} * place[{g}]" for g, c in enumerate(coeffs) if c]
        start = " + ".join([str(tile.offset_base[axis]), *terms])
        extent, size = tile.extent[axis], tile.host_shape[axis]
        held.append(f"    const int32_t held_{axis} = {inside}({start}, {extent}, {size});")
    full = " && ".join(f"held_{axis} == {n}" for axis, n in enumerate(sizes))
    loops = [a for a, n in enumerate(sizes) if n != 1 and a != last]
    alone = [a for a, n in enumerate(sizes) if n == 1 and a != last]
    lines, at = [], "0"
    for depth, axis in enumerate(loops):
        begin, step = ("(int32_t)me()", "+= NR_TASKLETS") if depth == 0 else ("0", "+= 1")
        head = f"for (int32_t i{axis} = {begin}; i{axis} < {sizes[axis]}; i{axis} {step}) {{"
        lines.append("    " * (depth + 1) + head)
        at = f"i{axis}" if at == "0" else f"({at}) * {sizes[axis]} + i{axis}"
    if not loops:
        lines.append("    if (me() == 0) {")
    indent = "    " * (max(len(loops), 1) + 1)
    there = [f"i{a} < held_{a}" for a in loops] + [f"held_{a} > 0" for a in alone]
    kept = f"(uint32_t)held_{last} * {item}"
    chosen = f"{' && '.join(there)} ? {kept} : 0" if there else kept
    lines.append(f"{indent}const uint32_t kept = {chosen};")
    lines.append(f"{indent}{row}(tile + ({at}) * {pitch}, kept, {pitch});")
    lines += ["    " * depth + "}" for depth in range(max(len(loops), 1), 0, -1)]
    return TILE.format(
        symbol=tile.symbol,
        clear=clear,
        grid=grid,
        held="\n".join(held),
        full=full,
        loops="\n".join(lines),
    )
