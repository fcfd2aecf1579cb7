/* The columns of a DPU are pieces of every row: gathered and scattered by the library. */
#include <dpu.h>

#include "trns.h"

#define NR_DPUS 6
#define COLUMNS (NR_DPUS * COLUMNS_PER_DPU)

static int32_t matrix[ROWS][COLUMNS], result[COLUMNS][ROWS];

static bool piece_of_row(struct sg_block_info *out, uint32_t dpu, uint32_t row, void *args) {
    int32_t(*rows)[COLUMNS] = *(void **)args;
    if (row == ROWS) return false;
    out->addr = (uint8_t *)&rows[row][dpu * COLUMNS_PER_DPU];
    out->length = COLUMNS_PER_DPU * sizeof(int32_t);
    return true;
}

static bool whole_rows(struct sg_block_info *out, uint32_t dpu, uint32_t block, void *args) {
    (void)args;
    if (block == 2) return false; /* two halves, for the sake of it */
    uint32_t half = COLUMNS_PER_DPU / 2;
    out->addr = (uint8_t *)result[dpu * COLUMNS_PER_DPU + block * half];
    out->length = half * sizeof result[0];
    return true;
}

int main(void) {
    struct dpu_set_t set;
    void *rows = matrix;
    get_block_t columns = {.f = piece_of_row, .args = &rows, .args_size = sizeof rows};
    get_block_t transposed = {.f = whole_rows, .args = NULL, .args_size = 0};
    uint32_t wrong = 0, bytes = ROWS * COLUMNS_PER_DPU * sizeof(int32_t);

    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) matrix[r][c] = r * 1000 + c;
    DPU_ASSERT(dpu_alloc(NR_DPUS, "sgXferEnable=true,sgXferMaxBlocksPerDpu=64", &set));
    DPU_ASSERT(dpu_load(set, "trns", NULL));
    DPU_ASSERT(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "before", 0, bytes, &columns,
                                DPU_SG_XFER_ASYNC));
    rows = NULL; /* the library has a copy */
    DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));
    DPU_ASSERT(dpu_push_sg_xfer(set, DPU_XFER_FROM_DPU, "after", 0, bytes, &transposed,
                                DPU_SG_XFER_DEFAULT));
    DPU_ASSERT(dpu_sync(set));
    DPU_ASSERT(dpu_free(set));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) wrong += result[c][r] != matrix[r][c];
    printf("transposition: %u wrong\n", wrong);
    return wrong != 0;
}
