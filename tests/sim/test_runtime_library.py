"""The DPU's run-time library: synchronisation, allocation, memory, MRAM variables, strings."""

from __future__ import annotations

import numpy as np
import pytest

from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu, RunResult
from upmem_sim.errors import SimFault

HEADERS = """
#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>
#include <defs.h>
#include <mram.h>
#include <alloc.h>
#include <barrier.h>
#include <mutex.h>
#include <sem.h>
#include <handshake.h>
#include <perfcounter.h>
#include <string.h>
#include <stdlib.h>
#include <errno.h>
#include <assert.h>
__host int64_t out[64];
"""


def run(body: str, tasklets: int = 1, stack: int = 1024, opt: str = "-O2") -> tuple[Dpu, RunResult]:
    program = compile_c(HEADERS + body, nr_tasklets=tasklets, stack_bytes=stack, opt=opt)
    dpu = Dpu(program)
    return dpu, dpu.run(max_cycles=50_000_000)


def out(dpu: Dpu, count: int = 64) -> list[int]:
    return [int(x) for x in dpu.read("out", np.int64, count)]


@pytest.mark.parametrize("tasklets", [1, 2, 11, 24])
@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_barrier_separates_phases(tasklets: int, opt: str) -> None:
    body = """
    BARRIER_INIT(meet, NR_TASKLETS);
    uint32_t phase[24];
    int main() {
        int64_t errors = 0;
        for (uint32_t p = 1; p <= 20; p++) {
            phase[me()] = p;
            for (volatile uint32_t w = 0; w < (me() * 7 + p) % 13; w++) ;
            barrier_wait(&meet);
            for (int t = 0; t < NR_TASKLETS; t++) errors += phase[t] != p;
            barrier_wait(&meet);
        }
        out[me()] = errors + 100;
        return 0;
    }"""
    dpu, _ = run(body, tasklets, opt=opt)
    assert out(dpu, tasklets) == [100] * tasklets


def test_barrier_object_has_the_fields_of_the_sdk() -> None:
    dpu, _ = run(
        "BARRIER_INIT(meet, NR_TASKLETS); int main() { barrier_wait(&meet); return 0; }", 5
    )
    queue, count, initial, lock = dpu.read("meet", np.uint8, 4)
    assert (queue, count, initial) == (255, 5, 5)
    assert lock >= 200


def test_hand_filled_barriers_and_null_mutex() -> None:
    body = """
    #include <atomic_bit.h>
    ATOMIC_BIT_INIT(bits)[4];
    barrier_t pairs[4];
    mutex_id_t nothing;
    int32_t total;
    BARRIER_INIT(all, NR_TASKLETS);
    int main() {
        if (me() == 0)
            for (int i = 0; i < 4; i++) {
                pairs[i].wait_queue = 0xff; pairs[i].count = pairs[i].initial_count = 2;
                pairs[i].lock = (uint8_t)(uintptr_t)&ATOMIC_BIT_GET(bits)[i];
            }
        barrier_wait(&all);
        for (int i = 0; i < 10; i++) barrier_wait(&pairs[me() / 2]);
        mutex_lock(nothing); total++; mutex_unlock(nothing);
        barrier_wait(&all);
        out[0] = total;
        return 0;
    }"""
    dpu, _ = run(body, 8)
    assert out(dpu, 1) == [8]


@pytest.mark.parametrize("tasklets", [1, 7, 24])
def test_mutex_protects_a_counter(tasklets: int) -> None:
    body = """
    MUTEX_INIT(lock);
    int32_t counter;
    BARRIER_INIT(meet, NR_TASKLETS);
    int main() {
        for (int i = 0; i < 50; i++) {
            mutex_lock(lock);
            int32_t seen = counter;
            for (volatile int w = 0; w < 3; w++) ;
            counter = seen + 1;
            mutex_unlock(lock);
        }
        barrier_wait(&meet);
        if (me() == 0) {
            out[0] = counter;
            out[1] = mutex_trylock(lock);
            out[2] = mutex_trylock(lock);
            mutex_unlock(lock);
        }
        return 0;
    }"""
    dpu, _ = run(body, tasklets)
    assert out(dpu, 3) == [50 * tasklets, 1, 0]


