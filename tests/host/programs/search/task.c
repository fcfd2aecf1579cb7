/* Binary search: halves in MRAM until a block of keys is left, which is read into WRAM. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdio.h>

#include "common.h"

__host dpu_arguments_t DPU_INPUT_ARGUMENTS;
__host dpu_results_t DPU_RESULTS[NR_TASKLETS];

BARRIER_INIT(my_barrier, NR_TASKLETS);

int main_kernel1(void);
int (*kernels[nr_kernels])(void) = {main_kernel1};

int main(void) {
    return kernels[DPU_INPUT_ARGUMENTS.kernel]();
}

static key position_of(key wanted, key *block, uint32_t keys, uint64_t size) {
    uint64_t left = 0, right = size;
    const uint64_t in_block = BLOCK_SIZE / sizeof(key);
    while (right - left > in_block) {
        const uint64_t middle = (left + right) / 2 / in_block * in_block;
        const uint64_t at = middle > left ? middle : left + in_block;
        mram_read((__mram_ptr void const *)(keys + (uint32_t)at * sizeof(key)), block, 8);
        if (block[0] <= wanted) {
            left = at;
        } else {
            right = at;
        }
    }
    mram_read((__mram_ptr void const *)(keys + (uint32_t)left * sizeof(key)), block, BLOCK_SIZE);
    for (uint64_t i = 0; i < in_block && left + i < right; i++) {
        if (block[i] == wanted) {
            return (key)(left + i);
        }
    }
    return -1;
}

int main_kernel1(void) {
    const unsigned int tasklet_id = me();
    if (tasklet_id == 0) {
        mem_reset();
        perfcounter_config(COUNT_CYCLES, true);
    }
    barrier_wait(&my_barrier);
    const uint64_t size = DPU_INPUT_ARGUMENTS.input_size;
    const uint32_t queries_per_tasklet = (uint32_t)DPU_INPUT_ARGUMENTS.slice_per_dpu / NR_TASKLETS;
    const uint32_t keys = (uint32_t)DPU_MRAM_HEAP_POINTER;
    const uint32_t queries = keys + (uint32_t)size * sizeof(key)
                             + tasklet_id * queries_per_tasklet * sizeof(key);
    key *block = (key *)mem_alloc(BLOCK_SIZE);
    key *query = (key *)mem_alloc(8);
    DPU_RESULTS[tasklet_id].found = -1;
    for (uint32_t i = 0; i < queries_per_tasklet; i++) {
        mram_read((__mram_ptr void const *)(queries + i * sizeof(key)), query, sizeof(key));
        const key place = position_of(*query, block, keys, size);
        if (place > DPU_RESULTS[tasklet_id].found) {
            DPU_RESULTS[tasklet_id].found = place;
        }
    }
    barrier_wait(&my_barrier);
    if (tasklet_id == 0 && perfcounter_get() == 0) {
        printf("no cycles counted\n");
    }
    return 0;
}
