#include "watch.h"

namespace upmem {

void Watch::start(const Machine&) { histogram.assign(kIramInstructions, 0); }

void Watch::issue(const Machine& m, uint32_t tasklet, uint64_t) {
  histogram[m.tasklets[tasklet].pc] += 1;
}

void Watch::load(const Machine&, uint32_t, uint32_t, uint32_t) {}
void Watch::store(const Machine&, uint32_t, uint32_t, uint32_t) {}
void Watch::dma(const Machine&, const Tasklet&, uint32_t, uint32_t, uint32_t, uint8_t) {}

}  // namespace upmem
