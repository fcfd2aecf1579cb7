/* DPU kernel of A, x -> y
 * One DPU for each i_dpu < 2; build with -DNR_TASKLETS=2.
 * Arrays hold this DPU's part of a tensor; what lies outside of the tensor is zero.
 */
#include <stdint.h>

#include <defs.h>
#include <mram.h>

__mram_noinit float A[56][256]; /* A[56*i_dpu + 0..55, 0..199] */
__mram_noinit float x[256]; /* x[0..199] */
__mram_noinit float y[56]; /* y[56*i_dpu + 0..55] */

/* this DPU's place in the grid, written by the host */
__host struct {
    int32_t i_dpu;
    int32_t unused; /* sizes are multiples of 8 bytes */
} grid_index;

/* WRAM of each tasklet */
static struct {
    __dma_aligned float y_wram[28]; /* 28 of y */
    __dma_aligned float A_wram[4][64]; /* 4 x 64 of A */
    __dma_aligned float x_wram[64]; /* 64 of x */
} wram_of[NR_TASKLETS];

static inline uint32_t float_bits(float value) {
    const union {
        float value;
        uint32_t bits;
    } both = {value};
    return both.bits;
}

/* Unpacked floats: mantissa * 2^(scale - 155), the mantissa signed and, unless 0, from 2^28 to 2^29
 * with five zeros at its end; the scale may be below that of packed floats. */

/* this can't be unpacked, or the next sum might not be */
static inline int32_t float_is_odd(float value) {
    const uint32_t bits = float_bits(value);
    return (bits >> 23 & 255) - 1 >= 253 && bits << 1 != 0;
}

static inline int32_t float_mantissa(float value) {
    const uint32_t bits = float_bits(value);
    const int32_t size = (int32_t)((bits & 0x7fffff) | 0x800000) << 5;
    return bits << 1 == 0 ? 0 : (int32_t)bits < 0 ? -size : size;
}

static inline int32_t float_scale(float value) {
    return (int32_t)(float_bits(value) >> 23 & 255);
}

/* sums of packed floats that are not packed themselves are exact, so that no bit is lost here */
static inline float float_packed(int32_t mantissa, int32_t scale) {
    uint32_t size = mantissa < 0 ? -(uint32_t)mantissa : (uint32_t)mantissa;
    const uint32_t sign = mantissa < 0 ? 1u << 31 : 0;
    if (size == 0)
        return 0.0f;
    scale += (int32_t)(size >> 29);
    size >>= size >> 29;
    size = scale < 1 ? size >> (6 - scale) : ((uint32_t)(scale - 1) << 23) + (size >> 5);
    const union {
        uint32_t bits;
        float value;
    } both = {sign | size};
    return both.value;
}

