#include <assert.h>
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

#define NR_TASKLETS_SHOWN 16
enum { KEYS = 3072, QUERIES = 64 * 16, RANKS = 1 };

int main(void) {
    struct dpu_set_t dpu_set, rank, dpu;
    uint32_t nr_of_dpus, i = 0;
    DPU_ASSERT(dpu_alloc_ranks(RANKS, "backend=simulator", &dpu_set));
    DPU_ASSERT(dpu_load(dpu_set, "dpu", NULL));
    DPU_ASSERT(dpu_get_nr_dpus(dpu_set, &nr_of_dpus));
    const uint32_t slice = QUERIES / nr_of_dpus / 16 * 16 + 16;
    key *keys = malloc(KEYS * sizeof(key));
    key *queries = malloc((size_t)nr_of_dpus * slice * sizeof(key));
    for (int n = 0; n < KEYS; n++) {
        keys[n] = 2 * n + 1;
    }
    for (uint32_t q = 0; q < nr_of_dpus * slice; q++) {
        queries[q] = keys[q * 7 % KEYS];
    }
    const dpu_arguments_t arguments = {KEYS, slice, SEARCH};
    DPU_ASSERT(dpu_broadcast_to(dpu_set, "DPU_INPUT_ARGUMENTS", 0, &arguments, sizeof arguments,
                                DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_broadcast_to(dpu_set, DPU_MRAM_HEAP_POINTER_NAME, 0, keys, KEYS * sizeof(key),
                                DPU_XFER_DEFAULT));
    DPU_FOREACH (dpu_set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, queries + slice * i));
    }
    DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                             KEYS * sizeof(key), slice * sizeof(key), DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_launch(dpu_set, DPU_ASYNCHRONOUS));
    DPU_ASSERT(dpu_sync(dpu_set));
    dpu_results_t results[64][NR_TASKLETS_SHOWN];
    DPU_RANK_FOREACH (dpu_set, rank) {
        DPU_FOREACH (rank, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, results[i]));
        }
        DPU_ASSERT(dpu_push_xfer(rank, DPU_XFER_FROM_DPU, "DPU_RESULTS", 0, sizeof results[0],
                                 DPU_XFER_DEFAULT));
    }
    uint32_t wrong = 0;
    for (uint32_t d = 0; d < nr_of_dpus; d++) {
        for (uint32_t t = 0; t < NR_TASKLETS_SHOWN; t++) {
            key last = -1;
            for (uint32_t q = 0; q < slice / 16; q++) {
                const key place = (key)((d * slice + t * (slice / 16) + q) * 7 % KEYS);
                last = place > last ? place : last;
            }
            wrong += results[d][t].found != last;
        }
    }
    printf("search: %u wrong on %u DPUs\n", wrong, nr_of_dpus);
    free(keys);
    free(queries);
    DPU_ASSERT(dpu_free(dpu_set));
    return wrong != 0;
}
