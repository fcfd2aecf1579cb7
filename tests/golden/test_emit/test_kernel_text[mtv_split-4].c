/* DPU kernel of A, x -> y
 * One DPU for each i_0 < 16, k_0 < 4; build with -DNR_TASKLETS=11.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdbool.h>
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit float A[66][256]; /* A[66*i_0 + 0..65, 256*k_0 + 0..255] */
__mram_noinit float x[256]; /* x[256*k_0 + 0..255] */
__mram_noinit float y_rf[66]; /* y.rf[k_0, 66*i_0 + 0..65] */

__host struct {
    int32_t i_0;
    int32_t k_0;
} grid_index;

static struct {
    __dma_aligned float y_rf_wram[6];
    __dma_aligned float A_wram[64];
    __dma_aligned float x_wram[64];
} wram_of[NR_TASKLETS];

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_0 = grid_index.i_0;
    const int32_t k_0 = grid_index.k_0;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_2 = 0; i_2 < 3; i_2++) {
        if (i_0 * 33 + tasklet * 3 + i_2 < 500) {
            for (int32_t i_3 = 0; i_3 < 2; i_3++) {
                wram->y_rf_wram[i_2 * 2 + i_3] = 0.0f;
                for (int32_t k_1 = 0; k_1 < 4; k_1++) {
                    mram_read(&A[tasklet * 6 + i_2 * 2 + i_3][k_1 * 64], &wram->A_wram[0], 256);
                    mram_read(&x[k_1 * 64], &wram->x_wram[0], 256);
                    const int32_t k_2_end = min_int32(64, 777 - k_0 * 256 - k_1 * 64);
                    for (int32_t k_2 = 0; k_2 < k_2_end; k_2++) {
                        wram->y_rf_wram[i_2 * 2 + i_3] += wram->A_wram[k_2] * wram->x_wram[k_2];
                    }
                }
            }
        }
    }
    if (i_0 * 66 + tasklet * 6 < 1000) {
        mram_write(&wram->y_rf_wram[0], &y_rf[tasklet * 6], 24);
    }
    return 0;
}
