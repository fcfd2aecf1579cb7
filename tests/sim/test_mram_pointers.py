"""A pointer into MRAM used as one into WRAM: an error or a fault in every way of doing it."""

from __future__ import annotations

import numpy as np
import pytest

from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu
from upmem_sim.errors import CompileError, LinkError, SimFault

HEAD = """#include <attributes.h>
#include <mram.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
__mram_noinit int a[64];
__host int result = -1, other[64];
__host uint32_t n = 8;
volatile uint32_t number;
__attribute__((noinline)) static int take(int *p) { return *p; }
__attribute__((noinline)) static int sum(int count, ...) {
    va_list list;
    va_start(list, count);
    int *p = va_arg(list, int *);
    va_end(list);
    return *p;
}
struct box { int *inside; };
union either { int *wram; __mram_ptr int *mram; };
static volatile union either shared;
"""

WAYS = {
    "cast": "return *(int *)a;",
    "cast of one element": "return *(int *)&a[n];",
    "assignment": "int *p = a; return *p;",
    "void pointer": "void *p = a; return *(int *)p;",
    "member": "struct box b; b.inside = a; return *b.inside;",
    "initialiser": "struct box b = {.inside = a}; return *b.inside;",
    "argument": "return take(a);",
    "cast argument": "return take((int *)a);",
    "integer": "return *(int *)(uint32_t)a;",
    "integer with an offset": "return *(int *)((uint32_t)a + 4 * n);",
    "integer kept in memory": "number = (uint32_t)a; return *(int *)number;",
    "integer as argument": "return take((int *)(uint32_t)a);",
    "intptr_t": "intptr_t x = (intptr_t)&a[3]; return *(int *)x;",
    "union": "union either u; u.mram = a; return *u.wram;",
    "union in memory": "shared.mram = a; return *shared.wram;",
    "bytes of the pointer": "int *p; __mram_ptr int *q = a; memcpy(&p, &q, 4); return *p;",
    "function pointer": "int (*f)(__mram_ptr int *) = (void *)take; return f(a);",
    "variable arguments": "return sum(1, a);",
    "store": "number = (uint32_t)a; *(int *)number = 5; return 0;",
    "byte": "number = (uint32_t)a; return *(int8_t *)number;",
    "64 bits": "number = (uint32_t)a; return (int)*(int64_t *)number;",
    "atomic": "return __atomic_fetch_add((int *)(uint32_t)a, 1, __ATOMIC_RELAXED);",
    "target of mram_read": "mram_read(a, (void *)(uint32_t)&a[8], 8); return 0;",
    "target of mram_read, at run time": (
        "number = (uint32_t)&a[8]; mram_read(a, (void *)number, 8); return other[0];"
    ),
    "target of mram_read, length at run time": (
        "number = (uint32_t)&a[8]; mram_read(a, (void *)number, n); return other[0];"
    ),
    "source of mram_write, at run time": (
        "number = (uint32_t)&a[8]; mram_write((void *)number, a, 64); return 0;"
    ),
    "source of mram_write, length at run time": (
        "number = (uint32_t)&a[8]; mram_write((void *)number, a, n); return 0;"
    ),
    "memcpy through a number": "number = (uint32_t)a; memcpy(other, (void *)number, 16); return 0;",
    "memset through a number": "number = (uint32_t)a; memset((void *)number, 0, 16); return 0;",
    "arguments of mram_read swapped": "mram_read(other, a, 8); return 0;",
}


def built(body: str, opt: str) -> Dpu:
    text = (
        f"{HEAD}static int body(void) {{ {body} }}\nint main(void) {{ result = body(); return 0; }}"
    )
    dpu = Dpu(compile_c(text, opt=opt))
    dpu.write("a", np.arange(1000, 1064, dtype=np.int32))
    return dpu


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
@pytest.mark.parametrize("body", WAYS.values(), ids=WAYS)
def test_it_is_told(body: str, opt: str) -> None:
    with pytest.raises((CompileError, LinkError, SimFault)) as caught:
        built(body, opt).run(10**6)
    if isinstance(caught.value, SimFault):
        assert caught.value.kind in ("memory", "dma-range")
        assert "an MRAM address used as WRAM" in str(caught.value)
    else:
        assert any(word in str(caught.value) for word in ("MRAM", "address space"))


def test_a_variable_must_be_in_mram_by_its_type() -> None:
    with pytest.raises(CompileError, match=r"pointer kept .* go behind the \*"):
        compile_c("#include <mram.h>\n__mram_noinit int *kept[4]; int main(void) { return 0; }")


def test_what_no_memory_holds_is_told_with_its_size() -> None:
    text = "#include <mram.h>\n__mram_noinit char big[70000000]; int main(void) { return 0; }"
    with pytest.raises(CompileError, match="big: 70000000 bytes of MRAM, limit 67108864"):
        compile_c(text)
    with pytest.raises(LinkError, match=r"WRAM: 7000.* bytes needed, limit 65536"):
        compile_c("char big[70000000]; int main(void) { return big[9]; }")


RIGHT = {
    "direct": "return a[3];",
    "pointer": "__mram_ptr int *p = a + 2; return p[1];",
    "memcpy knows both": "memcpy(other, a, 16); return other[3];",
    "number and back": "number = (uint32_t)a; return ((__mram_ptr int *)number)[3];",
    "union": "union either u; u.mram = a; return u.mram[3];",
    "length at run time": "mram_read(a + 2, other, n); return other[1];",
}


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_uses_give_the_value(body: str, opt: str) -> None:
    dpu = built(body, opt)
    dpu.run(10**6)
    assert dpu.read("result", np.int32)[0] == 1003


def test_wrong_lengths_are_told_and_silicon_rounds_them() -> None:
    from upmem_sim.params import DpuParams

    text = (
        "#include <mram.h>\n__mram_noinit uint8_t a[4096];\n__dma_aligned uint8_t w[2048];\n"
        "__host uint32_t n;\nint main() {\n    mram_read(a, w, n);\n    return 0;\n}\n"
    )
    program = compile_c("#include <stdint.h>\n" + text)
    for n, moved in ((0, 2048), (4, 2048), (12, 8), (2044, 2040), (2056, 8), (4096, 2048)):
        dpu = Dpu(program)
        dpu.write("n", np.uint32(n))
        with pytest.raises(
            SimFault, match=rf"ldma at pc \d+ of {n} bytes \(r\d+ = {n:#x}\): "
        ) as told:
            dpu.run()
        assert (told.value.kind, told.value.line) == ("dma-length", 7)
        with pytest.raises(SimFault) as plain:
            dpu.run(plain=True)
        assert str(plain.value) == str(told.value)
        silicon = Dpu(program, DpuParams(silicon_dma_alignment=True))
        silicon.write("n", np.uint32(n))
        assert silicon.run().dma.read_bytes == moved
    for n in (8, 16, 2040, 2048):
        dpu = Dpu(program)
        dpu.write("n", np.uint32(n))
        assert dpu.run().dma.read_bytes == n
