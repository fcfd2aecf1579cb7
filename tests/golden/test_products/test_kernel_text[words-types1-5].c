/* DPU kernel of A, x -> y
 * One DPU for each i_dpu < 2; build with -DNR_TASKLETS=2.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit uint8_t A[56][256]; /* A[56*i_dpu + 0..55, 0..199] */
__mram_noinit int8_t x[256]; /* x[0..199] */
__mram_noinit int32_t y[56]; /* y[56*i_dpu + 0..55] */

/* this DPU's place in the grid, written by the host */
__host struct {
    int32_t i_dpu;
    int32_t unused; /* sizes are multiples of 8 bytes */
} grid_index;

/* WRAM of each tasklet */
static struct {
    __dma_aligned int32_t y_wram[28]; /* 28 of y */
    __dma_aligned uint8_t A_wram[4][64]; /* 4 x 64 of A */
    __dma_aligned int8_t x_wram[64]; /* 64 of x */
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
    const int32_t i_dpu = grid_index.i_dpu;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_tile = 0; i_tile < 7; i_tile++) {
        if (i_dpu * 14 + tasklet * 7 + i_tile < 25) {
            int32_t y_sum[4] = {0};
            for (int32_t k_tile = 0; k_tile < 4; k_tile++) {
                for (int32_t row = 0; row < 4; row++) {
                    mram_read(&A[tasklet * 28 + i_tile * 4 + row][k_tile * 64],
                            &wram->A_wram[row][0], 64);
                }
                mram_read(&x[k_tile * 64], &wram->x_wram[0], 64);
                const int32_t k_step_end = min_int32(4, 13 - k_tile * 4);
                for (int32_t k_step = 0; k_step < k_step_end; k_step++) {
                    #pragma unroll
                    for (int32_t k = 0; k < 2; k++) {
                        #pragma unroll
                        for (int32_t i = 0; i < 4; i++) {
                            y_sum[i] = dot_uint8_int8(y_sum[i],
                                    &wram->A_wram[i][k_step * 16 + k * 8],
                                    &wram->x_wram[k_step * 16 + k * 8]);
                        }
                    }
                }
            }
            #pragma unroll
            for (int32_t item = 0; item < 4; item++) {
                wram->y_wram[i_tile * 4 + item] = y_sum[item];
            }
        }
    }
    mram_write(&wram->y_wram[0], &y[tasklet * 28], 112);
    return 0;
}
