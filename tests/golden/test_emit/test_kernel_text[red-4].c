/* DPU kernel of A -> y
 * One DPU for each k_dpu < 64; build with -DNR_TASKLETS=16.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdint.h>

#include <defs.h>
#include <mram.h>
#include <barrier.h>

__mram_noinit int64_t A[16384]; /* A[16384*k_dpu + 0..16383] */
__mram_noinit int64_t y_partial[1]; /* y_partial[k_dpu, 0] */

/* this DPU's place in the grid, written by the host */
__host struct {
    int32_t k_dpu;
    int32_t unused; /* sizes are multiples of 8 bytes */
} grid_index;

/* WRAM of each tasklet */
static struct {
    __dma_aligned int64_t y_partial_wram[1]; /* 1 of y_partial */
    __dma_aligned int64_t y_partial_wram_1[1]; /* 1 of y_partial */
    __dma_aligned int64_t A_wram[128]; /* 128 of A */
} wram_of[NR_TASKLETS];

static __dma_aligned int64_t y_partial_shared[16]; /* 16 of y_partial, shared by the tasklets */

BARRIER_INIT(all_tasklets, NR_TASKLETS);

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t k_dpu = grid_index.k_dpu;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    wram->y_partial_wram_1[0] = 0LL;
    for (int32_t k_tile = 0; k_tile < 8; k_tile++) {
        mram_read(&A[tasklet * 1024 + k_tile * 128], &wram->A_wram[0], 1024);
        const int32_t k_end = min_int32(128,
                1000003 - k_dpu * 16384 - tasklet * 1024 - k_tile * 128);
        for (int32_t k = 0; k < k_end; k++) {
            wram->y_partial_wram_1[0] += wram->A_wram[k];
        }
    }
    y_partial_shared[tasklet] = wram->y_partial_wram_1[0];
    barrier_wait(&all_tasklets);
    if (tasklet == 0) {
        wram->y_partial_wram[0] = 0LL;
        for (int32_t item = 0; item < 16; item++) {
            wram->y_partial_wram[0] += y_partial_shared[item];
        }
        mram_write(&wram->y_partial_wram[0], &y_partial[0], 8);
    }
    return 0;
}
