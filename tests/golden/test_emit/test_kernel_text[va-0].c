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
    const int32_t i_0 = grid_index.i_0;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_2 = 0; i_2 < 2; i_2++) {
        for (int32_t ax0 = 0; ax0 < 64; ax0++) {
            if (i_0 * 384 + tasklet * 128 + i_2 * 64 + ax0 < 1021) {
                wram->A_wram[ax0] = mram_load_int32(&A[tasklet * 128 + i_2 * 64 + ax0]);
            }
        }
        for (int32_t ax0_1 = 0; ax0_1 < 64; ax0_1++) {
            if (i_0 * 384 + tasklet * 128 + i_2 * 64 + ax0_1 < 1021) {
                wram->B_wram[ax0_1] = mram_load_int32(&B[tasklet * 128 + i_2 * 64 + ax0_1]);
            }
        }
        for (int32_t i_3 = 0; i_3 < 16; i_3++) {
            #pragma unroll
            for (int32_t i_4 = 0; i_4 < 4; i_4++) {
                if (i_0 * 384 + tasklet * 128 + i_2 * 64 + i_3 * 4 + i_4 < 1021) {
                    wram->C_wram[i_3 * 4 + i_4] = wram->A_wram[i_3 * 4 + i_4]
                            + wram->B_wram[i_3 * 4 + i_4];
                }
            }
        }
        for (int32_t ax0_2 = 0; ax0_2 < 64; ax0_2++) {
            if (i_0 * 384 + tasklet * 128 + i_2 * 64 + ax0_2 < 1021) {
                mram_store_own_int32(&C[tasklet * 128 + i_2 * 64 + ax0_2], wram->C_wram[ax0_2]);
            }
        }
    }
    return 0;
}
