/* b += a, int32, by blocks; the structure of PrIM's VA (github.com/CMU-SAFARI/prim-benchmarks). */
#include "prim_common.h"

__host uint32_t bytes; /* of each array */

__attribute__((noinline)) static void add(int32_t *b, int32_t *a, unsigned int count) {
  for (unsigned int i = 0; i < count; i++) b[i] += a[i];
}

int main(void) {
  start();
  uint32_t first = heap(), second = first + bytes;
  int32_t *a = mem_alloc(BLOCK), *b = mem_alloc(BLOCK);
  for (uint32_t at = me() * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
    uint32_t size = at + BLOCK >= bytes ? bytes - at : BLOCK;
    fetch(first + at, a, size);
    fetch(second + at, b, size);
    add(b, a, size / sizeof(int32_t));
    store(b, second + at, size);
  }
  return 0;
}
