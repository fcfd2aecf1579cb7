/* fma of doubles, rounded once: product and addend as 128-bit numbers whose highest bit is bit 125
 * or 126. The smaller one is shifted down; what leaves at the bottom is kept as one sticky bit. The
 * lowest 21 bits begin empty, so that nothing leaves where the difference may cancel. */
#include <stdint.h>

#define BITS_OF(x) ((union { double f; uint64_t u; }){.f = (x)}.u)
#define OF_BITS(x) ((union { double f; uint64_t u; }){.u = (x)}.f)
#define SIGN (1ull << 63)
#define TOP 2047

typedef struct {
    uint64_t high, low;
} wide_t;

static wide_t shifted_down(wide_t x, int n) {
    if (n >= 128) return (wide_t){0, (x.high | x.low) != 0};
    if (n >= 64) {
        uint64_t lost = x.low | (n > 64 ? x.high << (128 - n) : 0);
        return (wide_t){0, x.high >> (n - 64) | (lost != 0)};
    }
    if (n == 0) return x;
    uint64_t lost = x.low << (64 - n);
    return (wide_t){x.high >> n, x.high << (64 - n) | x.low >> n | (lost != 0)};
}

static wide_t shifted_up(wide_t x, int n) {
    if (n >= 64) return (wide_t){x.low << (n - 64), 0};
    if (n == 0) return x;
    return (wide_t){x.high << n | x.low >> (64 - n), x.low << n};
}

static wide_t product(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl, mid = ah * bl + (low >> 32), other = al * bh + (uint32_t)mid;
    return (wide_t){ah * bh + (mid >> 32) + (other >> 32), other << 32 | (uint32_t)low};
}

/* Mantissa with its highest bit at bit 52; the exponent may fall below 1. */
static uint64_t unpacked(uint64_t bits, int *exponent) {
    uint64_t digits = bits & ((1ull << 52) - 1);
    *exponent = (int)(bits >> 52 & TOP);
    if (*exponent) return digits | 1ull << 52;
    int shift = __builtin_clzll(digits) - 11;
    *exponent = 1 - shift;
    return digits << shift;
}

static double packed(uint64_t sign, wide_t x, int exponent) {
    int up = (x.high ? __builtin_clzll(x.high) : 64 + __builtin_clzll(x.low)) - 1;
    x = up < 0 ? shifted_down(x, 1) : shifted_up(x, up);
    exponent -= up;
    if (exponent < 1) {
        x = shifted_down(x, 1 - exponent);
        exponent = 1;
    }
    uint64_t digits = x.high >> 10, rest = (x.high & 1023) << 1 | (x.low != 0);
    digits += rest > 1024 || (rest == 1024 && (digits & 1));
    /* the highest digit adds 1 to the exponent, a carry out of it another 1 */
    uint64_t bits = ((uint64_t)(exponent - 1) << 52) + digits;
    if (bits >> 52 >= TOP) bits = (uint64_t)TOP << 52;
    return OF_BITS(sign | bits);
}

double fma(double x, double y, double z) {
    uint64_t a = BITS_OF(x), b = BITS_OF(y), c = BITS_OF(z);
    int special = (a >> 52 & TOP) == TOP || (b >> 52 & TOP) == TOP;
    if (special || !(a << 1) || !(b << 1)) return x * y + z;
    if ((c >> 52 & TOP) == TOP) return z + z; /* also where the product alone overflows */
    if (!(c << 1)) return x * y;
    int ea, eb, ec;
    uint64_t ma = unpacked(a, &ea), mb = unpacked(b, &eb), mc = unpacked(c, &ec);
    wide_t p = shifted_up(product(ma, mb), 21), q = {mc << 10, 0};
    int ep = ea + eb - 1022;
    uint64_t sign = (a ^ b) & SIGN, difference = (sign ^ c) & SIGN;
    int exponent = ep > ec ? ep : ec;
    p = shifted_down(p, exponent - ep);
    q = shifted_down(q, exponent - ec);
    if (difference) {
        if (p.high < q.high || (p.high == q.high && p.low < q.low)) {
            wide_t t = p;
            p = q;
            q = t;
            sign ^= SIGN;
        }
        p.high -= q.high + (p.low < q.low);
        p.low -= q.low;
        if (!(p.high | p.low)) return 0.0;
    } else {
        p.low += q.low;
        p.high += q.high + (p.low < q.low);
    }
    return packed(sign, p, exponent);
}
