"""C -> DPU program: instruction counts of known loops, C lines, options, errors, headers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from upmem_sim.cc import cache, clang, compile_c
from upmem_sim.cc.clang import INCLUDE_DIR
from upmem_sim.dpu import Dpu
from upmem_sim.errors import CompileError, LinkError, SimError, SimFault

LOOP = """
#include <stdint.h>
#include <defs.h>
__host uint32_t N; __host T S; __host T A[512], B[512], C[512];
static void __attribute__((noinline)) work(T *a, T *b, T *c, unsigned n, T s) { BODY }
int main() { work(A, B, C, N, S); return 0; }
"""
EACH = "for (unsigned i = 0; i < n; i++) "
SUM = "T x = 0; " + EACH + "x += %s; c[0] = x;"

# (type, body, operand, instructions an element). PrIM's arithmetic loops and their silicon
# throughput (Gomez-Luna et al. 2022, figure 4), and loops of SDK 2023.2/2025.1 code.
COUNTS = [
    ("int32_t", EACH + "a[i] = a[i] + s;", 5, 6.0),
    ("int32_t", EACH + "a[i] = a[i] - s;", 5, 6.0),
    ("int32_t", EACH + "a[i] = a[i] * s;", 1 << 20, 34.1),
    ("int32_t", EACH + "a[i] = a[i] / s;", 1 << 20, 31.1),
    ("int64_t", EACH + "a[i] = a[i] + s;", 5, 7.0),
    ("int64_t", EACH + "a[i] = a[i] - s;", 5, 7.0),
    ("int64_t", EACH + "a[i] = a[i] * s;", 5, 136.0),
    ("int64_t", SUM % "a[i]", 0, 5.0),
    ("int32_t", SUM % "a[i] + b[i]", 0, 7.0),
    ("int32_t", EACH + "c[i] = a[i] + b[i];", 0, 9.0),
    ("int64_t", EACH + "c[i] = a[i] + b[i];", 0, 10.0),
    ("int32_t", EACH + "b[i] += a[i];", 0, 8.0),
    ("int64_t", EACH + "c[i] = a[i];", 0, 6.0),
    # constant trip counts are unrolled; the additions stay pairs
    (
        "int64_t",
        "T x = 0; for (unsigned j = 0; j < n; j += 8, a += 8) "
        "for (int i = 0; i < 8; i++) x += a[i]; c[0] = x;",
        0,
        3.4,
    ),
    (
        "int32_t",
        "for (unsigned j = 0; j < n; j += 8, a += 8, b += 8) "
        "for (int i = 0; i < 8; i++) b[i] += a[i];",
        0,
        4.5,
    ),
    ("int8_t", "int x = 0; " + EACH + "x += a[i] * b[i]; *(int *)c = x;", 0, 7.0),
    ("uint8_t", "unsigned x = 0; " + EACH + "x += a[i] * b[i]; *(unsigned *)c = x;", 0, 7.0),
]


def count(type_: str, body: str, operand: int, opt: str = "-O2") -> float:
    """Instructions an element: the slope between two lengths."""
    program = compile_c(LOOP.replace("BODY", body), defines={"T": type_}, opt=opt)
    dtype = np.dtype(type_.removesuffix("_t"))
    rng = np.random.default_rng(0)
    totals = []
    for n in (100, 500):
        dpu = Dpu(program)
        values = rng.integers(0, (1 << 31) - 1, 512) if dtype.itemsize > 1 else np.ones(512)
        for name in "ABC":
            dpu.write(name, values.astype(dtype))
        dpu.write("S", dtype.type(operand))
        dpu.write("N", np.uint32(n))
        totals.append(dpu.run().instructions)
    return (totals[1] - totals[0]) / 400


@pytest.mark.parametrize(("type_", "body", "operand", "expected"), COUNTS)
def test_loops_take_as_many_instructions_as_on_silicon(
    type_: str, body: str, operand: int, expected: float
) -> None:
    assert count(type_, body, operand) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("opt", ["-O1", "-O3", "-Os"])
def test_the_add_loop_is_the_same_at_every_level(opt: str) -> None:
    assert count("int32_t", EACH + "a[i] = a[i] + s;", 5, opt) == 6.0


def test_a_constant_trip_count_is_unrolled() -> None:
    body = "for (int i = 0; i < 16; i++) a[i] += b[i] + (int)n;"
    text = LOOP.replace("BODY", body)
    assert Dpu(compile_c(text, defines={"T": "int32_t"})).run().instructions < 16 * 5 + 40


DMA = """
#include <mram.h>
__dma_aligned char b[2048]; __host unsigned n = SIZE;
int main() { mram_read(DPU_MRAM_HEAP_POINTER, b, SIZE); return 0; }"""


def test_dma_takes_one_instruction_or_four() -> None:
    nothing = DMA.replace("mram_read(DPU_MRAM_HEAP_POINTER, b, SIZE);", '__asm__ volatile("");')
    base = len(compile_c(nothing, defines={"SIZE": "2048"}).rows)
    constant = len(compile_c(DMA, defines={"SIZE": "2048"}).rows)
    variable = len(compile_c(DMA.replace("b, SIZE", "b, n"), defines={"SIZE": "2048"}).rows)
    assert constant - base == 1 + 2  # and two addresses
    assert variable - base == 4 + 2 + 1  # and the load of n


@pytest.mark.parametrize("size", ["0", "4", "12", "2056", "4096", "-8"])
def test_dma_sizes_that_the_hardware_has_not_are_errors(size: str) -> None:
    with pytest.raises(CompileError, match=r"<source>:4: .*8 to 2048"):
        compile_c(DMA, defines={"SIZE": size})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("int *p = (int *)DPU_MRAM_HEAP_POINTER; return *p;", "MRAM pointer"),
        ("int *p = DPU_MRAM_HEAP_POINTER; return *p;", "address space"),
        ("static int w; mram_read(&w, b, 8); return 0;", "address space"),
        ("return undeclared;", r"<source>:4:\d+: error: use of undeclared"),
        ("long double x = 1; return (int)x +;", r"<source>:4:\d+: error: expected expression"),
        ("static __mram_ptr int *p; return __sync_fetch_and_add(p, 1);", "MRAM|address space"),
    ],
)
def test_bad_c_is_one_line_with_its_place(body: str, message: str) -> None:
    text = f"#include <mram.h>\n#include <stdint.h>\nchar b[8];\nint main() {{ {body} }}"
    with pytest.raises(CompileError, match=message) as caught:
        compile_c(text)
    assert "\n" not in str(caught.value)


def test_words_of_the_compiler_in_strings_are_only_text() -> None:
    text = """
    #include <defs.h>
    #include <mram.h>
    __host char out[64] = "a fastcc b addrspacecast = mul i32 %1, %2";
    __attribute__((noinline)) static int local(int a, int b) { return a * 3 + b; }
    int main() { out[63] = local(out[0], out[1]) + local(5, out[2]); return 0; }"""
    dpu = Dpu(compile_c(text))
    assert (
        dpu.read("out", np.uint8, 40).tobytes() == b"a fastcc b addrspacecast = mul i32 %1, %2"[:40]
    )
    dpu.run()
    assert dpu.read("out", np.uint8, 64)[63] == (97 * 3 + 32 + 15 + ord("f")) & 255


def test_other_errors_are_plain() -> None:
    with pytest.raises(CompileError, match="-O9"):
        compile_c("int main() { return 0; }", opt="-O9")
    with pytest.raises(CompileError, match="cannot be read"):
        compile_c(Path("/nowhere/x.c"))
    with pytest.raises(LinkError, match="missing_function"):
        compile_c("void missing_function(void); int main() { missing_function(); return 0; }")
    with pytest.raises(LinkError, match="25, limit 1 to 24"):
        compile_c("int main() { return 0; }", nr_tasklets=25)
    with pytest.raises(LinkError, match="IRAM"):
        compile_c("volatile int x; int main() {" + "x++;" * 2000 + "return 0; }")
    with pytest.raises(CompileError, match="file not found"):
        compile_c('#include "nowhere.h"\nint main() { return 0; }')


def test_no_compiler_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clang.importlib.util, "find_spec", lambda name: None)
    clang.zig.cache_clear()
    try:
        with pytest.raises(CompileError, match="ziglang is not installed"):
            clang.zig()
    finally:
        clang.zig.cache_clear()


def test_faults_name_the_line_of_c(tmp_path: Path) -> None:
    text = "int zero, out;\nint main() {\n    out = 5;\n    *(volatile int *)0x100000 = 1;\n}\n"
    with pytest.raises(SimFault) as caught:
        Dpu(compile_c(text)).run()
    assert (caught.value.file, caught.value.line) == ("<source>", 4)
    path = tmp_path / "task.c"
    path.write_text(text)
    with pytest.raises(SimFault) as caught:
        Dpu(compile_c(path)).run()
    assert (caught.value.file, caught.value.line) == (str(path), 4)
    assert all(line is None for line in compile_c(text, debug=False).lines[20:])


def test_units_includes_and_defines(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "shared.h").write_text("extern long shared(long x);\n#define K 7L\n")
    (tmp_path / "near.h").write_text("#define NEAR 3\n")
    a, b = tmp_path / "a.c", tmp_path / "b.c"
    a.write_text('#include <shared.h>\n#include "near.h"\nlong shared(long x) { return x*K+NEAR; }')
    b.write_text("#include <defs.h>\n#include <shared.h>\n__host long out;\n"
                 "int main() { out = shared(1L << VALUE); return 0; }")  # fmt: skip
    program = compile_c([a, b], include_dirs=[tmp_path / "inc"], defines={"VALUE": 40})
    dpu = Dpu(program)
    dpu.run()
    assert dpu.read("out", np.int64)[0] == (1 << 40) * 7 + 3
    (tmp_path / "near.h").write_text("#define NEAR 4\n")  # the cache must notice
    dpu = Dpu(compile_c([a, b], include_dirs=[tmp_path / "inc"], defines={"VALUE": 40}))
    dpu.run()
    assert dpu.read("out", np.int64)[0] == (1 << 40) * 7 + 4


def test_headers_are_clean_alone_and_in_two_units(tmp_path: Path) -> None:
    headers = sorted({path.name for path in INCLUDE_DIR.glob("*.h")} - {"wramfifo.h"})
    assert len(headers) > 35
    units = []
    for number in range(2):
        path = tmp_path / f"unit{number}.c"
        body = "int main(void) { return 0; }" if number else "int other(void) { return 1; }"
        path.write_text("".join(f"#include <{h}>\n" for h in headers if h != "iso646.h") + body)
        units.append(path)
    compile_c(units, werror=True)
    for header in headers:
        text = f"#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}"
        module = clang.to_ir(text, clang.Options(werror=True, debug=False, opt="-O0"))
        assert "main" in module


def test_a_header_of_another_chip_says_so() -> None:
    with pytest.raises(CompileError, match="FIFOs to running DPUs need chip v1B"):
        compile_c("#include <wramfifo.h>\nint main(void) { return 0; }")


def test_warnings_are_errors_only_when_asked() -> None:
    text = "int main() { int unused; return 0; }"
    compile_c(text)
    with pytest.raises(CompileError, match="unused"):
        compile_c(text, werror=True)


def test_the_cache_gives_the_same_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = "#include <defs.h>\n__host int x = 5; int main() { x += 1; return 0; }"
    cold = compile_c(text)
    files = [p for p in (tmp_path / "upmem_sim").rglob("*") if p.is_file()]
    assert files
    warm = compile_c(text)
    assert cold.words.tobytes() == warm.words.tobytes()
    for path in files:
        path.write_bytes(b"damaged")
    assert compile_c(text).words.tobytes() == cold.words.tobytes()
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert compile_c(text).words.tobytes() == cold.words.tobytes()
    assert cache.load("0" * 64) is None


def test_one_process_after_another_compiles_the_same() -> None:
    code = (
        "from upmem_sim.cc import cache, compile_c\n"
        "cache.load = lambda name: None\n"
        "import hashlib\n"
        f"text = {LOOP.replace('BODY', EACH + 'a[i] = b[i] / s;')!r}\n"
        "program = compile_c(text, defines={'T': 'int64_t'}, nr_tasklets=3)\n"
        "print(hashlib.sha256(program.words.tobytes() + program.wram).hexdigest())\n"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
            for _ in range(2)]  # fmt: skip
    assert runs[0] == runs[1]


def test_inline_assembly_with_pairs_labels_and_conditions() -> None:
    chain = "\\\\n ".join(f"mul_step %0, %1, %0, {i}, z, .Lx%=" for i in range(31))
    text = """
    #include <stdint.h>
    #include <defs.h>
    __host int64_t out[8]; __host uint32_t a = 123456, m = 789, x = 0x80000001, y = 0xFFFFFFFF;
    int main() {
        uint64_t d = ((uint64_t)m << 32) | 1000;
        __asm__("CHAIN\\n mul_step %0, %1, %0, 31\\n .Lx%=:" : "+R"(d) : "r"(a));
        out[0] = (uint32_t)d;
        uint32_t lo = x, hi = 7;
        __asm__("add %0, %0, %2\\n addc %1, %1, %3" : "+&r"(lo), "+&r"(hi) : "r"(y), "r"(a));
        out[1] = ((uint64_t)hi << 32) | lo;
        uint32_t n = 0;
        __asm__("1: add %0, %0, 1\\n jneq %0, 5, 1b\\n jump .+2\\n move %0, 0\\n" : "+r"(n));
        out[2] = n;
        int32_t p; __asm__("mul_sl_ul %0, %1, %2" : "=r"(p) : "r"(y), "r"(m)); out[3] = p;
        uint32_t c; __asm__("cmpb4 %0, %1, %2" : "=r"(c) : "r"(x), "r"(a)); out[4] = c;
        int64_t w; __asm__("add.s %0, %1, %2" : "=R"(w) : "r"(x), "r"(hi)); out[5] = w;
        return 0;
    }""".replace("CHAIN", chain.replace("\\\\n", "\\n"))
    dpu = Dpu(compile_c(text))
    dpu.run()
    low = 0x80000001 + 0xFFFFFFFF
    high = 7 + 123456 + (low >> 32)
    expected = [1000 + 123456 * 789, high << 32 | low & 0xFFFFFFFF, 5, -(789 & 255), 0]
    assert dpu.read("out", np.int64, 5).tolist() == expected
    assert dpu.read("out", np.int64, 6)[5] == 0x80000001 + high - (1 << 32)


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_64_bit_operands_are_pairs_whatever_the_constraint(opt: str) -> None:
    text = """
    #include <stdint.h>
    #include <defs.h>
    __host int64_t out[4]; __host int64_t x = 5L << 33; int a = 3;
    int main() {
        int64_t y, z = x + 1;
        __asm__ volatile("movd %0, %1" : "=r"(y) : "r"(z));
        out[0] = y;
        __asm__("swapd %[y], %[y]" : [y] "+r"(y));
        out[1] = y;
        __asm__ volatile("sd %1, 0, %2\\n\tadd %0, %0, 1" : "+r"(a) : "r"(&out[2]), "r"(z)
                         : "memory");
        out[3] = a;
        return 0;
    }"""
    dpu = Dpu(compile_c(text, opt=opt))
    dpu.run()
    z = (5 << 33) + 1
    assert dpu.read("out", np.int64).tolist() == [z, (1 << 32) + 10, z, 4]


@pytest.mark.parametrize(
    ("asm", "message"),
    [('"move %0, %1" : "=r"(x) : "r"(1L << 40)', "operand 2 must be a register, not d"),
     ('"frobnicate %0" : "=r"(x)', "frobnicate"), ('"move r5, 1" : "=r"(x)', "r5"),
     ('"lw %0, 3" : "=r"(x)', "lw"), ('".section .foo" : "=r"(x)', "section|label")],
)  # fmt: skip
def test_bad_inline_assembly_names_its_line(asm: str, message: str) -> None:
    with pytest.raises(SimError, match=message):
        compile_c(f"int x;\nint main() {{\n__asm__ volatile({asm});\nreturn x; }}")


FEATURES = """
#include <stdint.h>
#include <stdarg.h>
#include <defs.h>
__host int64_t out[16];
typedef struct { int32_t a; int64_t b; int8_t c[5]; } big_t;
typedef struct { int32_t a, b; } small_t;
static big_t table[3] = {{1, 2, "ab"}, {.b = 0x123456789LL}, {7, -8, {1, 2, 3, 4, 5}}};
static int (*const pointers[])(int) ;
static const char *names[] = {"zero", "one", "two"};
static int32_t *into = &table[2].a;
__attribute__((noinline)) big_t swap(big_t x, small_t y) { x.a = y.b; x.b += y.a; return x; }
__attribute__((noinline)) small_t pair(int64_t x) { return (small_t){x >> 32, x}; }
__attribute__((noinline)) int64_t sum(int n, ...) {
    va_list list, copy; va_start(list, n); va_copy(copy, list);
    int64_t s = 0;
    for (int i = 0; i < n; i++) s += (i & 1) ? va_arg(list, int64_t) : va_arg(list, int);
    s += va_arg(copy, int); va_end(list); va_end(copy); return s;
}
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
static int (*const pointers[])(int) = {twice, thrice};
__attribute__((noinline)) int ack(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1));
}
__attribute__((noinline)) int choose(int x) {
    switch (x) { case 0: return 5; case 1: return 9; case 2: return ack(1, 1); case 3: return 77;
                 case 4: return 1; case 5: return 3; case 6: return 1000; }
    return -1;
}
int main(void) {
    big_t b = swap(table[2], (small_t){5, 6});
    out[0] = b.a + b.b + b.c[4]; small_t p = pair(0x500000007LL); out[1] = p.a * 10 + p.b;
    out[2] = sum(4, 1, 20LL, 300, 4000LL); out[3] = ack(2, 3);
    for (int i = -1; i < 8; i++) out[4] += (int64_t)(i + 2) * choose(i);
    for (int i = 0; i < 2; i++) out[5] += pointers[i](10);
    out[6] = names[1][0]; out[7] = *into; out[8] = table[1].b; (*into)++;
    volatile int vla = 7; int32_t dynamic[vla];
    for (int i = 0; i < vla; i++) dynamic[i] = i * i;
    out[9] = dynamic[6]; out[10] = (intptr_t)&out[10] % 8;
    out[11] = sizeof(long) * 100 + sizeof(void *);
    double d = 1.5; float f = (float)d * 3; out[12] = (int64_t)(f * 4 + d);
    void *labels[] = {&&one, &&two}; int k = 0; goto *labels[vla & 1]; one: k = 1; two: k += 2;
    out[13] = k;
    return 0;
}
"""


@pytest.mark.parametrize("opt", clang.OPT_LEVELS)
def test_the_language_at_every_level(opt: str) -> None:
    dpu = Dpu(compile_c(FEATURES, opt=opt, stack_bytes=4096))
    dpu.run()
    choices = [-1, 5, 9, 3, 77, 1, 3, 1000, -1]
    expected = [6 - 3 + 5, 57, 1 + 20 + 300 + 4000 + 1, 9,
                sum((i + 1) * c for i, c in enumerate(choices)), 50, ord("o"), 7, 0x123456789, 36,
                0, 804, 19, 2]  # fmt: skip
    assert dpu.read("out", np.int64, 14).tolist() == expected
