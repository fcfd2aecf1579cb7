// Which tasklet issues next, and when: round robin over those that may.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "machine.h"

namespace upmem {

struct Pick {
  uint64_t cycle;
  uint32_t position;
  bool found;
};

struct Queue {
  Tasklet* ready[kMaxTasklets];
  Tasklet nobody;  // stands there alone when all wait, never ready
  uint32_t count = 0, next = 0;
  uint64_t horizon = 0;
  bool in_order = false;  // by `ready`, and will stay so: see settle_order()

  Queue() { nobody.ready = ~0ull; }

  // The tasklets that can issue within one distance of `cycle`, the one after `last` first.
  [[gnu::noinline]] void rebuild(Machine& m, uint64_t cycle, uint64_t until) {
    count = next = 0;
    in_order = false;
    horizon = until;
    const uint64_t near = cycle + m.params.issue_distance_cycles;
    for (uint32_t left = m.running; left; left &= left - 1) {
      const auto t = static_cast<uint32_t>(std::countr_zero(left));
      if (m.tasklets[t].ready > near) {
        horizon = std::min(horizon, m.tasklets[t].ready);
        continue;
      }
      if (t <= m.last) ++next;
      ready[count++] = &m.tasklets[t];
    }
    if (next >= count) next = 0;
    if (count == 0) ready[0] = &nobody;
  }

  // The first in turn that may issue in `cycle`; without one, the cycle of the next event.
  [[gnu::noinline]] Pick pick(uint32_t from, uint64_t cycle, uint64_t distance) {
    uint64_t soonest = ~0ull;
    for (uint32_t k = 0, j = from; k < count; ++k) {
      if (ready[j]->ready <= cycle) return {cycle, j, true};
      soonest = std::min(soonest, ready[j]->ready);
      if (++j == count) j = 0;
    }
    if (settle_order(distance)) from = 0;
    return {std::min(soonest, horizon), from, false};
  }

  // Nobody may issue now. If all become ready in different cycles within one distance, they issue
  // in that order and, as each is then ready a distance later, again and again until an event.
  bool settle_order(uint64_t distance) {
    if (count == 0) return false;
    const auto sooner = [](const Tasklet* a, const Tasklet* b) { return a->ready < b->ready; };
    Tasklet* sorted[kMaxTasklets];
    std::copy_n(ready, count, sorted);
    std::sort(sorted, sorted + count, sooner);
    for (uint32_t i = 1; i < count; ++i)
      if (sorted[i]->ready == sorted[i - 1]->ready) return false;
    if (sorted[count - 1]->ready - sorted[0]->ready >= distance) return false;
    std::copy_n(sorted, count, ready);
    return in_order = true;
  }
};

// Any form: true if other tasklets, or the order of this one, may have changed.
inline bool run_general(Machine& m, Tasklet& t, uint64_t cycle) {
  const auto self = static_cast<uint32_t>(&t - m.tasklets.data());
  const uint32_t running = m.running;
  t.pc %= kIramInstructions;
  execute(m, self, m.code->rows[t.pc], cycle);
  return m.running != running || m.iram.count || t.ready != cycle + m.params.issue_distance_cycles;
}

}  // namespace upmem
