"""Functions of float32 for kernels, as C: exp, log, sqrt and what follows from them.

Each stands alone in the emitted kernel, for the UPMEM SDK has no libm. Errors are at most 2 units
of the last place (erf 3, sigmoid of 0.5), those of sqrt and of rounding 0; NaN,
infinities and the ends of the range are as in NumPy. Methods: argument reduction to a short
interval (Cody and Waite, Software Manual for the Elementary Functions, 1980) and the power series
there; -log(1 - erf) by a polynomial fitted with least squares.
"""

from __future__ import annotations

__all__ = ["MATH", "NEEDS"]

BITS = """\
/* a float and its bits */
static inline uint32_t bits_of(float a) {
    uint32_t bits;
    __builtin_memcpy(&bits, &a, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float a;
    __builtin_memcpy(&a, &bits, sizeof a);
    return a;
}
"""

EXP = """\
/* e to the power of a = n log 2 + r */
static __attribute__((noinline)) float exp_float32(float a) {
    if (!(a < 88.8f)) {
        return a != a ? a : float_of(0x7f800000u);
    }
    if (a < -104.0f) {
        return 0.0f;
    }
    const int32_t n = (int32_t)(a * 1.44269504f + (a < 0.0f ? -0.5f : 0.5f));
    const float r = (a - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
    float sum = 1.98412698e-4f;
    sum = sum * r + 1.38888889e-3f;
    sum = sum * r + 8.33333333e-3f;
    sum = sum * r + 4.16666667e-2f;
    sum = sum * r + 1.66666667e-1f;
    sum = sum * r + 0.5f;
    sum = sum * r * r + r + 1.0f;
    /* two steps, for 2 to the power of n alone may be out of range */
    const int32_t half = n / 2;
    sum *= float_of((uint32_t)(half + 127) << 23);
    return sum * float_of((uint32_t)(n - half + 127) << 23);
}
"""

LOG = """\
/* log of a = 2^n m, m from sqrt(1/2) to sqrt(2), by the series of artanh */
static __attribute__((noinline)) float log_float32(float a) {
    if (!(a > 0.0f)) {
        return a == 0.0f ? -float_of(0x7f800000u) : float_of(0x7fc00000u);
    }
    uint32_t bits = bits_of(a);
    if (bits >= 0x7f800000u) {
        return a;
    }
    int32_t n = 0;
    if (bits < 0x00800000u) {
        bits = bits_of(a * 8388608.0f);
        n = -23;
    }
    const int32_t up = (int32_t)(bits - 0x3f3504f3u) >> 23;
    n += up;
    const float m = float_of(bits - ((uint32_t)up << 23)) - 1.0f;
    const float s = m / (m + 2.0f);
    const float z = s * s;
    float sum = 0.222222222f;
    sum = sum * z + 0.285714286f;
    sum = sum * z + 0.4f;
    sum = sum * z + 0.666666667f;
    /* log(1 + m) = m - m m / 2 + s (m m / 2 + z sum) */
    const float square = 0.5f * m * m;
    const float low = s * (square + z * sum) + (float)n * -2.12194440e-4f;
    return (low - square) + m + (float)n * 0.693359375f;
}
"""

SQRT = """\
/* square root, rounded to nearest: digit by digit on the bits */
static __attribute__((noinline)) float sqrt_float32(float a) {
    if (!(a > 0.0f) || a == float_of(0x7f800000u)) {
        return a < 0.0f ? float_of(0x7fc00000u) : a;
    }
    uint32_t bits = bits_of(a);
    int32_t exponent = -127;
    if (bits < 0x00800000u) {
        bits = bits_of(a * 16777216.0f);
        exponent -= 24;
    }
    exponent += (int32_t)(bits >> 23);
    uint32_t rest = (bits & 0x007fffffu) | 0x00800000u;
    if (exponent & 1) {
        rest <<= 1;
    }
    rest <<= 1;
    uint32_t root = 0, twice = 0;
    for (uint32_t digit = 0x01000000u; digit != 0; digit >>= 1) {
        const uint32_t tried = twice + digit;
        if (tried <= rest) {
            twice = tried + digit;
            rest -= tried;
            root += digit;
        }
        rest <<= 1;
    }
    root += root & 1;
    return float_of((root >> 1) + ((uint32_t)((exponent >> 1) + 126) << 23));
}
"""

