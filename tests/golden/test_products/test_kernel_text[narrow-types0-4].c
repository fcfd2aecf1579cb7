/* DPU kernel of A, x -> y
 * One DPU for each i_0 < 2; build with -DNR_TASKLETS=2.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdbool.h>
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit int32_t A[56][256]; /* A[56*i_0 + 0..55, 0..199] */
__mram_noinit int32_t x[256]; /* x[0..199] */
__mram_noinit int32_t y[56]; /* y[56*i_0 + 0..55] */

__host struct {
    int32_t i_0;
    int32_t unused;
} grid_index;

static struct {
    __dma_aligned int32_t y_wram[28];
    __dma_aligned int32_t A_wram[4][64];
    __dma_aligned int32_t x_wram[64];
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
    const int32_t i_0 = grid_index.i_0;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    uint32_t wide = 0u;
    for (int32_t i_2 = 0; i_2 < 7; i_2++) {
        if (i_0 * 14 + tasklet * 7 + i_2 < 25) {
            int32_t y_sum[4];
            #pragma unroll
            for (int32_t i_3_init = 0; i_3_init < 4; i_3_init++) {
                y_sum[i_3_init] = 0;
            }
            for (int32_t k_0 = 0; k_0 < 4; k_0++) {
                uint32_t y_part[4];
                for (int32_t ax0 = 0; ax0 < 4; ax0++) {
                    mram_read(&A[tasklet * 28 + i_2 * 4 + ax0][k_0 * 64], &wram->A_wram[ax0][0],
                            256);
                }
                mram_read(&x[k_0 * 64], &wram->x_wram[0], 256);
                #pragma unroll
                for (int32_t i_3 = 0; i_3 < 4; i_3++) {
                    y_part[i_3] = 0u;
                }
                if (wide <= 255u) {
                    const int32_t k_1_end = min_int32(4, 13 - k_0 * 4);
                    for (int32_t k_1 = 0; k_1 < k_1_end; k_1++) {
                        #pragma unroll
                        for (int32_t k_2 = 0; k_2 < 8; k_2++) {
                            wide = any_bits(wide, &wram->x_wram[k_1 * 16 + k_2 * 2]);
                            #pragma unroll
                            for (int32_t i_3_1 = 0; i_3_1 < 4; i_3_1++) {
                                wide = any_bits(wide, &wram->A_wram[i_3_1][k_1 * 16 + k_2 * 2]);
                                y_part[i_3_1]
                                        = dot_narrow(y_part[i_3_1],
                                        &wram->A_wram[i_3_1][k_1 * 16 + k_2 * 2],
                                        &wram->x_wram[k_1 * 16 + k_2 * 2]);
                            }
                        }
                    }
                    #pragma unroll
                    for (int32_t i_3_2 = 0; i_3_2 < 4; i_3_2++) {
                        y_part[i_3_2] = formed(y_part[i_3_2]);
                    }
                }
                if (wide <= 255u) {
                    #pragma unroll
                    for (int32_t i_3_3 = 0; i_3_3 < 4; i_3_3++) {
                        y_sum[i_3_3] += (int32_t)y_part[i_3_3];
                    }
                } else {
                    const int32_t k_1_end_1 = min_int32(4, 13 - k_0 * 4);
                    for (int32_t k_1 = 0; k_1 < k_1_end_1; k_1++) {
                        for (int32_t k_2_1 = 0; k_2_1 < 16; k_2_1++) {
                            #pragma unroll
                            for (int32_t i_3_1 = 0; i_3_1 < 4; i_3_1++) {
                                y_sum[i_3_1]
                                        = mul_bytes_add(y_sum[i_3_1],
                                        wram->A_wram[i_3_1][k_1 * 16 + k_2_1],
                                        wram->x_wram[k_1 * 16 + k_2_1]);
                            }
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