static inline int32_t min_int32(int32_t a, int32_t b) {
    return a < b ? a : b;
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

/* copies of the sign bit behind it */
static inline int32_t sign_bits(int32_t value) {
#ifdef __DPU__
    int32_t count;
    __asm__("cls %0, %1" : "=r"(count) : "r"(value));
    return count;
#else
    return __builtin_clrsb(value);
#endif
}

/* Unpacked sum += a * x, product and sum each rounded to nearest even as IEEE 754 wants. Sets *odd
 * where a factor is subnormal, infinite or no number or a result may not be normal. */
static inline __attribute__((always_inline)) void float_mac(
    int32_t *mantissa, int32_t *scale, int32_t *odd, float a, float x) {
    const uint32_t u = float_bits(a), v = float_bits(x);
    const uint32_t u_scale = u >> 23 & 255, v_scale = v >> 23 & 255;
    if (u_scale - 1 >= 254 || v_scale - 1 >= 254) {
        const int zero = (u << 1 == 0 && v_scale != 255) || (v << 1 == 0 && u_scale != 255);
        *odd |= !zero;
        return;
    }
    /* the product's upper 32 of 48 bits, and one bit for the others */
    const uint32_t u2 = u >> 16 | 128, v2 = v >> 16 | 128;
    const uint32_t low = mul_ul_ul(u, v) + ((mul_ul_uh(u, v) + mul_uh_ul(u, v)) << 8);
    const uint32_t middle = mul_ul_ul(u, v2) + mul_uh_uh(u, v) + mul_ul_ul(u2, v);
    const uint32_t high = mul_uh_ul(u, v2) + mul_ul_uh(u2, v);
    uint32_t product = (low >> 16) + middle + (high << 8) + (mul_ul_ul(u2, v2) << 16);
    int32_t at = (int32_t)(u_scale + v_scale) - 127;
    if (low << 16)
        product |= 1;
    if ((int32_t)product < 0) {
        product = product >> 1 | (product & 1);
        at++;
    }
    if ((uint32_t)(at - 1) >= 253) {
        *odd = 1;
        return;
    }
    product = (product + 63 + (product >> 7 & 1)) >> 7 << 5;
    /* the smaller one is shifted to the scale of the larger; a bit that is lost makes it odd */
    int32_t large = (int32_t)(u ^ v) < 0 ? -(int32_t)product : (int32_t)product;
    int32_t small = *mantissa, distance = at - *scale;
    if (distance < 0) {
        const int32_t other = large;
        large = small;
        small = other;
        distance = -distance;
        at = *scale;
    }
    if (distance > 31)
        distance = 31;
    int32_t sum = small >> distance;
    if ((uint32_t)small & ((1u << distance) - 1))
        sum |= 1;
    sum += large;
    if (sum == 0) {
        *mantissa = *scale = 0;
        return;
    }
    const int32_t shift = sign_bits(sum) - 2;
    if (shift < 0) {
        sum = sum >> 1 | (sum & 1);
        if (++at > 253)
            *odd = 1;
    } else {
        sum = (int32_t)((uint32_t)sum << shift);
        at -= shift;
    }
    *mantissa = (sum + 15 + (sum >> 5 & 1)) & ~31;
    *scale = at;
}

int main(void) {
    const int32_t tasklet = (int32_t)me();
    const int32_t i_dpu = grid_index.i_dpu;
    __typeof__(wram_of[0]) *const wram = &wram_of[tasklet];

    for (int32_t i_tile = 0; i_tile < 7; i_tile++) {
        if (i_dpu * 14 + tasklet * 7 + i_tile < 25) {
            float y_sum[4] = {0};
            for (int32_t k_tile = 0; k_tile < 4; k_tile++) {
                int32_t y_mantissa[4];
                int32_t y_scale[4];
                int32_t odd = 0;
                for (int32_t row = 0; row < 4; row++) {
                    mram_read(&A[tasklet * 28 + i_tile * 4 + row][k_tile * 64],
                            &wram->A_wram[row][0], 256);
                }
                mram_read(&x[k_tile * 64], &wram->x_wram[0], 256);
                #pragma unroll
                for (int32_t i = 0; i < 4; i++) {
                    odd |= float_is_odd(y_sum[i]);
                    y_mantissa[i] = float_mantissa(y_sum[i]);
                    y_scale[i] = float_scale(y_sum[i]);
                }
                const int32_t k_step_end = min_int32(4, 13 - k_tile * 4);
                for (int32_t k_step = 0; k_step < k_step_end; k_step++) {
                    #pragma unroll
                    for (int32_t k = 0; k < 16; k++) {
                        #pragma unroll
                        for (int32_t i = 0; i < 4; i++) {
                            float_mac(&y_mantissa[i], &y_scale[i], &odd,
                                    wram->A_wram[i][k_step * 16 + k],
                                    wram->x_wram[k_step * 16 + k]);
                        }
                    }
                }
                if (odd == 0) {
                    #pragma unroll
                    for (int32_t i = 0; i < 4; i++) {
                        y_sum[i] = float_packed(y_mantissa[i], y_scale[i]);
                    }
                } else {
                    const int32_t k_step_end_1 = min_int32(4, 13 - k_tile * 4);
                    for (int32_t k_step = 0; k_step < k_step_end_1; k_step++) {
                        for (int32_t k = 0; k < 16; k++) {
                            #pragma unroll
                            for (int32_t i = 0; i < 4; i++) {
                                y_sum[i] += wram->A_wram[i][k_step * 16 + k]
                                        * wram->x_wram[k_step * 16 + k];
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
