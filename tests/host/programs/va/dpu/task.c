/* c = a + b over blocks that the tasklets take in turn. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#include "../common.h"

__host dpu_arguments_t DPU_INPUT_ARGUMENTS;

BARRIER_INIT(start, NR_TASKLETS);

static void add(const int32_t *a, int32_t *b, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) b[i] += a[i];
}

int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&start);

    uint32_t bytes = DPU_INPUT_ARGUMENTS.elements * (uint32_t)sizeof(int32_t);
    uint32_t capacity = DPU_INPUT_ARGUMENTS.capacity;
    uint32_t a_base = (uint32_t)DPU_MRAM_HEAP_POINTER;
    int32_t *a = mem_alloc(BLOCK_BYTES);
    int32_t *b = mem_alloc(BLOCK_BYTES);

    for (uint32_t at = me() * BLOCK_BYTES; at < bytes; at += BLOCK_BYTES * NR_TASKLETS) {
        uint32_t left = bytes - at;
        uint32_t now = left < BLOCK_BYTES ? (left + 7) & ~7u : BLOCK_BYTES;
        mram_read((__mram_ptr void const *)(a_base + at), a, now);
        mram_read((__mram_ptr void const *)(a_base + capacity + at), b, now);
        add(a, b, now / sizeof(int32_t));
        mram_write(b, (__mram_ptr void *)(a_base + capacity + at), now);
    }
    return 0;
}
