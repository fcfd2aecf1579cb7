"""The C text of host_c.py: fork-join over pthreads, and tiles with what packs and unpacks them."""

from __future__ import annotations

__all__ = ["HEAD", "MOVE", "PACK_TILE", "RANGE", "TILE", "UNPACK_TILE"]

HEAD = """\
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
