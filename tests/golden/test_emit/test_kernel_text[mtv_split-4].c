/* DPU kernel of A, x -> y
 * One DPU for each i_dpu < 16, k_dpu < 4; build with -DNR_TASKLETS=11.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit float A[66][256]; /* A[66*i_dpu + 0..65, 256*k_dpu + 0..255] */
__mram_noinit float x[256]; /* x[256*k_dpu + 0..255] */
__mram_noinit float y_partial[66]; /* y_partial[k_dpu, 66*i_dpu + 0..65] */

/* this DPU's place in the grid, written by the host */
__host struct {
    int32_t i_dpu;
    int32_t k_dpu;
} grid_index;

/* WRAM of each tasklet */
static struct {
    __dma_aligned float y_partial_wram[6]; /* 6 of y_partial */
    __dma_aligned float A_wram[64]; /* 64 of A */
    __dma_aligned float x_wram[64]; /* 64 of x */
} wram_of[NR_TASKLETS];

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_dpu = grid_index.i_dpu;
    const int32_t k_dpu = grid_index.k_dpu;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_tile = 0; i_tile < 3; i_tile++) {
        if (i_dpu * 33 + tasklet * 3 + i_tile < 500) {
            for (int32_t i = 0; i < 2; i++) {
                wram->y_partial_wram[i_tile * 2 + i] = 0.0f;
                for (int32_t k_tile = 0; k_tile < 4; k_tile++) {
                    mram_read(&A[tasklet * 6 + i_tile * 2 + i][k_tile * 64], &wram->A_wram[0], 256);
                    mram_read(&x[k_tile * 64], &wram->x_wram[0], 256);
                    const int32_t k_end = min_int32(64, 777 - k_dpu * 256 - k_tile * 64);
                    for (int32_t k = 0; k < k_end; k++) {
                        wram->y_partial_wram[i_tile * 2 + i] += wram->A_wram[k] * wram->x_wram[k];
                    }
                }
            }
        }
    }
    if (i_dpu * 66 + tasklet * 6 < 1000) {
        mram_write(&wram->y_partial_wram[0], &y_partial[tasklet * 6], 24);
    }
    return 0;
}
