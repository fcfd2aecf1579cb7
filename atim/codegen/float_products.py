"""C text for sums of float32 products whose mantissa and exponent stay in two registers.

Product and sum are each rounded to nearest even, as IEEE 754 asks; what isn't normal is reported,
so that the caller does it again with the compiler's operators.
"""

from __future__ import annotations

__all__ = ["FLOAT_INSIDE", "FLOAT_TEXTS"]

_FLOAT_BITS = """\
static inline uint32_t float_bits(float value) {
    const union {
        float value;
        uint32_t bits;
    } both = {value};
    return both.bits;
}
"""

_FLOAT_OPEN = """\
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
"""

_SIGN_BITS = """\
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
"""

_FLOAT_MAC = """\
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
"""

FLOAT_TEXTS = {
    "float_bits": _FLOAT_BITS,
    "sign_bits": _SIGN_BITS,
    "float_is_odd": _FLOAT_OPEN,
    "float_mac": _FLOAT_MAC,
}
# functions that stand in the text of another
FLOAT_INSIDE = dict.fromkeys(("float_mantissa", "float_scale", "float_packed"), "float_is_odd")