def test_mutex_takes_one_instruction_each_way() -> None:
    program = compile_c(
        HEADERS + "MUTEX_INIT(lock); int main() { mutex_lock(lock); out[0]++; mutex_unlock(lock);"
        " return 0; }"
    )
    names = [int(op) for op in program.rows["op"]]
    from upmem_sim.isa import OP_INDEX

    # one in the start-up code frees the program's bits
    assert names.count(OP_INDEX["acquire"]) == 1
    assert names.count(OP_INDEX["release"]) == 2


def test_semaphore_bounds_a_buffer() -> None:
    body = """
    SEMAPHORE_INIT(empty, 4);
    SEMAPHORE_INIT(full, 0);
    MUTEX_INIT(guard);
    int32_t ring[4], head, tail;
    int main() {
        for (int i = 0; i < 60; i++) {
            if (me() % 2 == 0) {
                sem_take(&empty); mutex_lock(guard); ring[head++ & 3] = i + 1; mutex_unlock(guard);
                sem_give(&full);
            } else {
                sem_take(&full); mutex_lock(guard); out[me()] += ring[tail++ & 3];
                mutex_unlock(guard); sem_give(&empty);
            }
        }
        return 0;
    }"""
    dpu, _ = run(body, 8)
    assert sum(out(dpu, 8)) == 4 * 60 * 61 // 2


