/* Functions of float through double: fmaf exact, expf and logf within 1 unit of the last place. */
#include <stdint.h>

#define BITS_OF(x) ((union { double f; uint64_t u; }){.f = (x)}.u)
#define OF_BITS(x) ((union { double f; uint64_t u; }){.u = (x)}.f)

/* The product of two floats is exact in double. Their sum with the third is rounded to odd (the
 * last bit is set if anything was lost), which makes the second rounding, to float, the only one
 * that counts (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
float fmaf(float x, float y, float z) {
    double product = (double)x * y, addend = z;
    double sum = product + addend;
    uint64_t bits = BITS_OF(sum);
    if ((bits >> 52 & 0x7FF) == 0x7FF) return (float)sum;
    double part = sum - product;
    double lost = (product - (sum - part)) + (addend - part);
    if (lost != 0 && !(bits & 1)) {
        /* towards zero if what is lost has the other sign, else away from it */
        int64_t step = (lost < 0) == (sum < 0) ? 1 : -1;
        sum = OF_BITS(bits + (uint64_t)step);
    }
    return (float)sum;
}

/* e^x = 2^k e^r, |r| <= ln(2) / 2, and a polynomial for e^r that is good to 2^-33. */
float expf(float x) {
    if (x != x) return x;
    if (x > 89.0f) return __builtin_inff();
    if (x < -104.0f) return 0.0f;
    double wide = x;
    int k = (int)(wide * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
    double r = wide - k * 0.6931471805599453;
    double sum = 1.0 / 40320.0;
    static const double factors[] = {1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0,
                                     1.0 / 6.0,    0.5,         1.0,         1.0};
    for (int i = 0; i < 8; i++) sum = sum * r + factors[i];
    return (float)(sum * OF_BITS((uint64_t)(1023 + k) << 52));
}

/* ln(x) = e ln(2) + ln(m), sqrt(1/2) <= m < sqrt(2), and ln(m) = 2 artanh((m - 1) / (m + 1)). */
float logf(float x) {
    if (x == 0) return -__builtin_inff();
    if (!(x > 0)) return __builtin_nanf("");
    if (x == __builtin_inff()) return x;
    uint64_t bits = BITS_OF((double)x); /* normal as a double */
    int exponent = (int)(bits >> 52) - 1023;
    double m = OF_BITS((bits & 0xFFFFFFFFFFFFFull) | 1023ull << 52);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 1.0 / 15.0;
    static const double factors[] = {1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0,
                                     1.0 / 5.0,  1.0 / 3.0,  1.0};
    for (int i = 0; i < 7; i++) sum = sum * square + factors[i];
    return (float)(exponent * 0.6931471805599453 + 2 * s * sum);
}
