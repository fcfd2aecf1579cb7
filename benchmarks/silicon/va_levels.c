/* c = a + b, int32, in ATiM's loop structure with tiles of 64 elements, at its levels of boundary
   optimisation: 0 a DMA of 8 bytes for each element, 1 DMA of tiles and a check for each element,
   4 no check inside a tile, which is unrolled (ATiM, ISCA 2025). */
#include "prim_common.h"

#define TILE 64

__host uint32_t count;

static int32_t load(uint32_t at, int32_t *word) {
  fetch(at & ~7u, word, 8);
  return word[at / 4 % 2];
}

int main(void) {
  start();
  uint32_t n = count, span = (n * sizeof(int32_t) + 4096) & ~7u;
  uint32_t a_at = heap(), b_at = a_at + span, c_at = b_at + span;
  int32_t *a = mem_alloc(TILE * 4), *b = mem_alloc(TILE * 4), *c = mem_alloc(TILE * 4);
  int32_t *word = mem_alloc(8);
  for (uint32_t turn = 0; turn < (n + NR_TASKLETS * TILE - 1) / (NR_TASKLETS * TILE); turn++) {
    uint32_t base = (turn * NR_TASKLETS + me()) * TILE;
#if LEVEL == 0
    for (uint32_t i = 0; i < TILE; i++)
      if (base + i < n) a[i] = load(a_at + (base + i) * 4, word);
    for (uint32_t i = 0; i < TILE; i++)
      if (base + i < n) b[i] = load(b_at + (base + i) * 4, word);
    for (uint32_t i = 0; i < TILE; i++)
      if (base + i < n) c[i] = a[i] + b[i];
    for (uint32_t i = 0; i < TILE; i++) {
      if (base + i < n) {
        uint32_t at = c_at + (base + i) * 4;
        load(at, word);
        word[at / 4 % 2] = c[i];
        store(word, at & ~7u, 8);
      }
    }
#else
    (void)word;
    (void)load;
    if (LEVEL == 4 && base >= n) continue;
    fetch(a_at + base * 4, a, TILE * 4);
    fetch(b_at + base * 4, b, TILE * 4);
#if LEVEL == 1
    for (uint32_t i = 0; i < TILE; i++)
      if (base + i < n) c[i] = a[i] + b[i];
#else
    uint32_t rest = n - base < TILE ? n - base : TILE;
    if (rest == TILE) {
#pragma unroll
      for (uint32_t i = 0; i < TILE; i++) c[i] = a[i] + b[i];
    } else {
      for (uint32_t i = 0; i < rest; i++) c[i] = a[i] + b[i];
    }
#endif
    store(c, c_at + base * 4, TILE * 4);
#endif
  }
  return 0;
}
