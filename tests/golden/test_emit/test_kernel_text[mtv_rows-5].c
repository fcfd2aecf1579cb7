/* DPU kernel of A, x -> y
 * One DPU for each i_0 < 16; build with -DNR_TASKLETS=12.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdbool.h>
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit int32_t A[96][832]; /* A[96*i_0 + 0..95, 0..776] */
__mram_noinit int32_t x[832]; /* x[0..776] */
__mram_noinit int32_t y[96]; /* y[96*i_0 + 0..95] */

__host struct {
    int32_t i_0;
    int32_t unused;
} grid_index;

static struct {
    __dma_aligned int32_t y_wram[8];
    __dma_aligned int32_t A_wram[4][64];
    __dma_aligned int32_t x_wram[64];
} wram_of[NR_TASKLETS];

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_0 = grid_index.i_0;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    if (i_0 * 12 + tasklet < 125) {
        for (int32_t i_2 = 0; i_2 < 2; i_2++) {
            int32_t y_sum[4];
            #pragma unroll
            for (int32_t i_3_init = 0; i_3_init < 4; i_3_init++) {
                y_sum[i_3_init] = 0;
            }
            for (int32_t k_0 = 0; k_0 < 13; k_0++) {
                for (int32_t ax0 = 0; ax0 < 4; ax0++) {
                    mram_read(&A[tasklet * 8 + i_2 * 4 + ax0][k_0 * 64], &wram->A_wram[ax0][0],
                            256);
                }
                mram_read(&x[k_0 * 64], &wram->x_wram[0], 256);
                const int32_t k_1_end = min_int32(64, 777 - k_0 * 64);
                for (int32_t k_1 = 0; k_1 < k_1_end; k_1++) {
                    #pragma unroll
                    for (int32_t i_3 = 0; i_3 < 4; i_3++) {
                        y_sum[i_3] += wram->A_wram[i_3][k_1] * wram->x_wram[k_1];
                    }
                }
            }
            #pragma unroll
            for (int32_t ax0_1 = 0; ax0_1 < 4; ax0_1++) {
                wram->y_wram[i_2 * 4 + ax0_1] = y_sum[ax0_1];
            }
        }
        mram_write(&wram->y_wram[0], &y[tasklet * 8], 32);
    }
    return 0;
}
