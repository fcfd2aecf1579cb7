// The fast loop: the cycles of the plain loop, for runs without options.
//
// Tasklets that may issue soon stand in `ready`, in order of number; those asleep or in a DMA
// transfer do not, and `horizon` is the first cycle in which one of these comes back. While at
// least 11 stand there, each cycle simply takes the next. Every instruction executes in the cycle
// in which it issues, one after the other, so what one tasklet stores the others load in order.
#include <algorithm>
#include <bit>

#include "handlers.h"
#include "machine.h"

namespace upmem {
namespace {

using namespace fast;

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
bool run_general(Machine& m, Tasklet& t, uint64_t cycle) {
  const auto self = static_cast<uint32_t>(&t - m.tasklets.data());
  const uint32_t running = m.running;
  t.pc %= kIramInstructions;
  execute(m, self, m.code->rows[t.pc], cycle);
  return m.running != running || m.iram.count ||
         t.ready != cycle + m.params.issue_distance_cycles;
}

#define HANDLE(name, form, call) \
  case handler(OP_##name, form): done = call; break;
#define HANDLE_ALU_FORM(name, form) HANDLE(name, form, (alu<OP_##name, form>(*t, d)))
#define HANDLE_ALU(name)          \
  HANDLE_ALU_FORM(name, RR)       \
  HANDLE_ALU_FORM(name, RI)       \
  HANDLE_ALU_FORM(name, IR)       \
  HANDLE_ALU_FORM(name, JUMP_RR)  \
  HANDLE_ALU_FORM(name, JUMP_RI)  \
  HANDLE_ALU_FORM(name, JNZ_RR)   \
  HANDLE_ALU_FORM(name, JNZ_RI)   \
  HANDLE_ALU_FORM(name, SET_RR)   \
  HANDLE_ALU_FORM(name, SET_RI)   \
  HANDLE_ALU_FORM(name, WIDE_RR)  \
  HANDLE_ALU_FORM(name, WIDE_RI)
#define HANDLE_UNARY(name) HANDLE(name, RR, unary<OP_##name>(*t, d))
#define HANDLE_SHADD(name) HANDLE(name, RR, shift_add<OP_##name>(*t, d))
#define HANDLE_STEP(name)                             \
  HANDLE(name, RR, (step<OP_##name, RR>(*t, d)))      \
  HANDLE(name, JUMP_RR, (step<OP_##name, JUMP_RR>(*t, d)))
#define HANDLE_PAIR(name) HANDLE(name, RR, move_pair<OP_##name>(*t, d))
#define HANDLE_LOAD(name) HANDLE(name, RR, load<OP_##name>(*t, d, memory))
#define HANDLE_STORE(name)                                      \
  HANDLE(name, RR, (store<OP_##name, RR>(*t, d, memory)))       \
  HANDLE(name, RI, (store<OP_##name, RI>(*t, d, memory)))
#define HANDLE_CALL(name)            \
  HANDLE(name, RR, call<RR>(*t, d))  \
  HANDLE(name, RI, call<RI>(*t, d))
#define HANDLE_ATOMIC(name) HANDLE(name, RR, atomic<OP_##name>(*t, d, m))
#define HANDLE_NONE(name) HANDLE(name, RR, skip(*t))
#define HANDLE_STOREID(name)
#define HANDLE_DMA(name)
#define HANDLE_THREAD(name)
#define HANDLE_STOP(name)
#define HANDLE_TIME(name)
#define HANDLE_CODE(name)

Exit loop(Machine& m, uint64_t until) {
  const fast::Memory memory{m.wram, static_cast<uint32_t>(m.params.wram_bytes)};
  const Decoded* const code = m.code->decoded.data();
  const uint64_t distance = m.params.issue_distance_cycles;
  Queue queue;
  queue.rebuild(m, m.cycle, until);
  Tasklet* t = &m.tasklets[m.last];
  uint64_t cycle = m.cycle;
  uint32_t next = queue.next;
  for (;;) {
    if (cycle >= queue.horizon) [[unlikely]] {
      m.cycle = cycle;
      m.last = static_cast<uint32_t>(t - m.tasklets.data());
      if (cycle >= until) return Exit::BUDGET;
      queue.rebuild(m, cycle, until);
      next = queue.next;
    }
    if (queue.ready[next]->ready > cycle) [[unlikely]] {
      if (queue.in_order) {
        cycle = std::min(queue.ready[next]->ready, queue.horizon);
        continue;
      }
      // By value, so that both stay in registers.
      const Pick pick = queue.pick(next, cycle, distance);
      next = pick.position;
      cycle = pick.cycle;
      if (!pick.found) continue;
    }
    t = queue.ready[next];
    const Decoded& d = code[t->pc];
    t->ready = cycle + distance;
    bool done = false;
    switch (d.handler) {
#define OP(name, kind, cls, result) HANDLE_##kind(name)
#include "isa.def"
      default: break;
    }
    if (!done) [[unlikely]] {
      m.cycle = cycle;
      if (run_general(m, *t, cycle)) {
        t->issued += 1;
        cycle += 1;
        m.last = static_cast<uint32_t>(t - m.tasklets.data());
        m.cycle = cycle;
        if (m.iram.count) return Exit::IRAM;
        if (!m.running) return m.settle();
        queue.rebuild(m, cycle, until);
        next = queue.next;
        continue;
      }
    }
    t->issued += 1;
    cycle += 1;
    if (++next == queue.count) next = 0;
  }
}

}  // namespace

Exit Machine::run_fast(uint64_t until) {
  try {
    return running ? loop(*this, until) : settle();
  } catch (const Fault& raised) {
    fault = raised;
    return Exit::FAULTED;
  }
}

}  // namespace upmem
