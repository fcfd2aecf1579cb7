"""The host dialect: packing of tiles, and the host's own loop nests, as one C11 file.

Order in the file: a small fork-join over pthreads, the tiles as tables with pack and unpack
functions, then `prepare` and `finish`. The signatures are those of `Sources`. Work is cut into
ranges that write disjoint elements in a fixed order, so results don't depend on the number of
threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from tvm import ir, tirx
from tvm.tirx import For, ForKind, Stmt

from atim.codegen.access import accesses, loop_ranges
from atim.codegen.boundary import hoist
from atim.codegen.c_values import BUILTIN_FLOAT, PRODUCT, c_type
from atim.codegen.emit import Emitter
from atim.codegen.lower import lift
from atim.codegen.names import Names
from atim.codegen.split import Nest, Split, operation
from atim.codegen.transfer import Placed, Tensor, Tile
from atim.functions import HOST
from atim.target import MAX_HOST_THREADS

_HEAD = """\
/* Host side of {title}: slices for the DPUs, and the work that stays here. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef LOCAL
#define LOCAL /* nothing: as a library, this file gives its parts by name */
#endif

/* Runs work(context, begin, end) over [0, count), cut into one range for each thread. */
typedef void work_fn(void *context, int64_t begin, int64_t end);

struct range {{
    work_fn *work;
    void *context;
    int64_t begin, end;
}};

static void *run_range(void *argument) {{
    const struct range *range = argument;
    range->work(range->context, range->begin, range->end);
    return NULL;
}}

enum {{ MAX_THREADS = {max_threads} }};

static void fork_join(work_fn *work, void *context, int64_t count, uint32_t threads) {{
    pthread_t handles[MAX_THREADS];
    struct range ranges[MAX_THREADS];
    bool started[MAX_THREADS];
    int64_t parts = threads < MAX_THREADS ? threads : MAX_THREADS;
    parts = parts < count ? parts : count;
    for (int64_t i = 0; i < parts; i++) {{
        ranges[i] = (struct range){{work, context, count * i / parts, count * (i + 1) / parts}};
        /* the last range, and any that gets no thread, runs here */
        started[i] = i + 1 < parts && pthread_create(&handles[i], NULL, run_range, &ranges[i]) == 0;
        if (!started[i]) {{
            run_range(&ranges[i]);
        }}
    }}
    for (int64_t i = 0; i < parts; i++) {{
        if (started[i]) {{
            pthread_join(handles[i], NULL);
        }}
    }}
}}
"""

MOVE = """\
enum {{ MAX_AXES = {axes}, GRID_AXES = {grid_axes} }};

static const int64_t grid[GRID_AXES] = {{{grid}}};

/* One DPU's box of a tensor: see struct fields; sizes in elements unless they say bytes. */
struct tile {{
    int axes;
    int64_t item_bytes, slice_bytes;
    int64_t shape[MAX_AXES];            /* of the tensor */
    int64_t extent[MAX_AXES];           /* of the box */
    int64_t padded[MAX_AXES];           /* of the array in MRAM */
    int64_t base[MAX_AXES];             /* the box begins at base + coeffs * grid index */
    int64_t coeffs[MAX_AXES][GRID_AXES];
}};

struct move {{
    const struct tile *tile;
    char *tensor, *slices;
    const uint32_t *dpus;
}};

/* Where the DPU's box begins, and what of it lies inside the tensor; false if nothing does. */
static bool find_box(const struct tile *tile, uint32_t dpu, int64_t *start, int64_t *low,
                     int64_t *high) {{
    int64_t index[GRID_AXES];
    bool some = true;
    for (int j = GRID_AXES - 1; j >= 0; j--) {{
        index[j] = dpu % grid[j];
        dpu /= (uint32_t)grid[j];
    }}
    for (int a = 0; a < tile->axes; a++) {{
        start[a] = tile->base[a];
        for (int j = 0; j < GRID_AXES; j++) {{
            start[a] += tile->coeffs[a][j] * index[j];
        }}
        low[a] = start[a] > 0 ? start[a] : 0;
        high[a] = start[a] + tile->extent[a];
        high[a] = high[a] < tile->shape[a] ? high[a] : tile->shape[a];
        some = some && low[a] < high[a];
    }}
    return some;
}}

