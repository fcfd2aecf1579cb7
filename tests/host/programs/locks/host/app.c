/* Counts values; equal slices but for the last DPU's. */
#include <dpu.h>
#include <dpu_log.h>

#include "common.h"

#define COUNT 10008
#define SLICE ((COUNT / 2 + NR_DPUS - 1) / NR_DPUS * 2)

static uint32_t values[SLICE * NR_DPUS], found[NR_DPUS][BINS], wanted[BINS];

int main(void) {
    struct dpu_set_t set, dpu;
    struct arguments arguments[NR_DPUS];
    uint32_t i, wrong = 0;
    for (i = 0; i < COUNT; i++) {
        values[i] = (i * 2654435761u) >> 20;
        wanted[values[i] * BINS / VALUES]++;
    }
    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    DPU_FOREACH(set, dpu, i) {
        const uint32_t left = i * SLICE < COUNT ? COUNT - i * SLICE : 0;
        arguments[i].bytes = (left < SLICE ? left : SLICE) * sizeof values[0];
        arguments[i].room = SLICE * sizeof values[0];
        DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[i]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "ARGUMENTS", 0, sizeof arguments[0],
                             DPU_XFER_DEFAULT));
    DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, &values[i * SLICE]));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                             SLICE * sizeof values[0], DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu) {
        dpu_error_t status = dpulog_read_for_dpu(dpu.dpu, stdout); /* it printed nothing */
        if (status != DPU_ERR_LOG_CONTEXT_MISSING) DPU_ASSERT(status);
    }
    DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, found[i]));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                             SLICE * sizeof values[0], sizeof found[0], DPU_XFER_DEFAULT));
    for (i = 0; i < BINS; i++) {
        for (uint32_t d = 1; d < NR_DPUS; d++) found[0][i] += found[d][i];
        wrong += found[0][i] != wanted[i];
    }
    printf("locks: %u wrong\n", wrong);
    DPU_ASSERT(dpu_free(set));
    return wrong != 0;
}
