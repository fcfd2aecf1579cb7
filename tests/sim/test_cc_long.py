"""`long` has 8 bytes on a DPU and 4 on RV32: never silently narrowed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from upmem_sim.cc import compile_c
from upmem_sim.cc.c_long import needs_preprocessing, rewrite
from upmem_sim.cc.clang import INCLUDE_DIR
from upmem_sim.dpu import Dpu
from upmem_sim.errors import CompileError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("long x;", "long long x;"),
        ("long long x;", "long long x;"),
        ("unsigned long int x;", "unsigned long long int x;"),
        ("long const unsigned x;", "long long const unsigned x;"),
        ("int long static long x;", "int long static long x;"),
        ("long __attribute__((aligned(8))) int x;",
         "long long __attribute__((aligned(8))) int x;"),
        ("long double x = 1.5L;", " double x = 1.5;"),
        ("double const long x;", "double const  x;"),
        ("f((long)1, sizeof(long), (unsigned long)2)",
         "f((long long)1, sizeof(long long), (unsigned long long)2)"),
        ("long (*p)(long, long *);", "long long (*p)(long long, long long *);"),
        ("1L + 2UL + 3lu + 4LL + 5ull + 0xFL + 6u", "1LL + 2ULL + 3LLu + 4LL + 5ull + 0xFLL + 6u"),
        ("1e5L + 0x1p3L + 1.f + .5L", "1e5 + 0x1p3 + 1.f + .5"),
        ("\"long\" 'l' L\"x\" \"a\\\"long\"", "\"long\" 'l' L\"x\" \"a\\\"long\""),
        ("longer along long_ x.longest", "longer along long_ x.longest"),
        ("__builtin_clzl(x) + __builtin_ctzll(y) + __builtin_popcountl(z)",
         "__builtin_clzll(x) + __builtin_ctzll(y) + __builtin_popcountll(z)"),
        ("/* long */ int x; // long", "/* long */ int x; // long"),
        ('# 1 "long.c"\nint x;', '# 1 "long.c"\nint x;'),
    ],
)  # fmt: skip
def test_tokens_are_rewritten(text: str, expected: str) -> None:
    assert rewrite(text) == expected


@pytest.mark.parametrize(
    "text",
    ["long x;", "int x = 1L;", "x = 10UL;", "lo##ng", "#include <other.h>", '#include "mram.h"',
     "lo\\\nng x;", "__builtin_clzl(x)", "__builtin_expect(x, 1)", "%:include <x.h>",
     "#include NAME"],
)  # fmt: skip
def test_suspicious_text_is_preprocessed(text: str) -> None:
    assert needs_preprocessing(text, ())


def test_plain_text_is_not_preprocessed() -> None:
    text = "#include <stdint.h>\n# include <mram.h>\nint along = 0x1L0 + 1; char *s = LABEL;"
    assert not needs_preprocessing(text.replace("0x1L0", "10"), (("LABEL", '"x"'), ("N", None)))
    assert needs_preprocessing("T x;", (("T", "unsigned long"),))


def test_our_headers_never_depend_on_the_size_of_long() -> None:
    for path in INCLUDE_DIR.glob("*.h"):
        text = path.read_text().replace("long long", "")
        code = re.sub(r"/\*.*?\*/|\"[^\"]*\"", "", text, flags=re.DOTALL)
        assert not re.search(r"\blong\b", code), path.name


PROGRAM = """
#include <stdint.h>
#include <limits.h>
#include <defs.h>
typedef unsigned long word;
struct s { char c; long l; };
__host long out[24];
__attribute__((noinline)) long mix(long a, int b, word c) { return a * 3 + b - (long)c; }
__attribute__((noinline)) long variadic(int n, ...) {
    __builtin_va_list v; __builtin_va_start(v, n); long s = __builtin_va_arg(v, long);
    s += __builtin_va_arg(v, int); __builtin_va_end(v); return s;
}
#define WIDE(x) x##L
int main() {
    volatile long big = 1L << 40; volatile int one = 1;
    out[0] = sizeof(long); out[1] = sizeof(long int unsigned); out[2] = sizeof(1L);
    out[3] = big + 1; out[4] = mix(big, one, 5UL); out[5] = (long)one << 33;
    out[6] = sizeof(struct s); out[7] = LONG_MAX == INT64_MAX; out[8] = sizeof(long double);
    out[9] = __builtin_clzl(1UL); out[10] = __builtin_popcountl(-1L); out[11] = variadic(2, big, 7);
    out[12] = WIDE(5000000000); out[13] = (word)-1 >> 60; out[14] = sizeof(word[3]);
    out[15] = __builtin_expect(big, 0) == big; out[16] = 0xFFFFFFFFFL; out[17] = -1 < 1UL;
    if (__builtin_expect(big, 1)) out[18] = 9; out[19] = __SIZEOF_LONG__; out[20] = sizeof(long *);
#if LONG_MAX > 0x7fffffff
    out[21] = 1;
#endif
    long double x = 1.25L; out[22] = (long)(x * 4); out[23] = __builtin_labs(-big);
    return 0;
}
"""


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_long_has_eight_bytes_everywhere(opt: str) -> None:
    dpu = Dpu(compile_c(PROGRAM, opt=opt, stack_bytes=2048))
    dpu.run()
    big = 1 << 40
    expected = [8, 8, 8, big + 1, big * 3 + 1 - 5, 1 << 33, 16, 1, 8, 63, 64, big + 7,
                5000000000, 15, 24, 1, 0xFFFFFFFFF, 0, 9, 8, 4, 1, 5, big]  # fmt: skip
    assert dpu.read("out", np.int64, 24).tolist() == expected


def test_errors_keep_their_line_after_rewriting() -> None:
    text = "#include <stdint.h>\nlong a;\nlong b = 1L;\nint main() { return c; }\n"
    with pytest.raises(CompileError, match=r"<source>:4:\d+: error: use of undeclared"):
        compile_c(text)


def test_what_cannot_be_told_apart_is_refused() -> None:
    text = "long x; int main() { return _Generic(x, long: 1, long long: 2); }"
    with pytest.raises(CompileError, match="compatible"):
        compile_c(text)
    with pytest.raises(CompileError, match="expect_with_probability"):
        compile_c("long x; int main() { return __builtin_expect_with_probability(x, 1, 0.5); }")


def test_char_is_signed() -> None:
    text = """#include <attributes.h>
#include <limits.h>
_Static_assert(CHAR_MIN == -128 && CHAR_MAX == 127, "limits.h");
volatile char c = (char)200;
__host int result;
int main(void) { result = c; return 0; }"""
    dpu = Dpu(compile_c(text))
    dpu.run()
    assert dpu.read("result", np.int32)[0] == -56
