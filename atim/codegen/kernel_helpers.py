"""Small C functions for the inner loops of kernels: text, and what each of them needs.

Everything is written for the SDK's clang and for ours: single instructions as inline assembly with
plain register operands (what the SDK's built_ins.h does with macros), the rest in C. A pair of
registers is "R" for RISC-V and "r" for the SDK. Without __DPU__ the same text is ordinary C.

The instructions are those of the UPMEM user manual; summing up inside of mul_step and multiplying
by byte products are described in "UPMEM Unleashed" (arXiv 2510.15927) and seen in public kernels.
"""

from __future__ import annotations

import re

__all__ = ["FUNCTION_NAMES", "helpers_for", "lane_function", "word_function"]

_MUL_STEP_ADD = """\
/* sum + a * b modulo 2^32 in as many steps as `a` has significant bits; the pair of registers holds
 * `a` (high) and the running sum (low) */
static inline int32_t mul_step_add(int32_t sum, int32_t a, int32_t b) {
#ifdef __DPU__
    uint64_t pair = (uint64_t)(uint32_t)a << 32 | (uint32_t)sum;
#define STEP(n) "mul_step %0, %1, %0, " #n ", z, .Lmul_end%=\\n"
    __asm__(STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
            STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)
            STEP(16) STEP(17) STEP(18) STEP(19) STEP(20) STEP(21) STEP(22) STEP(23)
            STEP(24) STEP(25) STEP(26) STEP(27) STEP(28) STEP(29) STEP(30)
            "mul_step %0, %1, %0, 31\\n.Lmul_end%=:"
#ifdef __riscv
            : "+&R"(pair)
#else
            : "+&r"(pair)
#endif
            : "r"(b));
#undef STEP
    return (int32_t)(uint32_t)pair;
#else
    return (int32_t)((uint32_t)sum + (uint32_t)a * (uint32_t)b);
#endif
}
"""

# {name}: mul_ and, for each operand, s or u (signed) and l or h (byte 0 or byte 1)
_BYTE_PRODUCT = """\
/* {left} byte {i} of a times {right} byte {j} of b */
static inline uint32_t {name}(uint32_t a, uint32_t b) {{
#ifdef __DPU__
    uint32_t product;
    __asm__("{name} %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint32_t)(({cast_left})(a >> {shift_left}) * ({cast_right})(b >> {shift_right}));
#endif
}}
"""

_MUL_BYTES_ADD = """\
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
"""

_WORD = """\
/* 8 bytes of WRAM, whatever their type */
typedef uint64_t __attribute__((may_alias)) word_t;
"""

_ANY_BITS = """\
/* `bits` and all bits of two neighbours */
static inline uint32_t any_bits(uint32_t bits, const int32_t *at) {
    const uint64_t word = *(const word_t *)at;
    return bits | (uint32_t)word | (uint32_t)(word >> 32);
}
"""

_DOT_NARROW = """\
/* sum + a[0] * b[0] + a[1] * b[1], all of them 0 to 255 */
static inline uint32_t dot_narrow(uint32_t sum, const int32_t *a, const int32_t *b) {
    const uint64_t u = *(const word_t *)a, v = *(const word_t *)b;
    sum += mul_ul_ul((uint32_t)u, (uint32_t)v);
    sum += mul_ul_ul((uint32_t)(u >> 32), (uint32_t)(v >> 32));
    return sum;
}
"""

_FORMED = """\
/* no instruction: the sum is to be formed by now, where compilers would keep products for later */
static inline uint32_t formed(uint32_t sum) {
    __asm__ volatile("" : "+r"(sum));
    return sum;
}
"""

_DOT_BYTES = """\
/* sum + the products of 8 neighbours */
static inline int32_t {name}(int32_t sum, const {A}_t *a, const {B}_t *b) {{
    const uint64_t u = *(const word_t *)a, v = *(const word_t *)b;
    uint32_t u0 = (uint32_t)u, v0 = (uint32_t)v, u4 = (uint32_t)(u >> 32), v4 = (uint32_t)(v >> 32);
    uint32_t total = (uint32_t)sum;
    total += {ll};
    total += {hh};
    u0 >>= 16, v0 >>= 16;
    total += {ll};
    total += {hh};
    total += {ll4};
    total += {hh4};
    u4 >>= 16, v4 >>= 16;
    total += {ll4};
    total += {hh4};
    return (int32_t)total;
}}
"""

_DOT_HALVES = """\
/* a * b of 16 bits each, from products of bytes */
static inline uint32_t {name}_one(uint32_t a, uint32_t b) {{
    const uint32_t middle = {hl} + {lh};
    return mul_ul_ul(a, b) + (middle << 8) + ({hh} << 16);
}}

/* sum + the products of 4 neighbours */
static inline int32_t {name}(int32_t sum, const {A}_t *a, const {B}_t *b) {{
    const uint64_t u = *(const word_t *)a, v = *(const word_t *)b;
    const uint32_t u0 = (uint32_t)u, v0 = (uint32_t)v;
    const uint32_t u2 = (uint32_t)(u >> 32), v2 = (uint32_t)(v >> 32);
    uint32_t total = (uint32_t)sum + {name}_one(u0, v0);
    total += {name}_one(u0 >> 16, v0 >> 16);
    total += {name}_one(u2, v2);
    total += {name}_one(u2 >> 16, v2 >> 16);
    return (int32_t)total;
}}
"""

