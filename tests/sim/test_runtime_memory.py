"""The DPU's run-time library: memory, strings, variables in MRAM, the log."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_harness import HEADERS, out, run

from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu
from upmem_sim.errors import SimError, SimFault
from upmem_sim.log import read_log


def test_memory_functions_like_c() -> None:
    body = """
    unsigned char area[256], copy[256];
    __host uint32_t places[64][4];
    __host uint8_t image[64][256];
    int main() {
        for (int i = 0; i < 64; i++) {
            for (int j = 0; j < 256; j++) area[j] = j * 7 + i;
            uint32_t a = places[i][0], b = places[i][1], n = places[i][2];
            if (places[i][3] == 0) memmove(area + a, area + b, n);
            else if (places[i][3] == 1) memcpy(area + a, area + 128 + b / 2, n < 60 ? n : 60);
            else memset(area + a, (int)b, n);
            memcpy(image[i], area, 256);
        }
        out[0] = memcmp("abc", "abd", 3); out[1] = memcmp("b", "a", 1);
        out[2] = memcmp("x", "y", 0);
        out[3] = (char *)memchr("hello", 'l', 5) - (char *)"hello";
        return 0;
    }"""
    rng = np.random.default_rng(5)
    places = rng.integers(0, 128, (64, 4)).astype(np.uint32)
    places[:, 1] = np.where(rng.random(64) < 0.4, places[:, 0] & 7, places[:, 1])
    places[::3, :2] &= 0xF8
    places[:, 3] %= 3
    places[places[:, 3] == 1, 0] &= 63
    program = compile_c(HEADERS + body)
    dpu = Dpu(program)
    dpu.write("places", places)
    dpu.run()
    images = dpu.read("image", np.uint8, 64 * 256).reshape(64, 256)
    for i, (a, b, n, kind) in enumerate(places.tolist()):
        area = bytearray((j * 7 + i) & 255 for j in range(256))
        if kind == 0:
            area[a : a + n] = area[b : b + n]
        elif kind == 1:
            count = min(n, 60)
            start = 128 + b // 2
            area[a : a + count] = area[start : start + count]
        else:
            area[a : a + n] = bytes([b & 255]) * n
        assert images[i].tobytes() == bytes(area), (a, b, n, kind)
    assert out(dpu, 3) == [-1, 1, 0]


def test_string_functions() -> None:
    body = """
    int main() {
        char text[40] = "One, two;three", part[20], *state, *word = text + 0;
        out[0] = strlen(text); out[1] = strcmp("abc", "abd") < 0; out[2] = strncmp("abc", "abd", 2);
        out[3] = strchr(text, 't') - text; out[4] = strrchr(text, 't') - text;
        out[5] = strstr(text, "two") - text; out[6] = strspn("aabbc", "ab");
        out[7] = strcspn("xyz,", ","); out[8] = *strpbrk(text, ";,");
        strcpy(part, "ab"); strcat(part, "cd"); strncat(part, "efgh", 2);
        out[9] = strcmp(part, "abcdef");
        strncpy(part, "q", 5); out[10] = part[1] + part[4]; out[11] = part[5];
        int words = 0;
        for (word = strtok_r(text, ", ;", &state); word;
             word = strtok_r(NULL, ", ;", &state)) words++;
        out[12] = words; strcpy(part, "AbC"); out[13] = strcmp(strlwr(part), "abc");
        out[14] = strcmp(strrev(strupr(part)), "CBA");
        out[15] = atoi(" -123x"); out[16] = atol("99999999999");
        out[17] = atol("99999999999999999999") == INT64_MAX; out[18] = errno;
        out[19] = strnlen("abc", 2);
        out[20] = abs(-5) + labs(-6L); out[21] = div(17, 5).quot * 10 + div(17, 5).rem;
        return 0;
    }"""
    dpu, _ = run(body)
    expected = [14, 1, 0, 5, 9, 5, 4, 3, ord(","), 0, 0, ord("f"), 3, 0, 0, -123, 99999999999]
    assert out(dpu, 22) == [*expected, 1, 72, 2, 11, 32]


def test_variables_in_mram_are_used_directly() -> None:
    body = """
    typedef struct { uint8_t a; uint16_t b; int32_t c; int64_t d; float e; uint8_t f[5]; } rec_t;
    __mram_noinit rec_t records[4];
    __mram int32_t table[5] = {10, -20, 30, -40, 50};
    __mram_noinit int32_t *__mram_ptr pointers[2];
    struct __attribute__((packed)) odd { uint8_t x; uint32_t y; uint64_t z; };
    __mram_noinit struct odd odds[2];
    rec_t local;
    int main() {
        for (int i = 0; i < 5; i++) out[i] = table[i];
        table[1] += 7; table[2]++; out[5] = table[1] + table[2];
        for (int i = 0; i < 4; i++) {
            records[i].a = 250 + i; records[i].b = 1000 * i; records[i].c = -i;
            records[i].e = 1.5f * i;
            records[i].d = 1LL << (40 + i); for (int j = 0; j < 5; j++) records[i].f[j] = i + j;
        }
        local = records[3];
        out[6] = local.a; out[7] = local.b; out[8] = local.c; out[9] = local.d;
        out[10] = local.e * 2;
        out[11] = local.f[4]; local.c = 77; records[0] = local; records[1] = records[0];
        out[12] = records[1].c; out[13] = records[1].f[3];
        odds[1].y = 0x12345678; odds[1].z = 0x123456789abcdefLL; odds[0].z = -1;
        out[14] = odds[1].y; out[15] = odds[1].z; out[16] = odds[0].z; out[17] = odds[1].x = 9;
        __mram_ptr int32_t *p = (__mram_ptr int32_t *)DPU_MRAM_HEAP_POINTER; p[3] = 5;
        out[18] = p[3];
        return 0;
    }"""
    for opt in ("-O2", "-O0"):
        dpu, _ = run(body, opt=opt)
        assert out(dpu, 19) == [10, -20, 30, -40, 50, 18, 253, 3000, -3, 1 << 43, 9, 7, 77, 6,
                                0x12345678, 0x123456789ABCDEF, -1, 9, 5]  # fmt: skip
        assert dpu.read("table", np.int32, 5).tolist() == [10, -13, 31, -40, 50]


def test_atomic_operations_of_the_compiler() -> None:
    body = """
    int32_t count; uint64_t wide; uint8_t flags;
    BARRIER_INIT(meet, NR_TASKLETS);
    int main() {
        for (int i = 0; i < 20; i++) {
            __sync_fetch_and_add(&count, 3);
            __atomic_fetch_add(&wide, 0x100000001ULL, __ATOMIC_SEQ_CST);
            __atomic_fetch_or(&flags, 1 << (me() & 7), __ATOMIC_RELAXED);
        }
        barrier_wait(&meet);
        if (me() == 0) {
            out[0] = count; out[1] = wide; out[2] = flags;
            int32_t expected = 0;
            out[3] = __atomic_compare_exchange_n(&count, &expected, 1, 0, 5, 5); out[4] = expected;
            out[5] = __sync_bool_compare_and_swap(&count, expected, 4); out[6] = count;
        }
        return 0;
    }"""
    dpu, _ = run(body, 12)
    assert out(dpu, 7) == [720, 240 * 0x100000001, 255, 0, 720, 1, 4]


def test_counter_stack_exit_and_relaunch() -> None:
    body = """
    int runs = 0;
    int main() {
        if (me() == 0) {
            perfcounter_config(COUNT_CYCLES, true);
            for (volatile int i = 0; i < 100; i++) ;
            out[0] = perfcounter_get(); out[1] = check_stack(); out[2] = ++runs;
            out[3] = CLOCKS_PER_SEC;
        }
        if (me() == 1) exit(3);
        out[4 + me()] = 1;
        return 0;
    }"""
    dpu, _ = run(body, 3)
    values = out(dpu, 7)
    assert values[0] % 16 == 0
    assert 100 * 3 * 11 <= values[0] <= 100 * 8 * 11
    assert 900 < values[1] <= 1024
    assert values[2:] == [1, 350000000, 1, 0, 1]
    dpu.run()
    assert out(dpu, 3)[2] == 2


@pytest.mark.parametrize(
    ("statement", "fault"),
    [("assert(out[0] == 1)", "code 3"), ("halt()", "code 4"), ("abort()", "code 4"),
     ("__builtin_trap()", "code 4"), ("out[0] = 5 / (int)out[0]", "code 2")],
)  # fmt: skip
def test_software_faults(statement: str, fault: str) -> None:
    with pytest.raises(SimFault, match=fault):
        run(f"int main() {{ {statement}; return 0; }}")


def test_sequential_reader_crosses_pages() -> None:
    body = """
    #define SEQREAD_CACHE_SIZE 64
    #include <seqread.h>
    int main() {
        seqreader_t reader;
        __mram_ptr uint8_t *start = (__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER + 12;
        seqreader_buffer_t cache = seqread_alloc();
        out[10] = cache & 63;
        int32_t *item = seqread_init(cache, start, &reader);
        for (int i = 0; i < 300; i++) { out[0] += *item * (i + 1);
            item = seqread_get(item, 4, &reader); }
        out[1] = (uintptr_t)seqread_tell(item, &reader) - (uintptr_t)start;
        item = seqread_seek(start + 40, &reader); out[2] = *item;
        item = seqread_seek(start + 44, &reader); out[3] = *item;
        return 0;
    }"""
    program = compile_c(HEADERS + body)
    dpu = Dpu(program)
    values = np.random.default_rng(0).integers(-1000, 1000, 400).astype(np.int32)
    dpu.write("DPU_MRAM_HEAP_POINTER_NAME", values, offset=12)
    dpu.run()
    expected = int((values[:300].astype(np.int64) * np.arange(1, 301)).sum())
    assert out(dpu, 4) == [expected, 1200, values[10], values[11]]
    assert out(dpu, 11)[10] == 0


def test_unaligned_mram_access() -> None:
    body = """
    #include <mram_unaligned.h>
    __mram_noinit uint8_t area[4096];
    __dma_aligned uint8_t buffer[600];
    static void add(int *value, int by) { *value += by; }
    BARRIER_INIT(meet, NR_TASKLETS);
    int main() {
        for (int i = me(); i < 512; i += NR_TASKLETS) area[i * 8 + 3] = 1;
        barrier_wait(&meet);
        for (int i = 0; i < 40; i++)
            mram_update_int_atomic(area + 800 + 4 * (i & 1), add, (int)me());
        for (int i = 0; i < 8; i++) mram_write_byte_atomic(area + 100 + me(), me());
        barrier_wait(&meet);
        if (me() == 0) {
            for (int i = 0; i < 600; i++) buffer[i] = i;
            mram_write_unaligned(buffer + 5, area + 1005, 300);
            uint8_t *p = mram_read_unaligned(area + 1001, buffer, 310);
            for (int i = 0; i < 300; i++) out[0] += p[4 + i] != (uint8_t)(i + 5);
            out[1] = area[1004]; out[2] = area[1305];
            for (int i = 0; i < NR_TASKLETS; i++) out[3] += area[100 + i] == i;
            out[4] = *(__mram_ptr int *)(area + 800) - (1 << 24);
            out[5] = *(__mram_ptr int *)(area + 804);
        }
        return 0;
    }"""
    dpu, _ = run(body, 8)
    assert out(dpu, 6) == [0, 0, 0, 8, 20 * 28, 20 * 28]
    with pytest.raises(SimFault, match="code 8"):
        run(body.replace("area + 1005", "area + 1006"), 8)


def test_pools_and_virtual_mutexes() -> None:
    body = """
    #include <mutex_pool.h>
    #include <vmutex.h>
    MUTEX_POOL_INIT(pool, 4);
    VMUTEX_INIT(virtuals, 64, 2);
    int32_t counts[32];
    BARRIER_INIT(meet, NR_TASKLETS);
    int main() {
        for (int i = 0; i < 64; i++) {
            mutex_pool_lock(&pool, i % 16); counts[i % 16]++; mutex_pool_unlock(&pool, i % 16);
            vmutex_lock(&virtuals, i % 16); counts[16 + i % 16]++; vmutex_unlock(&virtuals, i % 16);
        }
        barrier_wait(&meet);
        for (int i = 0; i < 32; i++) out[i] = counts[i];
        return 0;
    }"""
    dpu, _ = run(body, 9)
    assert out(dpu, 32) == [36] * 32


def test_printf_is_read_by_the_host() -> None:
    body = """
    #include <stdio.h>
    MUTEX_INIT(order);
    int main() {
        if (me() == 0) {
            printf("%d%% %5u|%-4s|%c %ld %#x %08X %i\\n", -5, 7u, "ab", 'z', 1L << 40,
                   255, 0xbeef, 3);
            printf("%.3f %e", 3.14159, 1e10);
            puts("!");
        }
        return 0;
    }"""
    dpu, _ = run(body, 2)
    assert read_log(dpu) == "-5%     7|ab  |z 1099511627776 0xff 0000BEEF 3\n3.142 1.000000e+10!\n"
    dpu.run()
    assert read_log(dpu).count("!") == 1


def test_a_small_log_says_that_it_was_too_small() -> None:
    body = """
    #include <stdio.h>
    STDOUT_BUFFER_INIT(64);
    int main() { for (int i = 0; i < COUNT; i++) printf("number %d\\n", i); return 0; }"""
    dpu, _ = run(body.replace("COUNT", "2"))
    assert read_log(dpu) == "number 0\nnumber 1\n"
    dpu, _ = run(body.replace("COUNT", "3"))
    with pytest.raises(SimError, match="64 bytes"):
        read_log(dpu)
