"""Small functions that C lacks, as C text for one type each.

The smaller and larger of two floats are IEEE 754-2019's minimum and maximum, which are NumPy's and
PyTorch's too: NaN if one of them is NaN, and -0 is less than +0. So they give the same in whatever
order a reduction is cut over DPUs and tasklets, where C's `a < b ? a : b` loses a NaN or keeps it,
by the order. On DPUs, which have no floats, comparing the bits is also the faster form.
"""

from __future__ import annotations

from atim.codegen.c_values import c_type

__all__ = ["helper_text"]

# {T} is the C type, {N} the type's name in the function's name
_TEXTS = {
    "min": "static inline {T} min_{N}({T} a, {T} b) {{\n    return a < b ? a : b;\n}}\n",
    "max": "static inline {T} max_{N}({T} a, {T} b) {{\n    return a > b ? a : b;\n}}\n",
    "floordiv": (
        "/* quotient rounded towards minus infinity */\n"
        "static inline {T} floordiv_{N}({T} a, {T} b) {{\n"
        "    return ({T})(a / b - (a % b != 0 && (a < 0) != (b < 0)));\n}}\n"
    ),
    "floormod": (
        "/* remainder with the divisor's sign */\n"
        "static inline {T} floormod_{N}({T} a, {T} b) {{\n"
        "    const {T} rest = ({T})(a % b);\n"
        "    return ({T})(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);\n}}\n"
    ),
    "abs": "static inline {T} abs_{N}({T} a) {{\n    return ({T})(a < 0 ? -a : a);\n}}\n",
}

_OF_FLOATS = """\
/* the {which} of two by their bits, NaN if one of them is NaN; -0 is less than +0 */
static inline {T} {name}_{N}({T} a, {T} b) {{
    uint{W}_t u, v;
    __builtin_memcpy(&u, &a, sizeof u);
    __builtin_memcpy(&v, &b, sizeof v);
    if (u << 1 > {infinity}) {{
        return a;
    }}
    if (v << 1 > {infinity}) {{
        return b;
    }}
    u ^= (uint{W}_t)-(u >> {top}) >> 1;
    v ^= (uint{W}_t)-(v >> {top}) >> 1;
    return (int{W}_t)u {operator} (int{W}_t)v ? a : b;
}}
"""
# type -> bits, and those of infinity without the sign, one place up
_FLOATS = {"float32": (32, "0xff000000u"), "float64": (64, "0xffe0000000000000u")}
_KINDS = {"min": ("smaller", "<"), "max": ("larger", ">")}


def helper_text(name: str, dtype: str) -> str:
    """The function `{name}_{dtype}`: min, max, floordiv, floormod or abs."""
    if dtype not in _FLOATS or name not in _KINDS:
        return _TEXTS[name].format(T=c_type(dtype), N=dtype)
    (which, operator), (bits, infinity) = _KINDS[name], _FLOATS[dtype]
    return _OF_FLOATS.format(
        which=which,
        name=name,
        T=c_type(dtype),
        N=dtype,
        W=bits,
        top=bits - 1,
        infinity=infinity,
        operator=operator,
    )
