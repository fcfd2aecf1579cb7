/* Sum of 64-bit numbers: each tasklet its share, then pairs of tasklets by handshakes. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>

#define BLOCK 64

__mram_noinit uint64_t input[1 << 16];
__host uint32_t nr_elements;
__host uint64_t result;
__host uint32_t cycles;

static uint64_t partial[NR_TASKLETS];
BARRIER_INIT(ready, NR_TASKLETS);

static uint64_t share(unsigned int tasklet) {
    __dma_aligned uint64_t block[BLOCK];
    uint64_t sum = 0;
    for (uint32_t at = tasklet * BLOCK; at < nr_elements; at += BLOCK * NR_TASKLETS) {
        mram_read(&input[at], block, sizeof block);
        uint32_t count = nr_elements - at < BLOCK ? nr_elements - at : BLOCK;
        for (uint32_t i = 0; i < count; i++) sum += block[i];
    }
    return sum;
}

int main() {
    unsigned int tasklet = me();
    if (tasklet == 0) {
        mem_reset();
        perfcounter_config(COUNT_CYCLES, true);
    }
    barrier_wait(&ready);
    partial[tasklet] = share(tasklet);

    for (unsigned int step = 1; step < NR_TASKLETS; step *= 2) {
        if (tasklet % (2 * step) != 0) {
            handshake_notify();
            break;
        }
        if (tasklet + step < NR_TASKLETS) {
            handshake_wait_for(tasklet + step);
            partial[tasklet] += partial[tasklet + step];
        }
    }
    if (tasklet == 0) {
        result = partial[0];
        cycles = (uint32_t)perfcounter_get();
    }
    return 0;
}
