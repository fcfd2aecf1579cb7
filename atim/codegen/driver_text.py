"""The C text of driver_c.py: templates of host.c's driver and of its header.

Identifiers of these texts are kept clear of the program's own by driver_c.py. Doubled braces are
those of `str.format`. driver_groups.py has what differs when DPUs work in groups of ranks.
"""

from __future__ import annotations

PHASES = {
    "prepare": "host work before the transfers",
    "pack": "copies into slices for the DPUs",
    "to_dpus": "transfers to the DPUs",
    "kernel": "launch until all DPUs are done",
    "from_dpus": "transfers from the DPUs",
    "unpack": "copies out of the slices",
    "finish": "host work after the transfers",
}
"""Seconds that a call takes, by phase, in order."""

HEADER = """\
/* {title} on {dpus} DPUs. Tensors are C-contiguous arrays. One call at a time.
 *
 * Functions return 0; 1 when the DPUs' library refuses a call (it tells on standard error), 2 when
 * memory is short, 3 when a resident operand was never loaded. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Seconds of the last call. With upmem_sim, DPUs and transfers take their simulated time. */
struct {name}_times {{
{phases}
    double load;     /* last {name}_load_resident, and loading of the program before it */
    uint64_t cycles; /* of the slowest DPU; 0 on DIMMs, which do not tell */
}};

/* Allocates the DPUs and loads the program; the first call does it too. kernel: path of the DPU
 * program, NULL for "{name}.dpu". threads: of the host, 0 for as many as it has processors. */
int {name}_init(const char *kernel, unsigned threads);
{load}
/* Runs once.{optional}
{arguments} */
int {name}({parameters});

const struct {name}_times *{name}_last_times(void);

/* Releases DPUs and memory. */
void {name}_free(void);

#ifdef __cplusplus
}}
#endif

#endif
"""

LOAD = """
/* Brings the operands that stay on the DPUs from call to call.{kept} */
int {name}_load_resident({parameters});
"""

INCLUDES = """\
#define _POSIX_C_SOURCE 200809L
#define LOCAL static

"""

DRIVER = """\
/* driver ------------------------------------------------------------------------------------- */

#include <dpu.h>
#ifdef DPU_SIM
#include <dpu_sim.h>
#endif
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "{name}.h"

enum {{ DONE, REFUSED, NO_MEMORY, NOT_LOADED }};
enum {{ NR_DPUS = {dpus}{nr_groups} }};

typedef void pack_fn(const void *tensor, void *slices, const uint32_t *dpus, uint32_t count,
                     uint32_t threads);
typedef void unpack_fn(void *tensor, const void *slices, const uint32_t *dpus, uint32_t count,
                       uint32_t threads);

/* How a tile travels. A box that lies in the tensor as it lies in MRAM goes from there, any other
 * through an image in `slices`; DPUs that hold the same box share it. */
struct route {{
    const struct tile *tile;
    const char *symbol;
    bool same; /* all DPUs hold the same box */
    pack_fn *pack;
    unpack_fn *unpack;
    int64_t *offset;  /* of each DPU: bytes into the tensor, or -1 - number of its image */
    uint32_t *imaged; /* a DPU for each image */
    uint32_t images;
    char *slices;
}};

static struct dpu_set_t dpus;
static bool ready;
static uint32_t nr_threads;
static struct {name}_times times;

static double now(void) {{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}}

/* Seconds as the DPUs count them. */
static double dpu_now(void) {{
#ifdef DPU_SIM
    double seconds;
    return dpu_sim_now(dpus, &seconds) == DPU_OK ? seconds : 0;
#else
    return now();
#endif
}}

/* Where the DPU's box lies in the tensor as one piece, just as in MRAM, in bytes; -1: nowhere. */
static int64_t find_in_place(const struct tile *tile, uint32_t dpu) {{
    int64_t start[MAX_AXES], low[MAX_AXES], high[MAX_AXES], offset = 0;
    if (!find_box(tile, dpu, start, low, high)) {{
        return -1;
    }}
    bool whole = true; /* the axes behind this one are */
    for (int a = tile->axes - 1; a >= 0; a--) {{
        const bool unclipped = low[a] == start[a] && high[a] == start[a] + tile->padded[a];
        if (!unclipped || !(whole || tile->padded[a] == 1)) {{
            return -1;
        }}
        whole = whole && tile->padded[a] == tile->shape[a];
    }}
    for (int a = 0; a < tile->axes; a++) {{
        offset = offset * tile->shape[a] + start[a];
    }}
    return offset * tile->item_bytes;
}}

/* The first DPU that holds the same box: its index is 0 on the grid axes that do not move it. */
static uint32_t find_first(const struct tile *tile, uint32_t dpu) {{
    uint32_t first = 0, stride = 1;
    for (int j = GRID_AXES - 1; j >= 0; j--) {{
        const uint32_t extent = (uint32_t)grid[j];
        for (int a = 0; a < tile->axes; a++) {{
            if (tile->coeffs[a][j] != 0) {{
                first += dpu % extent * stride;
                break;
            }}
        }}
        dpu /= extent;
        stride *= extent;
    }}
    return first;
}}

static int plan_route(struct route *route) {{
    route->images = 0;
    route->offset = malloc(NR_DPUS * sizeof *route->offset);
    route->imaged = malloc(NR_DPUS * sizeof *route->imaged);
    if (route->offset == NULL || route->imaged == NULL) {{
        return NO_MEMORY;
    }}
    for (uint32_t dpu = 0; dpu < NR_DPUS; dpu++) {{
        const uint32_t first = find_first(route->tile, dpu);
        int64_t offset = first < dpu ? route->offset[first] : find_in_place(route->tile, dpu);
        if (first == dpu && offset < 0) {{
            route->imaged[route->images] = dpu;
            offset = -1 - (int64_t)route->images++;
        }}
        route->offset[dpu] = offset;
    }}
    return DONE;
}}

static int hold_slices(struct route *route) {{
    if (route->slices == NULL && route->images > 0) {{
        route->slices = malloc(route->images * (size_t)route->tile->slice_bytes);
    }}
    return route->slices == NULL && route->images > 0 ? NO_MEMORY : DONE;
}}

static void drop_slices(struct route *route) {{
    free(route->slices);
    route->slices = NULL;
}}

{groups}/* One equal slice between the host and each DPU{of_group}. */
static int transfer(struct route *route, dpu_xfer_t way, char *tensor,
                    double *seconds{parameter}) {{
    const double begin = dpu_now();
    const size_t bytes = (size_t)route->tile->slice_bytes;
    struct dpu_set_t {declared}dpu;
    uint32_t i;
    DPU_FOREACH({set}, dpu, i) {{
{skip}        const int64_t offset = route->offset[{first}i];
        char *at = offset < 0 ? route->slices + (size_t)(-1 - offset) * bytes : tensor + offset;
        DPU_CHECK(dpu_prepare_xfer(dpu, at), return REFUSED);
    }}
    DPU_CHECK(dpu_push_xfer({set}, way, route->symbol, 0, bytes, DPU_XFER_DEFAULT), return REFUSED);
    *seconds += dpu_now() - begin;
    return DONE;
}}
"""