_ADD_WORDS = """\
/* to = a {sign} b for the 8 bytes of neighbours of one word: their uppermost bits are dealt with
 * apart, so that nothing is carried from one to the next */
static inline void {name}({A}_t *to, const {A}_t *a, const {A}_t *b, int32_t word) {{
    const uint64_t u = ((const word_t *)a)[word], v = ((const word_t *)b)[word];
    const uint32_t u0 = (uint32_t)u, u1 = (uint32_t)(u >> 32);
    const uint32_t v0 = (uint32_t)v, v1 = (uint32_t)(v >> 32);
    const uint32_t top = 0x80808080u;
    const uint32_t low = {low};
    const uint32_t high = {high};
    ((word_t *)to)[word] = (uint64_t)high << 32 | low;
}}
"""
_LANE_SUMS = {
    "+": "(({u} & ~top) + ({v} & ~top)) ^ (({u} ^ {v}) & top)",
    "-": "(({u} | top) - ({v} & ~top)) ^ (({u} ^ ~{v}) & top)",
}

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

_TEXTS = {
    "mul_step_add": _MUL_STEP_ADD,
    "mul_bytes_add": _MUL_BYTES_ADD,
    "word_t": _WORD,
    "any_bits": _ANY_BITS,
    "dot_narrow": _DOT_NARROW,
    "formed": _FORMED,
    "float_bits": _FLOAT_BITS,
    "sign_bits": _SIGN_BITS,
    "float_is_odd": _FLOAT_OPEN,
    "float_mac": _FLOAT_MAC,
}
# functions that stand in the text of another
_INSIDE = dict.fromkeys(("float_mantissa", "float_scale", "float_packed"), "float_is_odd")

_TYPES = ("int8", "uint8", "int16", "uint16")
_WORDS = {
    f"dot_{a}_{b}": (a, b) for a in _TYPES for b in _TYPES if a.endswith("8") == b.endswith("8")
}
# 16 bits gain nothing from it
_LANES = {
    f"{word}_{dtype}": (sign, dtype)
    for word, sign in (("add", "+"), ("sub", "-"))
    for dtype in ("int8", "uint8")
}
_USED = re.compile(r"\b(mul_[su][lh]_[su][lh]|word_t|any_bits|float_bits|sign_bits)\b")

FUNCTION_NAMES = frozenset(
    {*_TEXTS, *_INSIDE, *_WORDS, *_LANES, *(f"{name}_one" for name in _WORDS)}
    | {f"mul_{p}_{q}" for p in ("sl", "sh", "ul", "uh") for q in ("sl", "sh", "ul", "uh")}
)
"""What kernels may define; not to be used for anything else."""


def word_function(a: str, b: str) -> str:
    """The name of the function that multiplies 8 bytes of type `a` by 8 bytes of type `b`."""
    name = f"dot_{a}_{b}"
    assert name in _WORDS, name
    return name


def lane_function(word: str, dtype: str) -> str | None:
    """The function that adds ("add") or subtracts ("sub") 8 bytes of this type, if any."""
    name = f"{word}_{dtype}"
    return name if name in _LANES else None


def helpers_for(name: str) -> dict[str, str]:
    """The function and all it needs, name -> text, in an order that C accepts."""
    name = _INSIDE.get(name, name)
    text = _text(name)
    result: dict[str, str] = {}
    for needed in dict.fromkeys(_USED.findall(text)):
        if needed != name and needed not in result:
            result |= helpers_for(needed)
    return result | {name: text}


def _text(name: str) -> str:
    if name in _TEXTS:
        return _TEXTS[name]
    if name in _WORDS:
        return _dot_text(name, *_WORDS[name])
    if name in _LANES:
        sign, dtype = _LANES[name]
        low, high = (_LANE_SUMS[sign].format(u=f"u{i}", v=f"v{i}") for i in (0, 1))
        return _ADD_WORDS.format(name=name, A=dtype, sign=sign, low=low, high=high)
    left, right = name.removeprefix("mul_").split("_")
    return _BYTE_PRODUCT.format(
        name=name,
        left=_SIGNED[left[0]],
        right=_SIGNED[right[0]],
        i=int(left[1] == "h"),
        j=int(right[1] == "h"),
        cast_left=_BYTE_TYPE[left[0]],
        cast_right=_BYTE_TYPE[right[0]],
        shift_left=8 * (left[1] == "h"),
        shift_right=8 * (right[1] == "h"),
    )


_SIGNED = {"s": "signed", "u": "unsigned"}
_BYTE_TYPE = {"s": "int8_t", "u": "uint8_t"}


def _dot_text(name: str, a: str, b: str) -> str:
    signs = ["u" if t[0] == "u" else "s" for t in (a, b)]
    if a.endswith("8"):
        pairs = (("l", "u0", "v0"), ("h", "u0", "v0"), ("l", "u4", "v4"), ("h", "u4", "v4"))
        ll, hh, ll4, hh4 = (
            _product(signs[0] + byte, signs[1] + byte, u, v) for byte, u, v in pairs
        )
        return _DOT_BYTES.format(name=name, A=a, B=b, ll=ll, hh=hh, ll4=ll4, hh4=hh4)
    return _DOT_HALVES.format(
        name=name,
        A=a,
        B=b,
        hl=_product(signs[0] + "h", "ul", "a", "b"),
        lh=_product("ul", signs[1] + "h", "a", "b"),
        hh=_product(signs[0] + "h", signs[1] + "h", "a", "b"),
    )


def _product(left: str, right: str, a: str, b: str) -> str:
    """There is no unsigned times signed: the signed factor comes first."""
    if left[0] == "u" and right[0] == "s":
        left, right, a, b = right, left, b, a
    return f"mul_{left}_{right}({a}, {b})"
