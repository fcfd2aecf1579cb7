/* Blocks of a diagonal of Needleman and Wunsch's table, one tasklet a block. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>

#include "common.h"

__host uint32_t nr_blocks;
BARRIER_INIT(ready, NR_TASKLETS);

int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&ready);
    struct block *b = mem_alloc(sizeof *b);
    for (uint32_t at = me(); at < nr_blocks; at += NR_TASKLETS) {
        __mram_ptr struct block *place = (__mram_ptr struct block *)DPU_MRAM_HEAP_POINTER + at;
        mram_read(place->score, b->score, sizeof b->score);
        mram_read(place->match, b->match, sizeof b->match);
        for (int i = 1; i <= BLOCK; i++)
            for (int j = 1; j <= BLOCK; j++) {
                const int32_t across = b->score[i - 1][j - 1] + b->match[i - 1][j - 1];
                const int32_t gap = MAX(b->score[i][j - 1], b->score[i - 1][j]) - GAP;
                b->score[i][j] = MAX(across, gap);
            }
        mram_write(b->score, place->score, sizeof b->score);
    }
    return 0;
}
