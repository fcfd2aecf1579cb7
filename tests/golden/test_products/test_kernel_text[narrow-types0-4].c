/* DPU kernel of A, x -> y
 * One DPU for each i_dpu < 2; build with -DNR_TASKLETS=2.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit int32_t A[56][256]; /* A[56*i_dpu + 0..55, 0..199] */
__mram_noinit int32_t x[256]; /* x[0..199] */
__mram_noinit int32_t y[56]; /* y[56*i_dpu + 0..55] */

/* this DPU's place in the grid, written by the host */
__host struct {
    int32_t i_dpu;
    int32_t unused; /* sizes are multiples of 8 bytes */
} grid_index;

/* WRAM of each tasklet */
static struct {
    __dma_aligned int32_t y_wram[28]; /* 28 of y */
    __dma_aligned int32_t A_wram[4][64]; /* 4 x 64 of A */
    __dma_aligned int32_t x_wram[64]; /* 64 of x */
} wram_of[NR_TASKLETS];

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

/* 8 bytes of WRAM, whatever their type */
typedef uint64_t __attribute__((may_alias)) word_t;

/* `bits` and all bits of two neighbours */
static inline uint32_t any_bits(uint32_t bits, const int32_t *at) {
    const uint64_t word = *(const word_t *)at;
    return bits | (uint32_t)word | (uint32_t)(word >> 32);
}

/* unsigned byte 0 of a times unsigned byte 0 of b */
static inline uint32_t mul_ul_ul(uint32_t a, uint32_t b) {
#ifdef __DPU__
    uint32_t product;
    __asm__("mul_ul_ul %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint32_t)((uint8_t)(a >> 0) * (uint8_t)(b >> 0));
#endif
}

/* sum + a[0] * b[0] + a[1] * b[1], all of them 0 to 255 */
static inline uint32_t dot_narrow(uint32_t sum, const int32_t *a, const int32_t *b) {
    const uint64_t u = *(const word_t *)a, v = *(const word_t *)b;
    sum += mul_ul_ul((uint32_t)u, (uint32_t)v);
    sum += mul_ul_ul((uint32_t)(u >> 32), (uint32_t)(v >> 32));
    return sum;
}

/* no instruction: the sum is to be formed by now, where compilers would keep products for later */
static inline uint32_t formed(uint32_t sum) {
    __asm__ volatile("" : "+r"(sum));
    return sum;
}

/* unsigned byte 0 of a times unsigned byte 1 of b */
static inline uint32_t mul_ul_uh(uint32_t a, uint32_t b) {
#ifdef __DPU__
    uint32_t product;
    __asm__("mul_ul_uh %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint32_t)((uint8_t)(a >> 0) * (uint8_t)(b >> 8));
#endif
}

/* unsigned byte 1 of a times unsigned byte 0 of b */
static inline uint32_t mul_uh_ul(uint32_t a, uint32_t b) {
#ifdef __DPU__
    uint32_t product;
    __asm__("mul_uh_ul %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint32_t)((uint8_t)(a >> 8) * (uint8_t)(b >> 0));
#endif
}

/* unsigned byte 1 of a times unsigned byte 1 of b */
static inline uint32_t mul_uh_uh(uint32_t a, uint32_t b) {
#ifdef __DPU__
    uint32_t product;
    __asm__("mul_uh_uh %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint32_t)((uint8_t)(a >> 8) * (uint8_t)(b >> 8));
#endif
}

/* sum + a * b modulo 2^32, whatever the values: the ten products of bytes that count */
static inline int32_t mul_bytes_add(int32_t sum, int32_t a, int32_t b) {
    const uint32_t u = (uint32_t)a, v = (uint32_t)b, u2 = u >> 16, v2 = v >> 16;
    uint32_t of8 = mul_ul_uh(u, v) + mul_uh_ul(u, v);
    uint32_t of16 = mul_ul_ul(u, v2) + mul_uh_uh(u, v) + mul_ul_ul(u2, v);
    uint32_t of24 = mul_ul_uh(u, v2) + mul_uh_ul(u, v2) + mul_ul_uh(u2, v) + mul_uh_ul(u2, v);
    uint32_t total = (uint32_t)sum + mul_ul_ul(u, v);
    total += of8 << 8;
    total += of16 << 16;
    total += of24 << 24;
    return (int32_t)total;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_dpu = grid_index.i_dpu;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    uint32_t wide = 0u;
    for (int32_t i_tile = 0; i_tile < 7; i_tile++) {
        if (i_dpu * 14 + tasklet * 7 + i_tile < 25) {
            int32_t y_sum[4] = {0};
            for (int32_t k_tile = 0; k_tile < 4; k_tile++) {
                uint32_t y_part[4] = {0};
                for (int32_t row = 0; row < 4; row++) {
                    mram_read(&A[tasklet * 28 + i_tile * 4 + row][k_tile * 64],
                            &wram->A_wram[row][0], 256);
                }
                mram_read(&x[k_tile * 64], &wram->x_wram[0], 256);
                if (wide <= 255u) {
                    const int32_t k_step_end = min_int32(4, 13 - k_tile * 4);
                    for (int32_t k_step = 0; k_step < k_step_end; k_step++) {
                        #pragma unroll
                        for (int32_t k = 0; k < 8; k++) {
                            wide = any_bits(wide, &wram->x_wram[k_step * 16 + k * 2]);
                            #pragma unroll
                            for (int32_t i = 0; i < 4; i++) {
                                wide = any_bits(wide, &wram->A_wram[i][k_step * 16 + k * 2]);
                                y_part[i] = dot_narrow(y_part[i],
                                        &wram->A_wram[i][k_step * 16 + k * 2],
                                        &wram->x_wram[k_step * 16 + k * 2]);
                            }
                        }
                    }
                    #pragma unroll
                    for (int32_t i = 0; i < 4; i++) {
                        y_part[i] = formed(y_part[i]);
                    }
                }
                if (wide <= 255u) {
                    #pragma unroll
                    for (int32_t i = 0; i < 4; i++) {
                        y_sum[i] += (int32_t)y_part[i];
                    }
                } else {
                    const int32_t k_step_end = min_int32(4, 13 - k_tile * 4);
                    for (int32_t k_step = 0; k_step < k_step_end; k_step++) {
                        for (int32_t k = 0; k < 16; k++) {
                            #pragma unroll
                            for (int32_t i = 0; i < 4; i++) {
                                y_sum[i] = mul_bytes_add(y_sum[i], wram->A_wram[i][k_step * 16 + k],
                                        wram->x_wram[k_step * 16 + k]);
                            }
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
