/* Histograms that several tasklets share. Barriers and mutexes are made by hand at run time. */
#include <alloc.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>

#include "common.h"

__host struct arguments ARGUMENTS;
BARRIER_INIT(everybody, NR_TASKLETS);
ATOMIC_BIT_INIT(bit_of_barrier)[TABLES];
ATOMIC_BIT_INIT(bit_of_mutex)[TABLES];
static barrier_t meeting[TABLES];
static mutex_id_t lock[TABLES];
static uint32_t *table[TABLES];

static void make_locks(void) {
    for (uint32_t t = 0; t < TABLES; t++) {
        const uint8_t members = NR_TASKLETS / TABLES + (t < NR_TASKLETS % TABLES);
        meeting[t].wait_queue = 0xff;
        meeting[t].count = members;
        meeting[t].initial_count = members;
        meeting[t].lock = (uint8_t)(uintptr_t)&ATOMIC_BIT_GET(bit_of_barrier)[t];
        lock[t] = (mutex_id_t)&ATOMIC_BIT_GET(bit_of_mutex)[t];
    }
}

int main(void) {
    const uint32_t mine = me() % TABLES;
    if (me() == 0) {
        mem_reset();
        make_locks();
    }
    barrier_wait(&everybody);
    if (me() < TABLES) {
        table[mine] = mem_alloc(BINS * sizeof(uint32_t));
        for (uint32_t i = 0; i < BINS; i++) table[mine][i] = 0;
    }
    barrier_wait(&meeting[mine]);
    uint32_t *block = mem_alloc(BLOCK);
    for (uint32_t at = me() * BLOCK; at < ARGUMENTS.bytes; at += BLOCK * NR_TASKLETS) {
        const uint32_t left = ARGUMENTS.bytes - at, bytes = left < BLOCK ? left : BLOCK;
        mram_read((__mram_ptr void const *)((uint32_t)DPU_MRAM_HEAP_POINTER + at), block, bytes);
        for (uint32_t i = 0; i < bytes / sizeof *block; i++) {
            mutex_lock(lock[mine]);
            table[mine][block[i] * BINS / VALUES]++;
            mutex_unlock(lock[mine]);
        }
    }
    barrier_wait(&everybody);
    for (uint32_t i = me(); i < BINS; i += NR_TASKLETS)
        for (uint32_t t = 1; t < TABLES; t++) table[0][i] += table[t][i];
    barrier_wait(&everybody);
    if (me() == 0) mram_write(table[0], DPU_MRAM_HEAP_POINTER + ARGUMENTS.room, BINS * sizeof(uint32_t));
    return 0;
}