SEND = """\
static int send(struct route *route, const void *tensor{parameter}) {{
    const double begin = now();
    if (hold_slices(route) != DONE) {{
        return NO_MEMORY;
    }}
{images}    if ({count} > 0) {{
        route->pack(tensor, {slices}, {imaged}, {count}, nr_threads);
    }}
    times.pack += now() - begin;
{broadcasts}\
    return transfer(route, DPU_XFER_TO_DPU, (char *)(uintptr_t)tensor, &times.to_dpus{argument});
}}
"""

BROADCAST = """\
/* The slice that all DPUs{of_group} hold. */
static int broadcast(const struct route *route, const char *tensor{parameter}) {{
    const double begin = dpu_now();
    const size_t bytes = (size_t)route->tile->slice_bytes;
    const char *from = route->images > 0 ? route->slices : tensor + route->offset[0];
    DPU_CHECK(dpu_broadcast_to({target}, route->symbol, 0, from, bytes, DPU_XFER_DEFAULT),
              return REFUSED);
    times.to_dpus += dpu_now() - begin;
    return DONE;
}}
"""

BROADCASTS = """\
    if (route->same{several}) {{
        return broadcast(route, tensor{argument});
    }}
"""

RECEIVE = """\
static int receive(struct route *route, void *tensor{parameter}) {{
    if (hold_slices(route) != DONE) {{
        return NO_MEMORY;
    }}
    const int status = transfer(route, DPU_XFER_FROM_DPU, tensor, &times.from_dpus{argument});
    const double begin = now();
{images}    if (status == DONE && {count} > 0) {{
        route->unpack(tensor, {slices}, {imaged}, {count}, nr_threads);
    }}
    times.unpack += now() - begin;
    return status;
}}
"""

LAUNCH = """\
static int launch(void) {
    const double begin = dpu_now();
    DPU_CHECK(dpu_launch(dpus, DPU_SYNCHRONOUS), return REFUSED);
    times.kernel = dpu_now() - begin;
#ifdef DPU_SIM
    DPU_CHECK(dpu_sim_cycles(dpus, &times.cycles), return REFUSED);
#endif
    return DONE;
}
"""

# the end of a function that has filled `words` for each DPU
PUSH_WORDS = """\
        DPU_CHECK(dpu_prepare_xfer(dpu, words[i]), return REFUSED);
    }}
    const size_t bytes = sizeof words[0];
    DPU_CHECK(dpu_push_xfer(dpus, DPU_XFER_TO_DPU, "{symbol}", 0, bytes, DPU_XFER_DEFAULT),
              return REFUSED);
    return DONE;
}}
"""

GRID = (
    """\
/* Tells each DPU its place in the grid. */
static int send_grid(void) {{
    static int32_t words[NR_DPUS][(GRID_AXES + 1) / 2 * 2];
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(dpus, dpu, i) {{
{skip}        for (uint32_t j = GRID_AXES, rest = i; j-- > 0; rest /= (uint32_t)grid[j]) {{
            words[i][j] = (int32_t)(rest % (uint32_t)grid[j]);
        }}
"""
    + PUSH_WORDS
)

INIT = """\
int {name}_init(const char *kernel, unsigned threads) {{
    if (ready) {{
        return DONE;
    }}
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    nr_threads = threads > 0 ? threads : processors > 0 ? (uint32_t)processors : 1;
    memset(&times, 0, sizeof times);
    DPU_CHECK(dpu_alloc(NR_DPUS, NULL, &dpus), return REFUSED);
    ready = true;
    int status = DONE;
    const double begin = dpu_now();
    DPU_CHECK(dpu_load(dpus, kernel != NULL ? kernel : "{name}.dpu", NULL), status = REFUSED);
{steps}
    times.load = dpu_now() - begin;
    if (status != DONE) {{
        {name}_free();
    }}
    return status;
}}
"""

FREE = """\
void {name}_free(void) {{
    if (!ready) {{
        return;
    }}
    ready = false;
{steps}
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {{
        drop_slices(routes[i]);
        free(routes[i]->offset);
        free(routes[i]->imaged);
        routes[i]->offset = NULL;
        routes[i]->imaged = NULL;
    }}
    DPU_CHECK(dpu_free(dpus), return);
}}

const struct {name}_times *{name}_last_times(void) {{
    return &times;
}}
"""
