"""The DPU's run-time library: synchronisation and allocation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from runtime_harness import HEADERS, out, run

from upmem_sim.cc import compile_c
from upmem_sim.errors import SimFault
from upmem_sim.isa import OP_INDEX


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


@pytest.mark.parametrize("notifier", [3, 24, 99, 255, 256, -1])
def test_waiting_for_a_tasklet_that_there_is_not_is_a_fault(notifier: int) -> None:
    body = f"int main() {{ return me() ? 0 : handshake_wait_for({notifier}); }}"
    with pytest.raises(
        SimFault, match=r"code 3, assertion failed in handshake_wait_for$"
    ) as caught:
        run(body, 3)
    assert caught.value.line is not None


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
    assert all(a + n <= b for (a, n), (b, _) in pairwise(blocks))
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
                if (held[k]) { memset(held[k], k, size[k]); out[1]++;
                    out[2] |= (intptr_t)held[k] & 7; }
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
