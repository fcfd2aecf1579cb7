/* k-means, all calls asynchronous until a step's sums are needed; the DPU program is embedded. */
#include <dpu.h>
#include <string.h>

#include "common.h"

#define POINTS 900
#define SHARE ((POINTS + NR_DPUS - 1) / NR_DPUS)
#define PADDED ((SHARE + TASK - 1) / TASK * TASK)

DPU_INCBIN(kernel, "bin/dpu_code")

static int16_t slices[NR_DPUS][PADDED][FEATURES];
static uint8_t found[NR_DPUS][(PADDED + 7) / 8 * 8];
static int64_t sums[NR_DPUS][CENTRES][FEATURES];
static uint32_t sizes[NR_DPUS][CENTRES + 1];

static dpu_error_t count_dpus(struct dpu_set_t rank, uint32_t index, void *total) {
    uint32_t dpus;
    (void)index;
    DPU_CHECK(dpu_get_nr_dpus(rank, &dpus), return DPU_ERR_INTERNAL);
    __atomic_fetch_add((uint32_t *)total, dpus, __ATOMIC_RELAXED);
    return DPU_OK;
}

static void exchange(struct dpu_set_t set, dpu_xfer_t way, struct dpu_symbol_t symbol, void *first,
                     size_t bytes) {
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, (uint8_t *)first + i * bytes));
    DPU_ASSERT(dpu_push_xfer_symbol(set, way, symbol, 0, bytes, DPU_XFER_ASYNC));
}

static void next_centres(int16_t (*centres)[FEATURES]) {
    for (int c = 0; c < CENTRES; c++) {
        int64_t size = 0, sum[FEATURES] = {0};
        for (int d = 0; d < NR_DPUS; d++) {
            size += sizes[d][c];
            for (int f = 0; f < FEATURES; f++) sum[f] += sums[d][c][f];
        }
        for (int f = 0; size && f < FEATURES; f++) centres[c][f] = (int16_t)(sum[f] / size);
    }
}

int main() {
    struct dpu_set_t set, dpu;
    struct dpu_program_t *program;
    struct dpu_symbol_t of_points, of_sums, of_sizes, of_nearest;
    struct parameters parameters[NR_DPUS];
    int16_t centres[CENTRES][FEATURES], before[CENTRES][FEATURES];
    uint32_t seen = 0, i, steps = 0, wrong = 0;
    DPU_ASSERT(dpu_alloc(NR_DPUS, "nrJobsPerRank=64", &set));
    DPU_ASSERT(dpu_load_from_incbin(set, &kernel, &program));
    DPU_ASSERT(dpu_get_symbol(program, "points", &of_points));
    DPU_ASSERT(dpu_get_symbol(program, "sums_mram", &of_sums));
    DPU_ASSERT(dpu_get_symbol(program, "sizes", &of_sizes));
    DPU_ASSERT(dpu_get_symbol(program, "nearest", &of_nearest));
    for (i = 0; i < POINTS; i++)
        for (uint32_t f = 0; f < FEATURES; f++)
            slices[i / SHARE][i % SHARE][f] = (int16_t)(i % CENTRES * 100 + (i * 31 + f) % 23);
    memcpy(centres, slices, sizeof centres);
    DPU_FOREACH(set, dpu, i) {
        const uint32_t first = i * SHARE, left = first < POINTS ? POINTS - first : 0;
        parameters[i] = (struct parameters){left < SHARE ? left : SHARE, PADDED};
        DPU_ASSERT(dpu_prepare_xfer(dpu, &parameters[i]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "parameters", 0, sizeof parameters[0],
                             DPU_XFER_ASYNC));
    exchange(set, DPU_XFER_TO_DPU, of_points, slices, sizeof slices[0]);
    DPU_ASSERT(dpu_callback(set, count_dpus, &seen, DPU_CALLBACK_ASYNC));
    do {
        memcpy(before, centres, sizeof centres);
        DPU_ASSERT(dpu_broadcast_to(set, "centres", 0, centres, sizeof centres, DPU_XFER_ASYNC));
        DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));
        exchange(set, DPU_XFER_FROM_DPU, of_sums, sums, sizeof sums[0]);
        exchange(set, DPU_XFER_FROM_DPU, of_sizes, sizes, sizeof sizes[0]);
        DPU_ASSERT(dpu_sync(set));
        next_centres(centres);
    } while (++steps < 20 && memcmp(before, centres, sizeof centres));
    exchange(set, DPU_XFER_FROM_DPU, of_nearest, found, sizeof found[0]);
    DPU_ASSERT(dpu_sync(set));
    for (i = 0; i < POINTS; i++) wrong += found[i / SHARE][i % SHARE] != i % CENTRES;
    printf("clusters: %u wrong after %u steps on %u DPUs\n", wrong, steps, seen);
    DPU_ASSERT(dpu_free(set));
    return wrong != 0;
}