/* Copies some rows of the clipped box, those from `first` to `end` of the slice's outermost axis,
 * between tensor and slice. What lies in both as one piece is one copy: runs of the last axis, with
 * the axes behind that are whole in box, tensor and slice. */
static void move_rows(const struct move *move, char *slice, uint32_t dpu, int64_t first,
                      int64_t end, bool pack) {{
    const struct tile *tile = move->tile;
    int64_t start[MAX_AXES], low[MAX_AXES], high[MAX_AXES], at[MAX_AXES];
    if (!find_box(tile, dpu, start, low, high)) {{
        return;
    }}
    low[0] = low[0] > start[0] + first ? low[0] : start[0] + first;
    high[0] = high[0] < start[0] + end ? high[0] : start[0] + end;
    if (low[0] >= high[0]) {{
        return;
    }}
    int last = tile->axes - 1;
    int64_t item_bytes = tile->item_bytes;
    while (last > 0 && start[last] == 0 && high[last] == tile->shape[last] &&
           tile->padded[last] == tile->shape[last]) {{
        item_bytes *= tile->shape[last--];
    }}
    memcpy(at, low, sizeof at);
    const size_t run_bytes = (size_t)((high[last] - low[last]) * item_bytes);
    for (;;) {{
        int64_t outside = 0, inside = 0;
        for (int a = 0; a <= last; a++) {{
            outside = outside * tile->shape[a] + at[a];
            inside = inside * tile->padded[a] + at[a] - start[a];
        }}
        char *host = move->tensor + outside * item_bytes;
        char *mram = slice + inside * item_bytes;
        memcpy(pack ? mram : host, pack ? host : mram, run_bytes);
        int a = last - 1;
        while (a >= 0 && ++at[a] == high[a]) {{
            at[a] = low[a];
            a--;
        }}
        if (a < 0) {{
            return;
        }}
    }}
}}

