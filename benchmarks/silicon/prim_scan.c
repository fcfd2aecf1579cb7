/* Inclusive prefix sum of int64 by two launches: sums of each DPU, then the scan with what the DPUs
   before hold; the structure of PrIM's SCAN-RSS. */
#include "prim_common.h"

__host uint32_t bytes;
__host uint32_t phase;
__host int64_t carry; /* sum of the DPUs before; in phase 0 the result */

#define COUNT (BLOCK / sizeof(int64_t))

static int64_t sums[NR_TASKLETS];
static int64_t total;

__attribute__((noinline)) static int64_t reduce(int64_t *in) {
  int64_t sum = 0;
#pragma unroll
  for (unsigned int j = 0; j < COUNT; j++) sum += in[j];
  return sum;
}

__attribute__((noinline)) static int64_t scan(int64_t *out, int64_t *in) {
  out[0] = in[0];
#pragma unroll
  for (unsigned int j = 1; j < COUNT; j++) out[j] = out[j - 1] + in[j];
  return out[COUNT - 1];
}

__attribute__((noinline)) static void add(int64_t *out, int64_t before) {
#pragma unroll
  for (unsigned int j = 0; j < COUNT; j++) out[j] += before;
}

static int64_t before(int64_t sum) {
  int64_t sofar = 0;
  if (me() != 0) {
    handshake_wait_for(me() - 1);
    sofar = sums[me()];
  }
  if (me() < NR_TASKLETS - 1) {
    sums[me() + 1] = sofar + sum;
    handshake_notify();
  }
  return sofar;
}

static int reduction(void) {
  start();
  int64_t *in = mem_alloc(BLOCK), sum = 0;
  for (uint32_t at = me() * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
    fetch(heap() + at, in, BLOCK);
    sum += reduce(in);
  }
  sums[me()] = sum;
  barrier_wait(&ready);
  if (me() == 0) {
    for (unsigned int t = 1; t < NR_TASKLETS; t++) sum += sums[t];
    carry = sum;
  }
  return 0;
}

static int scanning(void) {
  start();
  uint32_t from = heap(), to = from + bytes;
  int64_t *in = mem_alloc(BLOCK), *out = mem_alloc(BLOCK);
  if (me() == NR_TASKLETS - 1) total = carry;
  barrier_wait(&ready);
  for (uint32_t at = me() * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
    fetch(from + at, in, BLOCK);
    int64_t sum = scan(out, in);
    int64_t sofar = before(sum);
    barrier_wait(&ready);
    add(out, total + sofar);
    store(out, to + at, BLOCK);
    if (me() == NR_TASKLETS - 1) total += sofar + sum; /* read again after the next barrier */
  }
  return 0;
}

int main(void) { return phase ? scanning() : reduction(); }
