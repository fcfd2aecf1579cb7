"""The C text of chain_c.py: a stage's unit, and the host.c that runs stages in turn.

Doubled braces are those of `str.format`.
"""

from __future__ import annotations

from atim.codegen.driver_text import PUSH_WORDS

STAGES_H = """\
/* What the units of the stages give to host.c. Functions return as those of {name}.h do. */
#ifndef {guard}
#define {guard}

#include <dpu.h>

#include "{name}.h"

enum {{ DONE, REFUSED, NO_MEMORY, NOT_LOADED }};

{declared}

#endif
"""

ON_DPUS = """\
/* Stage {stage} ({title}): tiles are numbered as in its table of routes. */
int {prefix}_init(struct dpu_set_t dpus, uint32_t threads);
int {prefix}_send(int tile, const void *tensor);
int {prefix}_receive(int tile, void *tensor);
void {prefix}_prepare(void *const *tensors);
void {prefix}_finish(void *const *tensors);
struct {name}_times *{prefix}_times(void);
void {prefix}_free(void);
"""

ON_HOST = """\
/* Stage {stage} ({title}), on the host. */
void {prefix}_work(void *const *tensors, uint32_t threads);
"""

# the driver's text as far as stages need it; they take the set that host.c allocates
SKIP = """\
        if (i == NR_DPUS) {
            break; /* the others take no part in this stage */
        }
"""

STAGE = """\
int {prefix}_init(struct dpu_set_t set, uint32_t threads) {{
    dpus = set;
    nr_threads = threads;
    ready = true;
    int status = DONE;
    for (size_t i = 0; status == DONE && i < sizeof routes / sizeof routes[0]; i++) {{
        status = plan_route(routes[i]);
    }}
{grid}    return status;
}}

struct {name}_times *{prefix}_times(void) {{
    return &times;
}}

void {prefix}_free(void) {{
    for (size_t i = 0; ready && i < sizeof routes / sizeof routes[0]; i++) {{
        drop_slices(routes[i]);
        free(routes[i]->offset);
        free(routes[i]->imaged);
        routes[i]->offset = NULL;
        routes[i]->imaged = NULL;
    }}
    ready = false;
}}
"""

SEND_TILE = """\
int {prefix}_send(int tile, const void *tensor) {{
    return send(routes[tile], tensor);
}}
"""

RECEIVE_TILE = """\
int {prefix}_receive(int tile, void *tensor) {{
    return receive(routes[tile], tensor);
}}
"""

WORK = """\
void {prefix}_{phase}(void *const *tensors) {{
    {phase}(tensors, nr_threads);
}}
"""

HOST_WORK = """\
void {prefix}_work(void *const *tensors, uint32_t threads) {{
    {function}(tensors, threads);
}}
"""

NOW = """\
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
"""

HOST = """\
/* {title} on {dpus} DPUs, stage by stage over one allocation. Tensors between stages stay on the
 * DPUs where two stages agree on their tiles; the others are held here. */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "{name}_stages.h"
#ifdef DPU_SIM
#include <dpu_sim.h>
#endif

enum {{ NR_DPUS = {dpus}, NR_STAGES = {stages} }};

static struct dpu_set_t dpus;
static bool ready{loaded};
static uint32_t nr_threads;
static struct {name}_times times;
static struct {name}_times *(*const times_of[])(void) = {{{times}}};
{held}
{now}
/* Seconds as the DPUs count them. */
static double dpu_now(void) {{
#ifdef DPU_SIM
    double seconds;
    return dpu_sim_now(dpus, &seconds) == DPU_OK ? seconds : 0;
#else
    return now();
#endif
}}

/* The next stage: the DPUs count their launches. */
static int launch(void) {{
    const double begin = dpu_now();
    DPU_CHECK(dpu_launch(dpus, DPU_SYNCHRONOUS), return REFUSED);
    times.kernel += dpu_now() - begin;
#ifdef DPU_SIM
    uint64_t cycles;
    DPU_CHECK(dpu_sim_cycles(dpus, &cycles), return REFUSED);
    times.cycles += cycles;
#endif
    return DONE;
}}

static void start_times(void) {{
    const double load = times.load;
    memset(&times, 0, sizeof times);
    times.load = load;
    for (size_t i = 0; i < sizeof times_of / sizeof times_of[0]; i++) {{
        memset(times_of[i](), 0, sizeof times);
    }}
}}

static void add_times(void) {{
    for (size_t i = 0; i < sizeof times_of / sizeof times_of[0]; i++) {{
        const struct {name}_times *stage = times_of[i]();
        times.pack += stage->pack;
        times.to_dpus += stage->to_dpus;
        times.from_dpus += stage->from_dpus;
        times.unpack += stage->unpack;
    }}
}}
"""

PARTS = (
    """\
/* Tells each DPU in which stages it takes part. */
static int send_parts(void) {{
    static const uint32_t size[NR_STAGES] = {{{sizes}}};
    static uint32_t words[NR_DPUS][(NR_STAGES + 1) / 2 * 2];
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(dpus, dpu, i) {{
        for (int stage = 0; stage < NR_STAGES; stage++) {{
            words[i][stage] = i < size[stage];
        }}
"""
    + PUSH_WORDS
)

LOAD = """\
int {name}_load_resident({parameters}) {{
    int status = ready ? DONE : {name}_init(NULL, 0);
    if (status != DONE) {{
        return status;
    }}
    start_times();
{steps}
    add_times();
    times.load = times.pack + times.to_dpus + times.finish;
    loaded = true;
    return DONE;
}}
"""

RUN = """\
static int run({parameters}) {{
    int status;
{steps}
    return DONE;
}}

int {name}({parameters}) {{
    int status = ready ? DONE : {name}_init(NULL, 0);
{residents}    if (status != DONE) {{
        return status;
    }}
    start_times();
    status = run({arguments});
    add_times();
    if (status != DONE) {{
        {name}_free(); /* the DPUs may be between two stages */
    }}
    return status;
}}
"""

RESIDENTS = """\
    if (status == DONE && {given}) {{
        status = {name}_load_resident({arguments});
    }} else if (status == DONE && !loaded) {{
        status = NOT_LOADED;
    }}
"""

FREE = """\
void {name}_free(void) {{
    if (!ready) {{
        return;
    }}
    ready = false;
{steps}
    DPU_CHECK(dpu_free(dpus), return);
}}

const struct {name}_times *{name}_last_times(void) {{
    return &times;
}}
"""