/* Work is counted in rows of the slices' outermost axis, so that threads share large slices too. */
static void move_range(const struct move *move, int64_t begin, int64_t end, bool pack) {{
    const struct tile *tile = move->tile;
    const int64_t rows = tile->padded[0], row_bytes = tile->slice_bytes / rows;
    for (int64_t i = begin / rows; i * rows < end; i++) {{
        const int64_t first = begin > i * rows ? begin - i * rows : 0;
        const int64_t past = end < (i + 1) * rows ? end - i * rows : rows;
        char *slice = move->slices + i * tile->slice_bytes;
        if (pack) {{
            memset(slice + first * row_bytes, 0, (size_t)((past - first) * row_bytes));
        }}
        move_rows(move, slice, move->dpus[i], first, past, pack);
    }}
}}
"""

RANGE = """\
static void {way}_range(void *context, int64_t begin, int64_t end) {{
    move_range(context, begin, end, {pack});
}}
"""

TILE = """\
static const struct tile {symbol}_tile = {{
    .axes = {axes},
    .item_bytes = {item_bytes},
    .slice_bytes = {slice_bytes},
    .shape = {{{shape}}},
    .extent = {{{extent}}},
    .padded = {{{padded}}},
    .base = {{{base}}},
    .coeffs = {{{coeffs}}},
}};
"""

PACK_TILE = """\
LOCAL void pack_{symbol}(
        const void *tensor, void *slices, const uint32_t *dpus, uint32_t count, uint32_t threads) {{
    struct move move = {{&{symbol}_tile, (char *)(uintptr_t)tensor, slices, dpus}};
    fork_join(pack_range, &move, count * {symbol}_tile.padded[0], threads);
}}
"""

UNPACK_TILE = """\
LOCAL void unpack_{symbol}(
        void *tensor, const void *slices, const uint32_t *dpus, uint32_t count, uint32_t threads) {{
    struct move move = {{&{symbol}_tile, tensor, (char *)(uintptr_t)slices, dpus}};
    fork_join(unpack_range, &move, count * {symbol}_tile.padded[0], threads);
}}
"""


@dataclass(frozen=True, slots=True)
class HostText:
    """host.c, the tensors that its work functions take, in order, and how many threads can share
    them."""

    text: str
    prepare_args: tuple[str, ...]
    finish_args: tuple[str, ...]
    threads: int


def head_text(title: str) -> str:
    """What every host.c begins with: its purpose, and the fork-join that its work is done by."""
    return _HEAD.format(title=title, max_threads=MAX_HOST_THREADS)


def emit_host(parts: Split, placed: Placed, title: str) -> HostText:
    """Print the host side of a split program."""
    plan = placed.plan
    pieces = [head_text(title)]
    pieces.append(
        MOVE.format(
            axes=max((len(t.extent) for t in plan.tiles), default=1),
            grid_axes=len(plan.grid),
            grid=_row(plan.grid),
        )
    )
    if any(t.mode != "out" for t in plan.tiles):
        pieces.append(RANGE.format(way="pack", pack="true"))
    if any(t.mode != "in" for t in plan.tiles):
        pieces.append(RANGE.format(way="unpack", pack="false"))
    for tile in plan.tiles:
        pieces += _tile_functions(tile)
    helpers: dict[str, str] = {}
    prepare, prepare_args = host_work("prepare", parts.before, placed.tensors, helpers)
    finish, finish_args = host_work("finish", parts.after, placed.tensors, helpers)
    text = "\n".join([*pieces, *helpers.values(), *prepare, *finish])
    threads = max((_threads(nest) for nest in (*parts.before, *parts.after)), default=1)
    return HostText(text, prepare_args, finish_args, threads)


def _row(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _tile_functions(tile: Tile) -> list[str]:
    pieces = [
        TILE.format(
            symbol=tile.symbol,
            axes=len(tile.extent),
            item_bytes=np.dtype(tile.dtype).itemsize,
            slice_bytes=tile.slice_bytes,
            shape=_row(tile.host_shape),
            extent=_row(tile.extent),
            padded=_row(tile.padded),
            base=_row(tile.offset_base),
            coeffs=", ".join("{" + _row(row) + "}" for row in tile.offset_coeffs),
        )
    ]
    if tile.mode != "out":
        pieces.append(PACK_TILE.format(symbol=tile.symbol))
    if tile.mode != "in":
        pieces.append(UNPACK_TILE.format(symbol=tile.symbol))
    return pieces


# host nests --------------------------------------------------------------------------------------


def host_work(
    name: str,
    nests: Sequence[Nest],
    tensors: Mapping[tirx.Var, Tensor],
    helpers: dict[str, str],
) -> tuple[list[str], tuple[str, ...]]:
    """A function that runs the nests in order, and the tensors it takes. Nothing for no nests. The
    functions that they call go to `helpers`, by name."""
    if not nests:
        return [], ()
    args = _arguments(nests, tensors)
    pieces, calls = [], []
    for i, nest in enumerate(nests):
        body = lift(hoist(nest.body))
        parallel = isinstance(body, For) and body.kind == ForKind.PARALLEL
        emitter = Host(body, nest, args, tensors)
        pieces.append(emitter.function(f"{name}_{i}"))
        helpers |= emitter.helpers
        if parallel:
            calls.append(
                f"    fork_join({name}_{i}, (void *)tensors, {int(body.extent)}, threads);"
            )
        else:
            calls.append(f"    {name}_{i}((void *)tensors, 0, 1);")
    unused = [] if any("threads)" in c for c in calls) else ["    (void)threads;"]
    head = f"LOCAL void {name}(void *const *tensors, uint32_t threads) {{"
    pieces.append("\n".join([head, *unused, *calls, "}\n"]))
    return pieces, tuple(tensors[buffer].name for buffer in args)


def _threads(nest: Nest) -> int:
    """Extent of the parallel loop around a nest, 1 without."""
    body = lift(hoist(nest.body))
    return int(body.extent) if isinstance(body, For) and body.kind == ForKind.PARALLEL else 1


def _arguments(nests: Sequence[Nest], tensors: Mapping[tirx.Var, Tensor]) -> list[tirx.Var]:
    """The tensors that the nests touch, in order of first use."""
    args: list[tirx.Var] = []
    for nest in nests:
        for access in accesses(nest.body, {}):
            if access.buffer in tensors and access.buffer not in args:
                args.append(access.buffer)
    return args


class Host(Emitter):
    """C11 for the host's compiler; 64-bit indices."""

    index_type = "int64_t"
    unroll = unroll_some = "#pragma GCC unroll 8"
    rolled = "#pragma GCC unroll 1"
    where = "host code"
    functions: ClassVar[Mapping[str, str]] = {name: name for name in HOST}

    def __init__(
        self,
        body: Stmt,
        nest: Nest,
        args: Sequence[tirx.Var],
        tensors: Mapping[tirx.Var, Tensor],
    ) -> None:
        super().__init__(Names(["begin", "end", "tensors", "context"]), loop_ranges(body))
        self.body, self.nest, self.args = body, nest, args
        found = list(accesses(body, {}))
        self.mine = [b for b in args if any(a.buffer is b or a.buffer.same_as(b) for a in found)]
        self.written = {a.buffer for a in found if a.store}
        for buffer in self.mine:
            self.text[buffer] = self.names.new(tensors[buffer].name)
        for buffer in nest.buffers:
            self.text[buffer] = self.names.new(str(buffer.name))

    def call(self, expr: ir.Call) -> tuple[str, int]:
        """Functions that C writes as expressions."""
        name, dtype = operation(expr), str(expr.ty)
        if name not in ("rsqrt", "sigmoid") or dtype not in BUILTIN_FLOAT:
            return super().call(expr)
        suffix, value = BUILTIN_FLOAT[dtype], self.expr(expr.args[0])
        if name == "rsqrt":
            return f"1.0{suffix} / sqrt{suffix}({value})", PRODUCT
        return f"1.0{suffix} / (1.0{suffix} + exp{suffix}(-({value})))", PRODUCT

    def element(self, buffer: tirx.Var, indices: Sequence[ir.Expr]) -> str:
        shown = "".join(f"[{self.expr(i)}]" for i in indices) or "[0]"
        return f"{self.text[buffer]}{shown}"

    def function(self, name: str) -> str:
        """A work function over the range [begin, end) of the outermost parallel loop."""
        body = self.body
        parallel = isinstance(body, For) and body.kind == ForKind.PARALLEL
        if parallel:
            self.iterate(body, "begin", "end")
        else:
            self.stmt(body)
        lines = [f"static void {name}(void *context, int64_t begin, int64_t end) {{"]
        lines.append("    void *const *tensors = context;")
        lines += [self._argument(b) for b in self.mine]
        lines += [self._allocation(b) for b in self.nest.buffers]
        if not parallel:
            lines += ["    (void)begin;", "    (void)end;"]
        frees = [f"    free({self.text[b]});" for b in self.nest.buffers]
        return "\n".join([*lines, *self.lines, *frees, "}\n"])

    def _argument(self, buffer: tirx.Var) -> str:
        position = next(i for i, b in enumerate(self.args) if b.same_as(buffer))
        const = "" if buffer in self.written else "const "
        sizes = "".join(f"[{int(n)}]" for n in list(buffer.shape)[1:])
        name = self.text[buffer]
        declared = f"(*restrict {name}){sizes}" if sizes else f"*restrict {name}"
        return f"    {const}{c_type(str(buffer.dtype))} {declared} = tensors[{position}];"

    def _allocation(self, buffer: tirx.Var) -> str:
        sizes = "".join(f"[{int(n)}]" for n in list(buffer.shape)[1:])
        name, first = self.text[buffer], int(buffer.shape[0]) if len(buffer.shape) else 1
        declared = f"(*{name}){sizes}" if sizes else f"*{name}"
        return f"    {c_type(str(buffer.dtype))} {declared} = malloc({first} * sizeof *{name});"