RSQRT = """\
static inline float rsqrt_float32(float a) {
    return 1.0f / sqrt_float32(a);
}
"""

SIGMOID = """\
static inline float sigmoid_float32(float a) {
    return 1.0f / (1.0f + exp_float32(-a));
}
"""

TANH = """\
/* the power series around 0, else by e to the power of 2 a */
static __attribute__((noinline)) float tanh_float32(float a) {
    const float size = __builtin_fabsf(a);
    if (!(size >= 0.5f)) {
        const float z = a * a;
        float sum = -1.45583438e-3f;
        sum = sum * z + 3.59212803e-3f;
        sum = sum * z - 8.86323553e-3f;
        sum = sum * z + 2.18694885e-2f;
        sum = sum * z - 5.39682540e-2f;
        sum = sum * z + 1.33333333e-1f;
        sum = sum * z - 3.33333333e-1f;
        return a + a * z * sum;
    }
    const float result = size > 9.1f ? 1.0f : 1.0f - 2.0f / (exp_float32(size + size) + 1.0f);
    return a < 0.0f ? -result : result;
}
"""

ERF = """\
/* the power series around 0, else 1 - exp(-p) with a fitted polynomial p */
static __attribute__((noinline)) float erf_float32(float a) {
    const float size = __builtin_fabsf(a);
    if (!(size >= 1.0f)) {
        const float z = a * a;
        float sum = 1.48075e-8f;
        sum = sum * z - 1.63658447e-7f;
        sum = sum * z + 1.64621144e-6f;
        sum = sum * z - 1.49256504e-5f;
        sum = sum * z + 1.20553329e-4f;
        sum = sum * z - 8.54832702e-4f;
        sum = sum * z + 5.22397762e-3f;
        sum = sum * z - 2.68661706e-2f;
        sum = sum * z + 1.12837917e-1f;
        sum = sum * z - 3.76126389e-1f;
        sum = sum * z + 1.12837917f;
        return a * sum;
    }
    float result = 1.0f;
    if (size < 4.0f) {
        float p = -1.86555306e-4f;
        p = p * size + 2.94898241e-3f;
        p = p * size - 2.18415420e-2f;
        p = p * size + 1.03111781e-1f;
        p = p * size + 6.38142109e-1f;
        p = p * size + 1.12708914f;
        p = p * size + 3.41900188e-4f;
        result = 1.0f - exp_float32(-p);
    }
    return a < 0.0f ? -result : result;
}
"""

ROUND = """\
/* towards zero; larger numbers have no fraction */
static inline float trunc_float32(float a) {
    const float whole = __builtin_fabsf(a) < 8388608.0f ? (float)(int32_t)a : a;
    return __builtin_copysignf(whole, a);
}
"""

FLOOR = """\
static inline float floor_float32(float a) {
    const float whole = trunc_float32(a);
    return whole > a ? whole - 1.0f : whole;
}
"""

CEIL = """\
static inline float ceil_float32(float a) {
    return -floor_float32(-a);
}
"""

MATH = {
    "trunc": ROUND,
    "floor": FLOOR,
    "ceil": CEIL,
    "bits": BITS,
    "exp": EXP,
    "log": LOG,
    "sqrt": SQRT,
    "rsqrt": RSQRT,
    "sigmoid": SIGMOID,
    "tanh": TANH,
    "erf": ERF,
}
# what must stand before each in the text
NEEDS: dict[str, tuple[str, ...]] = {
    "trunc": (),
    "floor": ("trunc",),
    "ceil": ("trunc", "floor"),
    "bits": (),
    "exp": ("bits",),
    "log": ("bits",),
    "sqrt": ("bits",),
    "rsqrt": ("bits", "sqrt"),
    "sigmoid": ("bits", "exp"),
    "tanh": ("bits", "exp"),
    "erf": ("bits", "exp"),
}
