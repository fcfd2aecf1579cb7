"""Small C functions for the inner loops of kernels: text, and what each of them needs.

Everything is written for the SDK's clang and for ours: single instructions as inline assembly with
plain register operands (what the SDK's built_ins.h does with macros), the rest in C. A pair of
registers is "R" for RISC-V and "r" for the SDK. Without __DPU__ the same text is ordinary C.

The instructions are those of the UPMEM user manual; summing up inside of mul_step and multiplying
by byte products are described in "UPMEM Unleashed" (arXiv 2510.15927) and seen in public kernels.
"""

from __future__ import annotations

import re

from atim.codegen.float_products import FLOAT_INSIDE, FLOAT_TEXTS

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

_ADD_BYTES = """\
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
_ADD_HALVES = """\
/* to = a {sign} b for the 4 neighbours of one word: the upper of each two is computed where nothing
 * is carried from the lower, which is then stored over what stands in its place */
static inline void {name}({A}_t *to, const {A}_t *a, const {A}_t *b, int32_t word) {{
    const uint64_t u = ((const word_t *)a)[word], v = ((const word_t *)b)[word];
    const uint32_t u0 = (uint32_t)u, u1 = (uint32_t)(u >> 32);
    const uint32_t v0 = (uint32_t)v, v1 = (uint32_t)(v >> 32);
    const uint32_t top = 0xffff0000u;
    const uint32_t low = {low};
    const uint32_t high = {high};
    ((word_t *)to)[word] = (uint64_t)high << 32 | low;
    to[4 * word] = ({A}_t)(u0 {sign} v0);
    to[4 * word + 2] = ({A}_t)(u1 {sign} v1);
}}
"""
# by size of the elements: the function, and one register of two
_ADD_LANES = {
    8: (
        _ADD_BYTES,
        {
            "+": "(({u} & ~top) + ({v} & ~top)) ^ (({u} ^ {v}) & top)",
            "-": "(({u} | top) - ({v} & ~top)) ^ (({u} ^ ~{v}) & top)",
        },
    ),
    16: (_ADD_HALVES, {"+": "({u} & top) + {v}", "-": "({u} | ~top) - {v}"}),
}

_TEXTS = {
    "mul_step_add": _MUL_STEP_ADD,
    "mul_bytes_add": _MUL_BYTES_ADD,
    "word_t": _WORD,
    "any_bits": _ANY_BITS,
    "dot_narrow": _DOT_NARROW,
    "formed": _FORMED,
    **FLOAT_TEXTS,
}

_TYPES = ("int8", "uint8", "int16", "uint16")
_WORDS = {
    f"dot_{a}_{b}": (a, b) for a in _TYPES for b in _TYPES if a.endswith("8") == b.endswith("8")
}
_LANES = {
    f"{word}_{dtype}": (sign, dtype)
    for word, sign in (("add", "+"), ("sub", "-"))
    for dtype in _TYPES
}
_USED = re.compile(r"\b(mul_[su][lh]_[su][lh]|word_t|any_bits|float_bits|sign_bits)\b")

FUNCTION_NAMES = frozenset(
    {*_TEXTS, *FLOAT_INSIDE, *_WORDS, *_LANES, *(f"{name}_one" for name in _WORDS)}
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
    name = FLOAT_INSIDE.get(name, name)
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
        template, sums = _ADD_LANES[16 if dtype.endswith("16") else 8]
        low, high = (sums[sign].format(u=f"u{i}", v=f"v{i}") for i in (0, 1))
        return template.format(name=name, A=dtype, sign=sign, low=low, high=high)
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
