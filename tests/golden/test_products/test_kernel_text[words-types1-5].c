/* DPU kernel of A, x -> y
 * One DPU for each i_0 < 2; build with -DNR_TASKLETS=2.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdbool.h>
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit uint8_t A[56][256]; /* A[56*i_0 + 0..55, 0..199] */
__mram_noinit int8_t x[256]; /* x[0..199] */
__mram_noinit int32_t y[56]; /* y[56*i_0 + 0..55] */

__host struct {
    int32_t i_0;
    int32_t unused;
} grid_index;

static struct {
    __dma_aligned int32_t y_wram[28];
    __dma_aligned uint8_t A_wram[4][64];
    __dma_aligned int8_t x_wram[64];
} wram_of[NR_TASKLETS];

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

/* 8 bytes of WRAM, whatever their type */
typedef uint64_t __attribute__((may_alias)) word_t;

/* signed byte 0 of a times unsigned byte 0 of b */
static inline uint32_t mul_sl_ul(uint32_t a, uint32_t b) {
#ifdef __DPU__
    uint32_t product;
    __asm__("mul_sl_ul %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint32_t)((int8_t)(a >> 0) * (uint8_t)(b >> 0));
#endif
}

/* signed byte 1 of a times unsigned byte 1 of b */
static inline uint32_t mul_sh_uh(uint32_t a, uint32_t b) {
#ifdef __DPU__
    uint32_t product;
    __asm__("mul_sh_uh %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint32_t)((int8_t)(a >> 8) * (uint8_t)(b >> 8));
#endif
}

/* sum + the products of 8 neighbours */
static inline int32_t dot_uint8_int8(int32_t sum, const uint8_t *a, const int8_t *b) {
    const uint64_t u = *(const word_t *)a, v = *(const word_t *)b;
    uint32_t u0 = (uint32_t)u, v0 = (uint32_t)v, u4 = (uint32_t)(u >> 32), v4 = (uint32_t)(v >> 32);
    uint32_t total = (uint32_t)sum;
    total += mul_sl_ul(v0, u0);
    total += mul_sh_uh(v0, u0);
    u0 >>= 16, v0 >>= 16;
    total += mul_sl_ul(v0, u0);
    total += mul_sh_uh(v0, u0);
    total += mul_sl_ul(v4, u4);
    total += mul_sh_uh(v4, u4);
    u4 >>= 16, v4 >>= 16;
    total += mul_sl_ul(v4, u4);
    total += mul_sh_uh(v4, u4);
    return (int32_t)total;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_0 = grid_index.i_0;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_2 = 0; i_2 < 7; i_2++) {
        if (i_0 * 14 + tasklet * 7 + i_2 < 25) {
            int32_t y_sum[4];
            #pragma unroll
            for (int32_t i_3_init = 0; i_3_init < 4; i_3_init++) {
                y_sum[i_3_init] = 0;
            }
            for (int32_t k_0 = 0; k_0 < 4; k_0++) {
                for (int32_t ax0 = 0; ax0 < 4; ax0++) {
                    mram_read(&A[tasklet * 28 + i_2 * 4 + ax0][k_0 * 64], &wram->A_wram[ax0][0],
                            64);
                }
                mram_read(&x[k_0 * 64], &wram->x_wram[0], 64);
                const int32_t k_1_end = min_int32(4, 13 - k_0 * 4);
                for (int32_t k_1 = 0; k_1 < k_1_end; k_1++) {
                    #pragma unroll
                    for (int32_t k_2 = 0; k_2 < 2; k_2++) {
                        #pragma unroll
                        for (int32_t i_3 = 0; i_3 < 4; i_3++) {
                            y_sum[i_3]
                                    = dot_uint8_int8(y_sum[i_3],
                                    &wram->A_wram[i_3][k_1 * 16 + k_2 * 8],
                                    &wram->x_wram[k_1 * 16 + k_2 * 8]);
                        }
                    }
                }
            }
            #pragma unroll
            for (int32_t ax0_1 = 0; ax0_1 < 4; ax0_1++) {
                wram->y_wram[i_2 * 4 + ax0_1] = y_sum[ax0_1];
            }
        }
    }
    mram_write(&wram->y_wram[0], &y[tasklet * 28], 112);
    return 0;
}
