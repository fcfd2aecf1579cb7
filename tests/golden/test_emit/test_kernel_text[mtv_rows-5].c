/* DPU kernel of A, x -> y
 * One DPU for each i_dpu < 16; build with -DNR_TASKLETS=12.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit int32_t A[96][832]; /* A[96*i_dpu + 0..95, 0..776] */
__mram_noinit int32_t x[832]; /* x[0..776] */
__mram_noinit int32_t y[96]; /* y[96*i_dpu + 0..95] */

/* this DPU's place in the grid, written by the host */
__host struct {
    int32_t i_dpu;
    int32_t unused; /* sizes are multiples of 8 bytes */
} grid_index;

/* WRAM of each tasklet */
static struct {
    __dma_aligned int32_t y_wram[8]; /* 8 of y */
    __dma_aligned int32_t A_wram[4][64]; /* 4 x 64 of A */
    __dma_aligned int32_t x_wram[64]; /* 64 of x */
} wram_of[NR_TASKLETS];

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_dpu = grid_index.i_dpu;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    if (i_dpu * 12 + tasklet < 125) {
        for (int32_t i_tile = 0; i_tile < 2; i_tile++) {
            int32_t y_sum[4] = {0};
            for (int32_t k_tile = 0; k_tile < 13; k_tile++) {
                for (int32_t row = 0; row < 4; row++) {
                    mram_read(&A[tasklet * 8 + i_tile * 4 + row][k_tile * 64],
                            &wram->A_wram[row][0], 256);
                }
                mram_read(&x[k_tile * 64], &wram->x_wram[0], 256);
                const int32_t k_end = min_int32(64, 777 - k_tile * 64);
                for (int32_t k = 0; k < k_end; k++) {
                    #pragma unroll
                    for (int32_t i = 0; i < 4; i++) {
                        y_sum[i] += wram->A_wram[i][k] * wram->x_wram[k];
                    }
                }
            }
            #pragma unroll
            for (int32_t item = 0; item < 4; item++) {
                wram->y_wram[i_tile * 4 + item] = y_sum[item];
            }
        }
        mram_write(&wram->y_wram[0], &y[tasklet * 8], 32);
    }
    return 0;
}
