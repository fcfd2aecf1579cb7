/* y = A x, each tasklet a run of rows, read in sequence. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <seqread.h>

#include "common.h"

BARRIER_INIT(ready, NR_TASKLETS);

static float element(uint32_t vector, uint32_t index, float *pair, uint32_t *held) {
    if (index / 2 != *held) {
        *held = index / 2;
        mram_read((__mram_ptr void const *)(vector + index / 2 * 8), pair, 8);
    }
    return pair[index % 2];
}

int main() {
    if (me() == 0) mem_reset();
    barrier_wait(&ready);
    struct parameters *p = mem_alloc(ROUND_UP_8(sizeof *p));
    mram_read(DPU_MRAM_HEAP_POINTER, p, ROUND_UP_8(sizeof *p));
    const uint32_t share = (p->rows / NR_TASKLETS + 2) / 2 * 2;
    const uint32_t row = me() * share;
    if (row >= p->rows) return 0;
    const uint32_t count = p->rows - row < share ? p->rows - row : share;

    seqreader_t starts, nonzeros;
    uint32_t *start = seqread_init(seqread_alloc(), (__mram_ptr void *)(p->starts + row * 4), &starts);
    uint32_t at = *start;
    struct nonzero *entry = seqread_init(
        seqread_alloc(), (__mram_ptr void *)(p->nonzeros + (at - p->first) * sizeof *entry), &nonzeros);
    float *pair = mem_alloc(8), *sums = mem_alloc(8);
    uint32_t held = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        start = seqread_get(start, sizeof *start, &starts);
        float sum = 0;
        for (; at < *start; at++) {
            sum += entry->value * element(p->in, entry->column, pair, &held);
            entry = seqread_get(entry, sizeof *entry, &nonzeros);
        }
        sums[i % 2] = sum;
        if (i % 2 || i + 1 == count)
            mram_write(sums, (__mram_ptr void *)(p->out + (row + i) / 2 * 8), 8);
    }
    return 0;
}
