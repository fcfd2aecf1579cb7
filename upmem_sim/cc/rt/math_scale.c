/* Exact operations on exponents: ldexp and its like, the remainder fmod, integer powers. */
#include <stdint.h>

#define BITS_OF(type, word, x) ((union { type f; word u; }){.f = (x)}.u)
#define OF_BITS(type, word, x) ((union { type f; word u; }){.u = (x)}.f)

/* x times 2^n, rounded to nearest even where the result is subnormal. */
#define SCALE(name, type, word, mantissa, top)                                       \
    type name(type x, int n) {                                                       \
        word bits = BITS_OF(type, word, x);                                          \
        word sign = bits & (word)1 << (8 * sizeof(word) - 1);                        \
        word digits = bits & (((word)1 << mantissa) - 1);                            \
        int exponent = (int)((bits ^ sign) >> mantissa);                             \
        if (exponent == top || (bits ^ sign) == 0) return x;                         \
        if (exponent != 0)                                                           \
            digits |= (word)1 << mantissa;                                           \
        else                                                                         \
            for (exponent = 1; !(digits >> mantissa); exponent--) digits <<= 1;      \
        if (n > 4 * top) n = 4 * top;                                                \
        if (n < -4 * top) n = -4 * top;                                              \
        exponent += n;                                                               \
        if (exponent >= top) return OF_BITS(type, word, sign | (word)top << mantissa); \
        if (exponent > 0)                                                            \
            return OF_BITS(type, word, sign | ((digits ^ (word)1 << mantissa) |      \
                                               (word)exponent << mantissa));         \
        int lost = 1 - exponent;                                                     \
        if (lost > mantissa + 1) return OF_BITS(type, word, sign);                   \
        word kept = digits >> lost, rest = digits << (8 * sizeof(word) - lost);      \
        word half = (word)1 << (8 * sizeof(word) - 1);                               \
        kept += rest > half || (rest == half && (kept & 1));                         \
        return OF_BITS(type, word, sign | kept);                                     \
    }

SCALE(ldexpf, float, uint32_t, 23, 255)
SCALE(ldexp, double, uint64_t, 52, 2047)
float scalbnf(float x, int n) { return ldexpf(x, n); }
double scalbn(double x, int n) { return ldexp(x, n); }

/* Remainder of a division that is cut towards zero; exact, one bit of the quotient at a time. */
#define REMAINDER(name, type, word, mantissa, top)                                    \
    type name(type x, type y) {                                                       \
        word half = (word)1 << (8 * sizeof(word) - 1), hidden = (word)1 << mantissa;  \
        word a = BITS_OF(type, word, x), b = BITS_OF(type, word, y) & ~half;          \
        word sign = a & half, infinity = (word)top << mantissa;                       \
        a ^= sign;                                                                    \
        if (a >= infinity || b > infinity || b == 0) return (x * y) / (x * y);        \
        if (a < b) return x;                                                          \
        int ea = (int)(a >> mantissa), eb = (int)(b >> mantissa);                     \
        a = (a & (hidden - 1)) | (ea ? hidden : 0);                                     \
        b = (b & (hidden - 1)) | (eb ? hidden : 0);                                     \
        for (ea += !ea; !(a & hidden); ea--) a <<= 1;                                 \
        for (eb += !eb; !(b & hidden); eb--) b <<= 1;                                 \
        for (; ea > eb; ea--) {                                                       \
            if (a >= b) a -= b;                                                       \
            a <<= 1;                                                                  \
        }                                                                             \
        if (a >= b) a -= b;                                                           \
        if (a == 0) return OF_BITS(type, word, sign);                                 \
        for (; !(a & hidden); ea--) a <<= 1;                                          \
        a = ea > 0 ? (a ^ hidden) | (word)ea << mantissa : a >> (1 - ea);             \
        return OF_BITS(type, word, sign | a);                                         \
    }

REMAINDER(fmodf, float, uint32_t, 23, 255)
REMAINDER(fmod, double, uint64_t, 52, 2047)

/* x^n by squaring, as compilers' run-time libraries do it: the same roundings in the same order. */
#define POWER(name, type)                                    \
    type name(type x, int n) {                               \
        unsigned left = n < 0 ? 0u - (unsigned)n : (unsigned)n; \
        type result = left & 1 ? x : 1;                      \
        while (left >>= 1) {                                 \
            x *= x;                                          \
            if (left & 1) result *= x;                       \
        }                                                    \
        return n < 0 ? 1 / result : result;                  \
    }

POWER(__powisf2, float)
POWER(__powidf2, double)
