/* Keeps the odd ones of int64 numbers, in order; the structure of PrIM's SEL. */
#include "prim_common.h"

__host uint32_t bytes;
__host uint32_t kept;
static uint32_t passed[NR_TASKLETS]; /* what the tasklets before kept in this round */

/* x % 2 == 0. UPMEM's compiler clears the upper half and tests both (ld, and, move, two branches);
   clang sees that the upper half is zero and tests one, unless it can't see it. */
static inline int is_even(int64_t x) {
#ifdef SDK_FORM
  uint32_t low = (uint32_t)x & 1, high;
  __asm__ volatile("" : "+r"(low));
  __asm__ volatile("move %0, 0" : "=r"(high));
  if (low != 0) return 0;
  __asm__ volatile("" : "+r"(high));
  return high == 0;
#else
  return x % 2 == 0;
#endif
}

__attribute__((noinline)) static uint32_t select(int64_t *out, int64_t *in) {
  uint32_t pos = 0;
#pragma unroll
  for (unsigned int j = 0; j < BLOCK / sizeof(int64_t); j++) {
    if (!is_even(in[j])) {
      out[pos] = in[j];
      pos++;
    }
  }
  return pos;
}

static uint32_t before(uint32_t count) {
  uint32_t sum = 0;
  if (me() != 0) {
    handshake_wait_for(me() - 1);
    sum = passed[me()];
  }
  if (me() < NR_TASKLETS - 1) {
    passed[me() + 1] = sum + count;
    handshake_notify();
  }
  return sum;
}

int main(void) {
  start();
  uint32_t from = heap(), to = from + bytes;
  int64_t *in = mem_alloc(BLOCK), *out = mem_alloc(BLOCK);
  if (me() == NR_TASKLETS - 1) kept = 0;
  barrier_wait(&ready);
  for (uint32_t at = me() * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
    fetch(from + at, in, BLOCK);
    uint32_t count = select(out, in);
    uint32_t sum = before(count);
    barrier_wait(&ready);
    store(out, to + (kept + sum) * sizeof(int64_t), count * sizeof(int64_t));
    if (me() == NR_TASKLETS - 1) kept += sum + count;
  }
  return 0;
}
