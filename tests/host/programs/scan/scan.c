/* Inclusive scan of 64-bit numbers in two kernels: sums of shares and their scan over the tasklets
 * by a chain of handshakes; then the sum of the DPUs before is added. */
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <stdint.h>

#define BLOCK 32
#define CAPACITY 4096

__host struct {
    uint32_t kernel;
    uint32_t elements; /* a multiple of BLOCK */
    int64_t before;
} arguments;
__host int64_t total;
__mram_noinit int64_t data[CAPACITY];

static int64_t sums[NR_TASKLETS];
static __dma_aligned int64_t blocks[NR_TASKLETS][BLOCK];
BARRIER_INIT(scanned, NR_TASKLETS);

static void share(uint32_t *first, uint32_t *end) {
    uint32_t nr_blocks = arguments.elements / BLOCK;
    *first = nr_blocks * me() / NR_TASKLETS * BLOCK;
    *end = nr_blocks * (me() + 1) / NR_TASKLETS * BLOCK;
}

static int64_t add_up(uint32_t at, int64_t sum, int write) {
    int64_t *block = blocks[me()];
    mram_read(&data[at], block, BLOCK * sizeof(int64_t));
    for (uint32_t i = 0; i < BLOCK; i++) block[i] = sum += block[i];
    if (write) mram_write(block, &data[at], BLOCK * sizeof(int64_t));
    return sum;
}

static int scan_kernel(void) {
    uint32_t first, end;
    int64_t sum = 0;
    share(&first, &end);
    for (uint32_t at = first; at < end; at += BLOCK) sum = add_up(at, sum, 0);
    if (me() != 0) {
        handshake_wait_for(me() - 1);
        sums[me()] = sums[me() - 1] + sum;
    } else {
        sums[0] = sum;
    }
    if (me() != NR_TASKLETS - 1) handshake_notify();
    barrier_wait(&scanned);
    sum = me() ? sums[me() - 1] : 0;
    for (uint32_t at = first; at < end; at += BLOCK) sum = add_up(at, sum, 1);
    if (me() == NR_TASKLETS - 1) total = sum;
    return 0;
}

static int add_kernel(void) {
    uint32_t first, end;
    share(&first, &end);
    for (uint32_t at = first; at < end; at += BLOCK) {
        int64_t *block = blocks[me()];
        mram_read(&data[at], block, BLOCK * sizeof(int64_t));
        for (uint32_t i = 0; i < BLOCK; i++) block[i] += arguments.before;
        mram_write(block, &data[at], BLOCK * sizeof(int64_t));
    }
    return 0;
}

static int (*kernels[])(void) = {scan_kernel, add_kernel};

int main(void) { return kernels[arguments.kernel](); }
