/* Rounding to integers, on the bits: floor, ceil, trunc, round (half away from zero), rint and
 * nearbyint (half to even), for float and double. NaN, infinities and integers come back as they
 * are, and zero keeps its sign. */
#include <stdint.h>

#define BITS_OF(type, word, x) ((union { type f; word u; }){.f = (x)}.u)
#define OF_BITS(type, word, x) ((union { type f; word u; }){.u = (x)}.f)

/* `add` is what is added to the magnitude, in its last place, before the fraction is cut off;
 * `one` says whether a magnitude below 1 becomes 1. */
#define ROUNDING(name, type, word, mantissa, bias, add, one)                            \
    type name(type x) {                                                                 \
        word bits = BITS_OF(type, word, x);                                             \
        word sign = bits & (word)1 << (8 * sizeof(word) - 1);                           \
        word size = bits ^ sign;                                                        \
        int exponent = (int)(size >> mantissa) - bias;                                  \
        if (exponent >= mantissa) return x;                                             \
        if (exponent < 0) {                                                             \
            word unit = (word)bias << mantissa, half = (word)(bias - 1) << mantissa;    \
            (void)half;                                                                 \
            return OF_BITS(type, word, (one) ? sign | unit : sign);                     \
        }                                                                               \
        word mask = (((word)1 << mantissa) - 1) >> exponent;                            \
        word last = mask + 1;                                                           \
        (void)last;                                                                     \
        size += (add);                                                                  \
        return OF_BITS(type, word, sign | (size & ~mask));                              \
    }

#define BOTH(name, add, one)                              \
    ROUNDING(name##f, float, uint32_t, 23, 127, add, one) \
    ROUNDING(name, double, uint64_t, 52, 1023, add, one)

BOTH(trunc, 0, 0)
BOTH(floor, sign ? mask : 0, sign != 0 && size != 0)
BOTH(ceil, sign ? 0 : mask, sign == 0 && size != 0)
BOTH(round, last >> 1, size >= half)
BOTH(rint, (last >> 1) - 1 + ((size & last) != 0 || exponent == 0), size > half)

float nearbyintf(float x) { return rintf(x); }
double nearbyint(double x) { return rint(x); }
