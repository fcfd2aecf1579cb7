/* DPU kernel of A, B -> C
 * One DPU for each i_0 < 4; build with -DNR_TASKLETS=3.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdbool.h>
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit int32_t A[384]; /* A[384*i_0 + 0..383] */
__mram_noinit int32_t B[384]; /* B[384*i_0 + 0..383] */
__mram_noinit int32_t C[384]; /* C[384*i_0 + 0..383] */

__host struct {
    int32_t i_0;
    int32_t unused;
} grid_index;

static struct {
    __dma_aligned int32_t A_wram[64];
    __dma_aligned int32_t B_wram[64];
    __dma_aligned int32_t C_wram[64];
} wram_of[NR_TASKLETS];

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_0 = grid_index.i_0;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_2 = 0; i_2 < 2; i_2++) {
        mram_read(&A[tasklet * 128 + i_2 * 64], &wram->A_wram[0], 256);
        mram_read(&B[tasklet * 128 + i_2 * 64], &wram->B_wram[0], 256);
        const int32_t i_3_end = min_int32(16, 256 - i_0 * 96 - tasklet * 32 - i_2 * 16);
        for (int32_t i_3 = 0; i_3 < i_3_end; i_3++) {
            #pragma unroll
            for (int32_t i_4 = 0; i_4 < 4; i_4++) {
                wram->C_wram[i_3 * 4 + i_4] = wram->A_wram[i_3 * 4 + i_4]
                        + wram->B_wram[i_3 * 4 + i_4];
            }
        }
        if (i_0 * 384 + tasklet * 128 + i_2 * 64 < 1021) {
            mram_write(&wram->C_wram[0], &C[tasklet * 128 + i_2 * 64], 256);
        }
    }
    return 0;
}
