"""The C text of driver_c.py that differs between DPUs that work as one and groups of ranks.

WHOLE and GROUPED fill the places of driver_text.py's templates.
"""

from __future__ import annotations

WHOLE = {
    "groups": "",
    "of_group": "",
    "parameter": "",
    "argument": "",
    "declared": "",
    "set": "dpus",
    "target": "dpus",
    "several": "",
    "first": "",
    "images": "",
    "skip": "",
    "count": "route->images",
    "slices": "route->slices",
    "imaged": "route->imaged",
}

GROUPED = {
    "groups": """\
/* Ranks that work together. While one group computes, the host feeds the next one: transfers wait
 * for their end, so that groups get the memory bus one after the other, and launches don't. */
struct group {
    struct dpu_set_t dpus;
    uint32_t first, end; /* of its DPUs, by number */
};

static struct group groups[NR_GROUPS];
static uint32_t nr_groups;

static int plan_groups(void) {
    uint32_t ranks, size, first = 0;
    DPU_CHECK(dpu_get_nr_ranks(dpus, &ranks), return REFUSED);
    nr_groups = ranks < NR_GROUPS ? ranks : NR_GROUPS;
    for (uint32_t g = 0; g < nr_groups; g++) {
        const uint32_t begin = ranks * g / nr_groups, end = ranks * (g + 1) / nr_groups;
        groups[g].dpus = dpus;
        groups[g].dpus.list.ranks += begin;
        groups[g].dpus.list.nr_ranks = end - begin;
        DPU_CHECK(dpu_get_nr_dpus(groups[g].dpus, &size), return REFUSED);
        groups[g].first = first;
        groups[g].end = first += size;
    }
    return DONE;
}

/* How many images belong to DPUs before this one. */
static uint32_t images_before(const struct route *route, uint32_t dpu) {
    uint32_t count = 0;
    while (count < route->images && route->imaged[count] < dpu) {
        count++;
    }
    return count;
}

""",
    "of_group": " of a group",
    "parameter": ", const struct group *group",
    "argument": ", group",
    "declared": "set = group->dpus, ",
    "set": "set",
    "target": "group->dpus",
    "several": " && group->end - group->first > 1",
    "first": "group->first + ",
    "images": """\
    const uint32_t skipped = images_before(route, group->first);
    const uint32_t images = images_before(route, group->end) - skipped;
""",
    "skip": "",
    "count": "images",
    "slices": "route->slices + skipped * (size_t)route->tile->slice_bytes",
    "imaged": "route->imaged + skipped",
}

LAUNCH_GROUP = """\
static int launch(const struct group *group) {
    const double begin = dpu_now();
    DPU_CHECK(dpu_launch(group->dpus, DPU_ASYNCHRONOUS), return REFUSED);
    times.kernel += dpu_now() - begin;
    return DONE;
}

/* Until the group has done its work. */
static int wait_for(const struct group *group) {
    const double begin = dpu_now();
    DPU_CHECK(dpu_sync(group->dpus), return REFUSED);
    times.kernel += dpu_now() - begin;
#ifdef DPU_SIM
    uint64_t cycles;
    DPU_CHECK(dpu_sim_cycles(group->dpus, &cycles), return REFUSED);
    times.cycles = cycles > times.cycles ? cycles : times.cycles;
#endif
    return DONE;
}
"""
