/* Breadth-first search: nodes are shared out, every DPU gets buffers of its own sizes; after each
 * level the host joins what they reached and sends it to all. */
#include <assert.h>
#include <dpu.h>
#include <dpu_log.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { NODES = 1003, EDGES_OF_ONE = 3 };

static uint32_t rows[NODES + 1];
static uint32_t edges[NODES * EDGES_OF_ONE + 2];

static void make_graph(void) {
    uint32_t state = 7;
    for (uint32_t node = 0; node < NODES; node++) {
        rows[node + 1] = rows[node];
        for (uint32_t i = 0; i < EDGES_OF_ONE - node % 2; i++) {
            state = state * 1664525 + 1013904223;
            edges[rows[node + 1]++] = (state >> 8) % NODES;
        }
    }
}

static void search_on_host(int32_t *levels) {
    memset(levels, -1, NODES * sizeof *levels);
    levels[0] = 0;
    bool more = true;
    for (int32_t level = 0; more; level++) {
        more = false;
        for (uint32_t node = 0; node < NODES; node++) {
            for (uint32_t e = rows[node]; levels[node] == level && e < rows[node + 1]; e++) {
                if (levels[edges[e]] < 0) {
                    levels[edges[e]] = level + 1;
                    more = true;
                }
            }
        }
    }
}

static uint32_t put(struct dpu_set_t dpu, uint32_t *heap, const void *data, uint32_t bytes) {
    const uint32_t at = *heap, padded = ROUND_UP_8(bytes);
    if (data != NULL) {
        void *copy = calloc(1, padded);
        memcpy(copy, data, bytes);
        DPU_ASSERT(dpu_copy_to(dpu, DPU_MRAM_HEAP_POINTER_NAME, at, copy, padded));
        free(copy);
    }
    *heap += padded;
    return at;
}

int main(void) {
    struct dpu_set_t set, dpu;
    uint32_t nr_dpus, each, words = (NODES + 63) / 64;
    make_graph();
    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(set, &nr_dpus));
    assert(nr_dpus == NR_DPUS);

    struct dpu_params params[NR_DPUS];
    uint64_t frontier[(NODES + 63) / 64] = {1}, visited[(NODES + 63) / 64] = {1};
    const uint32_t per_dpu = (NODES + nr_dpus - 1) / nr_dpus / 8 * 8 + 8;
    DPU_FOREACH (set, dpu, each) {
        const uint32_t first = each * per_dpu < NODES ? each * per_dpu : NODES;
        const uint32_t last = first + per_dpu < NODES ? first + per_dpu : NODES;
        uint32_t heap = ROUND_UP_8(sizeof(struct dpu_params));
        struct dpu_params *p = &params[each];
        *p = (struct dpu_params){.nodes = NODES, .first = first, .count = last - first};
        uint32_t local[NODES + 1];
        for (uint32_t i = 0; i <= p->count; i++) {
            local[i] = rows[first + i] - rows[first];
        }
        p->rows = put(dpu, &heap, local, (p->count + 1) * 4);
        p->edges = put(dpu, &heap, edges + rows[first], local[p->count] * 4 + 8);
        p->frontier = put(dpu, &heap, NULL, words * 8);
        p->next = put(dpu, &heap, NULL, words * 8);
    }
    int32_t levels[NODES], expected[NODES];
    memset(levels, -1, sizeof levels);
    levels[0] = 0;
    bool more = true;
    for (uint32_t level = 0; more; level++) {
        DPU_FOREACH (set, dpu, each) {
            params[each].level = level;
            DPU_ASSERT(dpu_copy_to(dpu, DPU_MRAM_HEAP_POINTER_NAME, 0, &params[each],
                                   sizeof params[each]));
            DPU_ASSERT(dpu_copy_to(dpu, DPU_MRAM_HEAP_POINTER_NAME, params[each].frontier,
                                   frontier, sizeof frontier));
        }
        DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
        memset(frontier, 0, sizeof frontier);
        DPU_FOREACH (set, dpu, each) {
            uint64_t next[(NODES + 63) / 64];
            if (level == 1) {
                DPU_ASSERT(dpu_log_read(dpu, stdout));
            }
            DPU_ASSERT(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME,
                                     params[each].next, next, sizeof next));
            for (uint32_t i = 0; i < words; i++) {
                frontier[i] |= next[i];
            }
        }
        more = false;
        for (uint32_t node = 0; node < NODES; node++) {
            const uint64_t bit = 1ull << node % 64;
            if (frontier[node / 64] & ~visited[node / 64] & bit) {
                levels[node] = (int32_t)level + 1;
                more = true;
            }
        }
        for (uint32_t i = 0; i < words; i++) {
            frontier[i] &= ~visited[i];
            visited[i] |= frontier[i];
        }
    }
    search_on_host(expected);
    uint32_t wrong = 0;
    for (uint32_t node = 0; node < NODES; node++) {
        wrong += levels[node] != expected[node];
    }
    printf("bfs: %u wrong of %u\n", wrong, NODES);
    DPU_ASSERT(dpu_free(set));
    return wrong != 0;
}
