/* Barriers one after the other, or as many turns of the empty loop. */
#include <barrier.h>
#include <defs.h>
#include <stdint.h>

__host uint32_t turns;
BARRIER_INIT(all, NR_TASKLETS);

int main(void) {
  for (uint32_t i = 0; i < turns; i++) {
#ifdef EMPTY
    __asm__ volatile("");
#else
    barrier_wait(&all);
#endif
  }
  return 0;
}
