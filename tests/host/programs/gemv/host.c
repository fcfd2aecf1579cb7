/* Every rank on its own: transfers, launch and results are asynchronous. */
#include <dpu.h>
#include <string.h>

#include "gemv.h"

#define NR_DPUS 70
#define ROWS 6
#define COLUMNS 100
#define ROUNDS 3

static int32_t a[NR_DPUS][ROWS][COLUMNS], x[ROUNDS][COLUMNS], y[ROUNDS][NR_DPUS][ROWS];

static uint32_t wrong(int round) {
    uint32_t count = 0;
    for (int d = 0; d < NR_DPUS; d++)
        for (int r = 0; r < ROWS; r++) {
            int32_t sum = 0;
            for (int c = 0; c < COLUMNS; c++) sum += a[d][r][c] * x[round][c];
            count += sum != y[round][d][r];
        }
    return count;
}

int main(void) {
    struct dpu_set_t set, rank, dpu;
    struct gemv_arguments arguments = {ROWS, COLUMNS};
    uint32_t nr_ranks, nr_dpus, i, each_dpu = 0, errors = 0;

    for (int d = 0; d < NR_DPUS; d++)
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) a[d][r][c] = d * 7 + r * 3 - c;
    for (int k = 0; k < ROUNDS; k++)
        for (int c = 0; c < COLUMNS; c++) x[k][c] = (c * (k + 2)) % 37 - 18;

    DPU_ASSERT(dpu_alloc(NR_DPUS, "nrThreadsPerRank=1,nrJobsPerRank=4", &set));
    DPU_ASSERT(dpu_get_nr_ranks(set, &nr_ranks));
    DPU_ASSERT(dpu_load(set, "./gemv.dpu", NULL));
    DPU_ASSERT(dpu_broadcast_to(set, "arguments", 0, &arguments, sizeof arguments,
                                DPU_XFER_DEFAULT));
    DPU_RANK_FOREACH(set, rank) {
        DPU_FOREACH(rank, dpu) DPU_ASSERT(dpu_prepare_xfer(dpu, a[each_dpu++]));
        DPU_ASSERT(dpu_push_xfer(rank, DPU_XFER_TO_DPU, "matrix", 0, sizeof a[0], DPU_XFER_ASYNC));
    }
    for (int round = 0; round < ROUNDS; round++) {
        DPU_ASSERT(dpu_broadcast_to(set, "vector", 0, x[round], sizeof x[round], DPU_XFER_ASYNC));
        DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));
        DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, y[round][i]));
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "product", 0, sizeof y[0][0],
                                 DPU_XFER_ASYNC));
    }
    DPU_ASSERT(dpu_sync(set));
    for (int round = 0; round < ROUNDS; round++) errors += wrong(round);
    DPU_ASSERT(dpu_get_nr_dpus(set, &nr_dpus));
    printf("gemv: %u ranks, %u DPUs, %u errors\n", nr_ranks, nr_dpus, errors);
    DPU_ASSERT(dpu_free(set));
    return errors != 0;
}
