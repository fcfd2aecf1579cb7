/* Aligns two sequences by diagonals of blocks. The DPUs are allocated and freed for each pair. */
#include <dpu.h>
#include <string.h>

#include "common.h"

#define SIZE 160
#define BLOCKS (SIZE / BLOCK)
#define MOST ((BLOCKS + NR_DPUS - 1) / NR_DPUS)

static int32_t match[SIZE][SIZE], found[SIZE + 1][SIZE + 1], wanted[SIZE + 1][SIZE + 1];
static struct block blocks[NR_DPUS][MOST];

static void exchange(struct dpu_set_t set, dpu_xfer_t way) {
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, blocks[i]));
    DPU_ASSERT(dpu_push_xfer(set, way, DPU_MRAM_HEAP_POINTER_NAME, 0, sizeof blocks[0],
                             DPU_XFER_DEFAULT));
}

/* Block number `k` of a diagonal: to its DPU's buffer, or back. */
static void move(uint32_t k, uint32_t row, uint32_t column, bool back) {
    struct block *b = &blocks[k % NR_DPUS][k / NR_DPUS];
    for (uint32_t i = back; i <= BLOCK; i++)
        for (uint32_t j = back; j <= BLOCK; j++) {
            int32_t *cell = &found[row * BLOCK + i][column * BLOCK + j];
            if (back) *cell = b->score[i][j];
            else b->score[i][j] = *cell;
        }
    for (uint32_t i = 0; i < BLOCK; i++)
        memcpy(b->match[i], &match[row * BLOCK + i][column * BLOCK], sizeof b->match[i]);
}

static void align(void) {
    struct dpu_set_t set, dpu;
    uint32_t counts[NR_DPUS], d;
    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    for (uint32_t diagonal = 0; diagonal < 2 * BLOCKS - 1; diagonal++) {
        const uint32_t first = diagonal < BLOCKS ? 0 : diagonal - BLOCKS + 1;
        const uint32_t count = diagonal + 1 - 2 * first;
        for (uint32_t k = 0; k < count; k++) move(k, first + k, diagonal - first - k, false);
        DPU_FOREACH(set, dpu, d) {
            counts[d] = d < count ? (count - d + NR_DPUS - 1) / NR_DPUS : 0;
            DPU_ASSERT(dpu_prepare_xfer(dpu, &counts[d]));
        }
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "nr_blocks", 0, sizeof counts[0],
                                 DPU_XFER_DEFAULT));
        exchange(set, DPU_XFER_TO_DPU);
        DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
        exchange(set, DPU_XFER_FROM_DPU);
        for (uint32_t k = 0; k < count; k++) move(k, first + k, diagonal - first - k, true);
    }
    DPU_ASSERT(dpu_free(set));
}

int main(void) {
    int wrong = 0;
    for (int pair = 0; pair < 2; pair++) {
        for (int i = 0; i < SIZE; i++)
            for (int j = 0; j < SIZE; j++) match[i][j] = (i * 7 + j * 13 + pair) % 21 - 10;
        for (int i = 0; i <= SIZE; i++) {
            found[i][0] = found[0][i] = wanted[i][0] = wanted[0][i] = -GAP * i;
        }
        for (int i = 1; i <= SIZE; i++)
            for (int j = 1; j <= SIZE; j++)
                wanted[i][j] = MAX(wanted[i - 1][j - 1] + match[i - 1][j - 1],
                                   MAX(wanted[i][j - 1], wanted[i - 1][j]) - GAP);
        align();
        wrong += memcmp(found, wanted, sizeof found) != 0;
    }
    printf("alignment: %d wrong of 2\n", wrong);
    return wrong;
}
