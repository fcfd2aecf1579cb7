// The interleaved loop: the cycles of the plain loop, for runs without options, and the refuge of
// the run-ahead loop.
//
// Tasklets that may issue soon stand in `ready`, in order of number; those asleep or in a DMA
// transfer do not, and `horizon` is the first cycle in which one of these comes back. While at
// least 11 stand there, each cycle simply takes the next. Every instruction executes in the cycle
// in which it issues, one after the other, so what one tasklet stores the others load in order.
#include <algorithm>

#include "handlers.h"
#include "machine.h"
#include "queue.h"

namespace upmem {
namespace {

using namespace fast;

template <Op op>
[[gnu::always_inline]] inline bool load(Tasklet& t, uint32_t& pc, const Decoded& d,
                                        const Memory& memory) {
  uint32_t address;
  if (!locate<op>(t, d, memory, address)) [[unlikely]]
    return false;
  load_from<op>(t, d, memory, address);
  pc += 1;
  return true;
}

template <Op op, Form form>
[[gnu::always_inline]] inline bool store(Tasklet& t, uint32_t& pc, const Decoded& d,
                                         const Memory& memory) {
  uint32_t address;
  if (!locate<op>(t, d, memory, address)) [[unlikely]]
    return false;
  store_to<op, form>(t, d, memory, address);
  pc += 1;
  return true;
}

#define TASKLET *t, t->pc, d
#include "dispatch.h"
#define HANDLE_LOAD(name) HANDLE(name, RR, load<OP_##name>(TASKLET, memory))
#define HANDLE_STORE(name)                                  \
  HANDLE(name, RR, (store<OP_##name, RR>(TASKLET, memory))) \
  HANDLE(name, RI, (store<OP_##name, RI>(TASKLET, memory)))
#define HANDLE_ATOMIC(name) HANDLE(name, RR, atomic<OP_##name>(TASKLET, m))

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
      HANDLE_FRAME
      default:
        break;
    }
    // What has no handler, and what breaks a rule.
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

Exit Machine::run_interleaved(uint64_t until) {
  try {
    return running ? loop(*this, until) : settle();
  } catch (const Fault& raised) {
    fault = raised;
    return Exit::FAULTED;
  }
}

}  // namespace upmem
