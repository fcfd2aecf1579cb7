/* One level of a breadth-first search: the DPU marks the neighbours of its nodes. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdio.h>

#include "common.h"

BARRIER_INIT(barrier, NR_TASKLETS);
MUTEX_INIT(next_mutex);

__host uint64_t reached;

/* A word of MRAM through the 8 bytes that hold it. */
static uint32_t load_word(uint32_t base, uint32_t index, uint64_t *cache) {
    mram_read((__mram_ptr void const *)((base + index * 4) & ~7u), cache, 8);
    return ((uint32_t *)cache)[((base + index * 4) >> 2) & 1];
}

int main(void) {
    if (me() == 0) {
        mem_reset();
        reached = 0;
    }
    barrier_wait(&barrier);

    struct dpu_params *params = mem_alloc(sizeof *params);
    mram_read(DPU_MRAM_HEAP_POINTER, params, sizeof *params);
    const uint32_t heap = (uint32_t)DPU_MRAM_HEAP_POINTER;
    params->rows += heap;
    params->edges += heap;
    params->frontier += heap;
    params->next += heap;
    uint64_t *cache = mem_alloc(8);
    uint64_t *bits = mem_alloc(8);

    const uint32_t words = (params->nodes + 63) / 64;
    for (uint32_t i = me(); i < words; i += NR_TASKLETS) {
        *bits = 0;
        mram_write(bits, (__mram_ptr void *)(params->next + i * 8), 8);
    }
    barrier_wait(&barrier);

    for (uint32_t i = me(); i < params->count; i += NR_TASKLETS) {
        const uint32_t node = params->first + i;
        mram_read((__mram_ptr void const *)(params->frontier + node / 64 * 8), bits, 8);
        if (!(*bits >> node % 64 & 1)) {
            continue;
        }
        const uint32_t begin = load_word(params->rows, i, cache);
        const uint32_t end = load_word(params->rows, i + 1, cache);
        for (uint32_t edge = begin; edge < end; edge++) {
            const uint32_t other = load_word(params->edges, edge, cache);
            const uint32_t word = params->next + other / 64 * 8;
            mutex_lock(next_mutex);
            mram_read((__mram_ptr void const *)word, bits, 8);
            *bits |= 1ull << other % 64;
            mram_write(bits, (__mram_ptr void *)word, 8);
            reached++;
            mutex_unlock(next_mutex);
        }
    }
    barrier_wait(&barrier);
    if (me() == NR_TASKLETS - 1) {
        printf("level %u: %llu edges from node %u on\n", (unsigned)params->level,
               (unsigned long long)reached, (unsigned)params->first);
    }
    return 0;
}
