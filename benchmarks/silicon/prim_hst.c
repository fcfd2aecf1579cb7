/* Histogram with one set of counters a tasklet, merged at the end; the structure of PrIM's HST-S. */
#include "prim_common.h"

#define DEPTH 12 /* bits of a pixel */

__host uint32_t bytes;
__host uint32_t bins;
static uint32_t *mine[NR_TASKLETS];

__attribute__((noinline)) static void count(uint32_t *histogram, uint32_t nr_bins, uint32_t *pixels,
                                            uint32_t nr_pixels) {
  for (uint32_t j = 0; j < nr_pixels; j++) {
    uint32_t pixel = pixels[j];
    histogram[(pixel * nr_bins) >> DEPTH] += 1;
  }
}

int main(void) {
  start();
  uint32_t nr_bins = bins;
  uint32_t *pixels = mem_alloc(BLOCK);
  uint32_t *histogram = mem_alloc(nr_bins * sizeof(uint32_t));
  mine[me()] = histogram;
  for (unsigned int i = 0; i < nr_bins; i++) histogram[i] = 0;
  barrier_wait(&ready);
  for (uint32_t at = me() * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
    uint32_t size = at + BLOCK >= bytes ? bytes - at : BLOCK;
    fetch(heap() + at, pixels, size);
    count(histogram, nr_bins, pixels, size / sizeof(uint32_t));
  }
  barrier_wait(&ready);
  uint32_t *all = mine[0];
  for (unsigned int i = me(); i < nr_bins; i += NR_TASKLETS) {
    uint32_t sum = 0;
    for (unsigned int t = 0; t < NR_TASKLETS; t++) sum += mine[t][i];
    all[i] = sum;
  }
  barrier_wait(&ready);
  if (me() == 0) store(all, heap() + bytes, nr_bins * sizeof(uint32_t));
  return 0;
}