def test_handshake_chain_makes_a_prefix_sum() -> None:
    body = """
    int64_t sums[24];
    int main() {
        sums[me()] = me() + 1;
        if (me() != 0) { handshake_wait_for(me() - 1); sums[me()] += sums[me() - 1]; }
        if (me() != NR_TASKLETS - 1) handshake_notify();
        out[me()] = sums[me()];
        return 0;
    }"""
    dpu, _ = run(body, 16)
    assert out(dpu, 16) == [t * (t + 1) // 2 for t in range(1, 17)]


def test_second_waiter_of_a_handshake_is_told() -> None:
    body = """
    BARRIER_INIT(two, 2);
    int main() {
        if (me() == 0) {
            for (volatile int w = 0; w < 500; w++) ;
            handshake_notify();
        } else {
            if (me() == 2) for (volatile int w = 0; w < 100; w++) ;
            out[me()] = handshake_wait_for(0) * 100 + errno;
        }
        return 0;
    }"""
    dpu, _ = run(body, 3)
    assert out(dpu, 3) == [0, 0, 707]


def test_heap_is_aligned_shared_and_reset() -> None:
    body = """
    BARRIER_INIT(meet, NR_TASKLETS);
    int main() {
        if (me() == 0) out[60] = (intptr_t)mem_reset();
        barrier_wait(&meet);
        out[me()] = (intptr_t)mem_alloc(20 + me());
        barrier_wait(&meet);
        if (me() == 0) { out[61] = (intptr_t)mem_alloc(0); out[62] = (intptr_t)mem_reset(); }
        return 0;
    }"""
    dpu, _ = run(body, 16)
    values = out(dpu)
    blocks = sorted((values[t], -(-(20 + t) // 8) * 8) for t in range(16))
    assert all(start % 8 == 0 for start, _ in blocks)
    assert all(a + n <= b for (a, n), (b, _) in zip(blocks, blocks[1:], strict=False))
    assert values[60] == blocks[0][0] == values[62]
    assert values[61] == blocks[-1][0] + blocks[-1][1]


@pytest.mark.parametrize("size", ["70000", "0xfffffff9u", "0xffffffffu", "0x7fffffff"])
def test_full_heap_is_fault_1(size: str) -> None:
    with pytest.raises(SimFault, match="heap full"):
        run(f"int main() {{ out[0] = (intptr_t)mem_alloc({size}); return 0; }}")


def test_fixed_size_blocks_come_back_last_first() -> None:
    body = """
    int main() {
        fsb_allocator_t blocks = fsb_alloc(13, 3);
        void *a = fsb_get(blocks), *b = fsb_get(blocks), *c = fsb_get(blocks);
        out[0] = fsb_get(blocks) == NULL;
        out[1] = (char *)b - (char *)a; out[2] = (char *)c - (char *)b;
        fsb_free(blocks, a); fsb_free(blocks, c);
        out[3] = fsb_get(blocks) == c; out[4] = fsb_get(blocks) == a;
        return 0;
    }"""
    dpu, _ = run(body)
    assert out(dpu, 5) == [1, 16, 16, 1, 1]


def test_buddy_blocks_never_overlap_and_merge_again() -> None:
    body = """
    int main() {
        buddy_init(4096);
        unsigned char *held[32];
        uint32_t size[32], seed = 1;
        for (int i = 0; i < 32; i++) held[i] = NULL;
        for (int step = 0; step < 400; step++) {
            seed = seed * 1103515245 + 12345;
            uint32_t k = seed >> 27;
            if (held[k]) {
                for (uint32_t j = 0; j < size[k]; j++) out[0] += held[k][j] != (unsigned char)k;
                buddy_free(held[k] + (size[k] > 16 ? 5 : 0));
                held[k] = NULL;
            } else {
                size[k] = 1 + ((seed >> 8) & 255);
                held[k] = buddy_alloc(size[k]);
                if (held[k]) { memset(held[k], k, size[k]); out[1]++; out[2] |= (intptr_t)held[k] & 7; }
            }
        }
        for (int i = 0; i < 32; i++) buddy_free(held[i]);
        out[3] = buddy_alloc(4096) != NULL;
        out[4] = buddy_alloc(1) == NULL; out[5] = errno;
        buddy_reset();
        out[6] = buddy_alloc(4097) == NULL; out[7] = errno;
        char *p = buddy_alloc(20); strcpy(p, "buddy");
        p = buddy_realloc(p, 600); out[8] = strcmp(p, "buddy");
        return 0;
    }"""
    dpu, _ = run(body, stack=2048)
    values = out(dpu, 9)
    assert values[0] == 0
    assert values[1] > 100
    assert values[2:] == [0, 1, 1, 49, 1, 28, 0]


def test_memory_functions_like_c(rng_seed: int = 5) -> None:
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
        out[0] = memcmp("abc", "abd", 3); out[1] = memcmp("b", "a", 1); out[2] = memcmp("x", "y", 0);
        out[3] = (char *)memchr("hello", 'l', 5) - (char *)"hello";
        return 0;
    }"""
    rng = np.random.default_rng(rng_seed)
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
        strcpy(part, "ab"); strcat(part, "cd"); strncat(part, "efgh", 2); out[9] = strcmp(part, "abcdef");
        strncpy(part, "q", 5); out[10] = part[1] + part[4]; out[11] = part[5];
        int words = 0;
        for (word = strtok_r(text, ", ;", &state); word; word = strtok_r(NULL, ", ;", &state)) words++;
        out[12] = words; strcpy(part, "AbC"); out[13] = strcmp(strlwr(part), "abc");
        out[14] = strcmp(strrev(strupr(part)), "CBA");
        out[15] = atoi(" -123x"); out[16] = atol("99999999999");
        out[17] = atol("99999999999999999999") == INT64_MAX; out[18] = errno; out[19] = strnlen("abc", 2);
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
            records[i].a = 250 + i; records[i].b = 1000 * i; records[i].c = -i; records[i].e = 1.5f * i;
            records[i].d = 1LL << (40 + i); for (int j = 0; j < 5; j++) records[i].f[j] = i + j;
        }
        local = records[3];
        out[6] = local.a; out[7] = local.b; out[8] = local.c; out[9] = local.d; out[10] = local.e * 2;
        out[11] = local.f[4]; local.c = 77; records[0] = local; records[1] = records[0];
        out[12] = records[1].c; out[13] = records[1].f[3];
        odds[1].y = 0x12345678; odds[1].z = 0x123456789abcdefLL; odds[0].z = -1;
        out[14] = odds[1].y; out[15] = odds[1].z; out[16] = odds[0].z; out[17] = odds[1].x = 9;
        __mram_ptr int32_t *p = (__mram_ptr int32_t *)DPU_MRAM_HEAP_POINTER; p[3] = 5; out[18] = p[3];
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
            out[0] = perfcounter_get(); out[1] = check_stack(); out[2] = ++runs; out[3] = CLOCKS_PER_SEC;
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
