/* Rows of int32 times a vector, two rows a turn; the structure of PrIM's GEMV: a whole block is
   fetched of the row and of the vector however short the row is. */
#include "prim_common.h"

#define COUNT ((int)(BLOCK / sizeof(int32_t)))

__host uint32_t rows;
__host uint32_t columns;

__attribute__((noinline)) static void multiply(int32_t *c, int32_t *a, int32_t *b, int pos) {
  for (int i = 0; i < COUNT; i++) c[pos] += a[i] * b[i];
}

int main(void) {
  start();
  uint32_t turns = rows / (2 * NR_TASKLETS), rest = rows % (2 * NR_TASKLETS);
  uint32_t own = 2 * turns, first = me() * own;
  if (2 * me() < rest) own += 2;
  first += 2 * me() < rest ? 2 * me() : rest;
  uint32_t vector = heap() + rows * columns * sizeof(int32_t);
  uint32_t results = vector + columns * sizeof(int32_t) + first * sizeof(int32_t);
  int32_t *a = mem_alloc(BLOCK), *b = mem_alloc(BLOCK), *c = mem_alloc(8);
  for (uint32_t i = first; i < first + own; i += 2) {
    uint32_t a_at = heap() + i * columns * sizeof(int32_t), b_at = vector;
    c[0] = 0;
    c[1] = 0;
    for (unsigned int pos = 0; pos < 2 && i + pos < rows; pos++) {
      int n;
      for (n = 0; n < (int)columns - COUNT; n += COUNT) {
        fetch(a_at, a, BLOCK);
        fetch(b_at, b, BLOCK);
        multiply(c, a, b, pos);
        a_at += BLOCK;
        b_at += BLOCK;
      }
      fetch(a_at, a, BLOCK);
      fetch(b_at, b, BLOCK);
      for (int j = 0; j < (int)columns - n; j++) c[pos] += a[j] * b[j];
      a_at += (columns - n) * sizeof(int32_t);
      b_at = vector;
    }
    store(c, results, 8);
    results += 8;
  }
  return 0;
}
