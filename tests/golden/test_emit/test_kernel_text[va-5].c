/* DPU kernel of A, B -> C
 * One DPU for each i_dpu < 4; build with -DNR_TASKLETS=3.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit int32_t A[384]; /* A[384*i_dpu + 0..383] */
__mram_noinit int32_t B[384]; /* B[384*i_dpu + 0..383] */
__mram_noinit int32_t C[384]; /* C[384*i_dpu + 0..383] */

/* this DPU's place in the grid, written by the host */
__host struct {
    int32_t i_dpu;
    int32_t unused; /* sizes are multiples of 8 bytes */
} grid_index;

/* WRAM of each tasklet */
static struct {
    __dma_aligned int32_t A_wram[64]; /* 64 of A */
    __dma_aligned int32_t B_wram[64]; /* 64 of B */
    __dma_aligned int32_t C_wram[64]; /* 64 of C */
} wram_of[NR_TASKLETS];

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_dpu = grid_index.i_dpu;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_tile = 0; i_tile < 2; i_tile++) {
        mram_read(&A[tasklet * 128 + i_tile * 64], &wram->A_wram[0], 256);
        mram_read(&B[tasklet * 128 + i_tile * 64], &wram->B_wram[0], 256);
        const int32_t i_step_end = min_int32(16, 256 - i_dpu * 96 - tasklet * 32 - i_tile * 16);
        for (int32_t i_step = 0; i_step < i_step_end; i_step++) {
            #pragma unroll
            for (int32_t i = 0; i < 4; i++) {
                wram->C_wram[i_step * 4 + i] = wram->A_wram[i_step * 4 + i]
                        + wram->B_wram[i_step * 4 + i];
            }
        }
        if (i_dpu * 384 + tasklet * 128 + i_tile * 64 < 1021) {
            mram_write(&wram->C_wram[0], &C[tasklet * 128 + i_tile * 64], 256);
        }
    }
    return 0;
}
