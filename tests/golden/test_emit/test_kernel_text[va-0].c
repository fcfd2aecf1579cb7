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

/* one element of MRAM, through the 8 bytes that hold it */
static inline int32_t mram_load_int32(const __mram_ptr int32_t *from) {
    __dma_aligned int32_t word[2];
    const uintptr_t address = (uintptr_t)from;
    mram_read((const __mram_ptr void *)(address & ~(uintptr_t)7), word, 8);
    return word[(address & 7) / sizeof(int32_t)];
}

/* one element of MRAM; no other tasklet stores to the 8 bytes that hold it */
static inline void mram_store_own_int32(__mram_ptr int32_t *to, int32_t value) {
    __dma_aligned int32_t word[2];
    const uintptr_t address = (uintptr_t)to & ~(uintptr_t)7;
    mram_read((const __mram_ptr void *)address, word, 8);
    word[((uintptr_t)to & 7) / sizeof(int32_t)] = value;
    mram_write(word, (__mram_ptr void *)address, 8);
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_dpu = grid_index.i_dpu;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_tile = 0; i_tile < 2; i_tile++) {
        for (int32_t item = 0; item < 64; item++) {
            if (i_dpu * 384 + tasklet * 128 + i_tile * 64 + item < 1021) {
                wram->A_wram[item] = mram_load_int32(&A[tasklet * 128 + i_tile * 64 + item]);
            }
        }
        for (int32_t item = 0; item < 64; item++) {
            if (i_dpu * 384 + tasklet * 128 + i_tile * 64 + item < 1021) {
                wram->B_wram[item] = mram_load_int32(&B[tasklet * 128 + i_tile * 64 + item]);
            }
        }
        for (int32_t i_step = 0; i_step < 16; i_step++) {
            #pragma unroll
            for (int32_t i = 0; i < 4; i++) {
                if (i_dpu * 384 + tasklet * 128 + i_tile * 64 + i_step * 4 + i < 1021) {
                    wram->C_wram[i_step * 4 + i] = wram->A_wram[i_step * 4 + i]
                            + wram->B_wram[i_step * 4 + i];
                }
            }
        }
        for (int32_t item = 0; item < 64; item++) {
            if (i_dpu * 384 + tasklet * 128 + i_tile * 64 + item < 1021) {
                mram_store_own_int32(&C[tasklet * 128 + i_tile * 64 + item], wram->C_wram[item]);
            }
        }
    }
    return 0;
}
