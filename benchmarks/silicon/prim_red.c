/* Sum of int64 by blocks, then over tasklets; the structure of PrIM's RED. */
#include "prim_common.h"

__host uint32_t bytes;
__host int64_t result;
static int64_t sums[NR_TASKLETS];

__attribute__((noinline)) static int64_t reduce(int64_t *a, unsigned int count) {
  int64_t sum = 0;
  for (unsigned int i = 0; i < count; i++) sum += a[i];
  return sum;
}

int main(void) {
  start();
  int64_t *a = mem_alloc(BLOCK), sum = 0;
  for (uint32_t at = me() * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
    uint32_t size = at + BLOCK >= bytes ? bytes - at : BLOCK;
    fetch(heap() + at, a, size);
    sum += reduce(a, size / sizeof(int64_t));
  }
  sums[me()] = sum;
  barrier_wait(&ready);
  if (me() == 0) {
    for (unsigned int t = 1; t < NR_TASKLETS; t++) sum += sums[t];
    result = sum;
  }
  return 0;
}
