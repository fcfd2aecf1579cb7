/* What the programs share: the block size, its loop, and elements of 64 bits. */
#ifndef PRIM_COMMON_H
#define PRIM_COMMON_H

#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>

#define BLOCK 1024 /* bytes a transfer */

BARRIER_INIT(ready, NR_TASKLETS);

static inline uint32_t heap(void) { return (uint32_t)DPU_MRAM_HEAP_POINTER; }

static inline void fetch(uint32_t from, void *to, uint32_t bytes) {
  mram_read((__mram_ptr void const *)from, to, bytes);
}

static inline void store(void const *from, uint32_t to, uint32_t bytes) {
  mram_write(from, (__mram_ptr void *)to, bytes);
}

/* Tasklet 0 empties the heap before anybody allocates. */
static inline void start(void) {
  if (me() == 0) mem_reset();
  barrier_wait(&ready);
}

#endif
