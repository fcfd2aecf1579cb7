/* DPU kernel of A -> y
 * One DPU for each k_0_k_1_fused_0 < 64; build with -DNR_TASKLETS=16.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdbool.h>
#include <stdint.h>

#include <defs.h>
#include <mram.h>
#include <barrier.h>

__mram_noinit int64_t A[16384]; /* A[16384*k_0_k_1_fused_0 + 0..16383] */
__mram_noinit int64_t y_rf[1]; /* y.rf[k_0_k_1_fused_0, 0] */

__host struct {
    int32_t k_0_k_1_fused_0;
    int32_t unused;
} grid_index;

static struct {
    __dma_aligned int64_t y_rf_wram[1];
    __dma_aligned int64_t y_rf_wram_1[1];
    __dma_aligned int64_t A_wram[128];
} wram_of[NR_TASKLETS];

static __dma_aligned int64_t y_rf_shared[16]; /* shared by the tasklets */

BARRIER_INIT(all_tasklets, NR_TASKLETS);

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t k_0_k_1_fused_0 = grid_index.k_0_k_1_fused_0;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    wram->y_rf_wram_1[0] = 0LL;
    for (int32_t k_2 = 0; k_2 < 8; k_2++) {
        mram_read(&A[tasklet * 1024 + k_2 * 128], &wram->A_wram[0], 1024);
        const int32_t k_3_end = min_int32(128, 1000003 - k_0_k_1_fused_0 * 16384 - tasklet * 1024
                - k_2 * 128);
        for (int32_t k_3 = 0; k_3 < k_3_end; k_3++) {
            wram->y_rf_wram_1[0] += wram->A_wram[k_3];
        }
    }
    y_rf_shared[tasklet] = wram->y_rf_wram_1[0];
    barrier_wait(&all_tasklets);
    if (tasklet == 0) {
        wram->y_rf_wram[0] = 0LL;
        for (int32_t ax0 = 0; ax0 < 16; ax0++) {
            wram->y_rf_wram[0] += y_rf_shared[ax0];
        }
        mram_write(&wram->y_rf_wram[0], &y_rf[0], 8);
    }
    return 0;
}
