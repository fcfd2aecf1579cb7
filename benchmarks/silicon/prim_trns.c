/* Steps two and three of an in-place transposition of int64: the matrix [rows][height][width] has
   each [height][width] transposed by one launch; then the second launch moves vectors of `height`
   elements along the cycles of their permutation, one bit for each telling what has been moved.
   The structure of PrIM's TRNS. */
#include "prim_common.h"

__host uint32_t rows;
__host uint32_t height;
__host uint32_t width;
__host uint32_t phase;

MUTEX_INIT(tile_mutex);
static uint32_t next_tile;

static uint32_t take(void) {
  mutex_lock(tile_mutex);
  uint32_t tile = next_tile;
  next_tile++;
  mutex_unlock(tile_mutex);
  return tile;
}

/* A block of at most 2048 bytes a transfer. */
__attribute__((noinline)) static void fetch_tile(uint32_t from, int64_t *to, uint32_t count) {
  int rest = count;
  while (rest > 0) {
    int part = rest * sizeof(int64_t) > 2048 ? (int)(2048 / sizeof(int64_t)) : rest;
    fetch(from + (count - rest) * sizeof(int64_t), to + (count - rest), part * sizeof(int64_t));
    rest -= part;
  }
}

__attribute__((noinline)) static void store_tile(uint32_t to, int64_t *from, uint32_t count) {
  int rest = count;
  while (rest > 0) {
    int part = rest * sizeof(int64_t) > 2048 ? (int)(2048 / sizeof(int64_t)) : rest;
    store(from + (count - rest), to + (count - rest) * sizeof(int64_t), part * sizeof(int64_t));
    rest -= part;
  }
}

/* One bit a tile, the tiles of a word of 8 bytes in MRAM being eight. */
__attribute__((noinline)) static int is_moved(uint32_t moved, uint32_t tile, int64_t *word) {
  mutex_lock(tile_mutex);
  fetch(moved + tile / 8 * 8, word, 8);
  int found = (*word & (1 << tile % 8)) != 0;
  mutex_unlock(tile_mutex);
  return found;
}

__attribute__((noinline)) static int test_and_set(uint32_t moved, uint32_t tile, int64_t *word) {
  mutex_lock(tile_mutex);
  fetch(moved + tile / 8 * 8, word, 8);
  int found = (*word & (1 << tile % 8)) != 0;
  if (!found) {
    *word |= 1 << tile % 8;
    store(word, moved + tile / 8 * 8, 8);
  }
  mutex_unlock(tile_mutex);
  return found;
}

static int inside_tiles(void) {
  start();
  uint32_t m = height, n = width, count = m * n, base = heap();
  int64_t *in = mem_alloc(count * sizeof(int64_t)), *out = mem_alloc(count * sizeof(int64_t));
  for (uint32_t tile = me(); tile < rows; tile += NR_TASKLETS) {
    fetch_tile(base + tile * count * sizeof(int64_t), in, count);
    for (uint32_t i = 0; i < count; i++) out[i * m - (count - 1) * (i / n)] = in[i];
    store_tile(base + tile * count * sizeof(int64_t), out, count);
  }
  return 0;
}

static int between_tiles(void) {
  start();
  uint32_t m = height, n = width, base = heap(), last = rows * n - 1;
  uint32_t moved = base + rows * n * m * sizeof(int64_t);
  int64_t *held = mem_alloc(m * sizeof(int64_t)), *next = mem_alloc(m * sizeof(int64_t));
  int64_t *word = mem_alloc(8);
  uint32_t tile = take();
  while (tile < last) {
    uint32_t goal = tile * rows - last * (tile / n);
    if (goal == tile) {
      tile = take();
      continue;
    }
    fetch_tile(base + tile * m * sizeof(int64_t), held, m);
    int done = is_moved(moved, tile, word);
    for (; !done; goal = goal * rows - last * (goal / n)) {
      fetch_tile(base + goal * m * sizeof(int64_t), next, m);
      done = test_and_set(moved, goal, word);
      if (!done) store_tile(base + goal * m * sizeof(int64_t), held, m);
      for (uint32_t i = 0; i < m; i++) held[i] = next[i];
    }
    tile = take();
  }
  return 0;
}

int main(void) { return phase ? between_tiles() : inside_tiles(); }
