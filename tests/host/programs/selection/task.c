/* Keeps the numbers that are not multiples of 3, in order; tasklets pass on where to write. */
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mram_unaligned.h>
#include <stdint.h>
#include <stdio.h>

#include "selection.h"

__mram_noinit int64_t input[CAPACITY];
__mram_noinit int64_t output[CAPACITY];
__host uint32_t nr_input, nr_output;

static uint32_t places[NR_TASKLETS + 1];
BARRIER_INIT(round_over, NR_TASKLETS);

static uint32_t keep(int64_t *block, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (block[i] % 3 != 0) block[kept++] = block[i];
    return kept;
}

int main(void) {
    __dma_aligned int64_t block[BLOCK];
    if (me() == 0) places[0] = 0;
    for (uint32_t round = 0; round < nr_input; round += BLOCK * NR_TASKLETS) {
        uint32_t at = round + me() * BLOCK, kept = 0;
        if (at < nr_input) {
            mram_read(&input[at], block, sizeof block);
            kept = keep(block, nr_input - at < BLOCK ? nr_input - at : BLOCK);
        }
        if (me() != 0) handshake_wait_for(me() - 1);
        uint32_t place = places[me()];
        places[me() + 1] = place + kept;
        if (me() != NR_TASKLETS - 1) handshake_notify();
        if (kept) mram_write(block, &output[place], kept * sizeof(int64_t));
        barrier_wait(&round_over);
        if (me() == 0) places[0] = places[NR_TASKLETS];
        barrier_wait(&round_over);
    }
    if (me() == 0) {
        nr_output = places[0];
        printf("kept %u of %u\n", nr_output, nr_input);
    }
    return 0;
}
