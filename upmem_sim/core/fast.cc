// The run-ahead loop: what a tasklet does and when it issues are settled apart.
//
// A tasklet whose turn it is executes at one go up to the next instruction that other tasklets, the
// DMA engine or the clock can see (an event), at most kQuantum instructions. The cycles in which
// these issue follow from the rules alone: while nothing happens, each tasklet issues once a round,
// and rounds are counted, not walked. An event executes in its own cycle.
//
// This gives what the interleaved order gives as long as no tasklet reads or writes a word that
// another one, ahead at the same time, has written (or read). Ahead watches every access: one that
// would break this waits for its own cycle, as an event does. If the other tasklet is still ahead
// then, all are taken back to what they have issued, and the interleaved loop goes on for a while.
#include <algorithm>
#include <memory>

#include "ahead.h"
#include "handlers.h"
#include "machine.h"
#include "queue.h"

namespace upmem {
namespace {

using namespace fast;

constexpr uint64_t kFirstRefuge = 1 << 10;  // cycles to interleave after a conflict
constexpr uint64_t kLastRefuge = 1 << 20;   // doubled each time, up to this

template <Op op>
[[gnu::always_inline]] inline bool load(Tasklet& t, uint32_t& pc, const Decoded& d,
                                        const Memory& memory, Ahead& ahead, Ahead::Mark mark) {
  uint32_t address;
  if (!locate<op>(t, d, memory, address)) [[unlikely]]
    return false;
  if (!ahead.read<access_log(op)>(mark, address)) [[unlikely]]
    return false;
  load_from<op>(t, d, memory, address);
  pc += 1;
  return true;
}

template <Op op, Form form>
[[gnu::always_inline]] inline bool store(Tasklet& t, uint32_t& pc, const Decoded& d,
                                         const Memory& memory, Ahead& ahead, Ahead::Mark mark) {
  uint32_t address;
  if (!locate<op>(t, d, memory, address)) [[unlikely]]
    return false;
  if (!ahead.write<access_log(op)>(mark, address)) [[unlikely]]
    return false;
  ahead.save(mark, memory.wram, address, access_log(op));
  store_to<op, form>(t, d, memory, address);
  pc += 1;
  return true;
}

[[gnu::noinline]] void run_pure(Machine& m, Tasklet& t, uint32_t& pc, uint32_t self) {
  t.pc = pc;
  execute(m, self, m.code->rows[pc], 0);
  pc = t.pc;
}

#define TASKLET t, pc, d
#include "dispatch.h"
#define HANDLE_LOAD(name) HANDLE(name, RR, load<OP_##name>(TASKLET, memory, ahead, mark))
#define HANDLE_STORE(name)                                               \
  HANDLE(name, RR, (store<OP_##name, RR>(TASKLET, memory, ahead, mark))) \
  HANDLE(name, RI, (store<OP_##name, RI>(TASKLET, memory, ahead, mark)))
#define HANDLE_ATOMIC(name)

// Executes up to `limit` instructions before an event; how many.
uint32_t run_ahead(Machine& m, Ahead& ahead, Tasklet& t, uint32_t self, Ahead::Mark mark,
                   uint32_t limit) {
  const Memory memory{m.wram, static_cast<uint32_t>(m.params.wram_bytes)};
  const Decoded* const code = m.code->decoded.data();
  uint32_t pc = t.pc, count = 0;
  for (; count < limit; ++count) {
    const Decoded& d = code[pc];
    bool done = false;
    switch (d.handler) {
#define OP(name, kind, cls, result) HANDLE_##kind(name)
#include "isa.def"
      HANDLE_FRAME
      case kPure:
        run_pure(m, t, pc, self);
        done = true;
        break;
      case kLength:
        done = length_fits(m, t, pc);
        if (done) run_pure(m, t, pc, self);
        break;
      default:
        break;
    }
    if (!done) [[unlikely]]
      break;
  }
  t.pc = pc;
  return count;
}

// Executes instructions that have issued once more, after they were taken back.
void replay(Machine& m, Tasklet& t, uint32_t self, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    t.pc %= kIramInstructions;
    execute(m, self, m.code->rows[t.pc], 0);
  }
}

// Whether the event of `t` may execute in its cycle with the others as far ahead as they are.
bool may_execute(const Machine& m, Ahead& ahead, const Tasklet& t) {
  const Row& row = m.code->rows[t.pc % kIramInstructions];
  if (row.op >= OP_COUNT) return true;
  const uint32_t ra = t.r[row.ra];
  switch (kOpKinds[row.op]) {
    case Kind::LOAD:
    case Kind::STORE:
    case Kind::STOREID: {
      const uint32_t bytes = access_bytes(static_cast<Op>(row.op));
      const uint32_t address = ra + static_cast<uint32_t>(row.off);
      if (uint64_t{address} + bytes > m.params.wram_bytes) return true;  // a fault
      return kOpKinds[row.op] == Kind::LOAD ? ahead.may_read_now(address, bytes)
                                            : ahead.may_write_now(address, bytes);
    }
    case Kind::DMA: {
      if (row.op == OP_ldmai) return false;  // replaces code that others may have executed
      const uint32_t bytes = 8 * (1 + ((static_cast<uint32_t>(row.off) + (ra >> 24)) & 0xff));
      const uint32_t address = ra & 0x00fffff8u;
      if (uint64_t{address} + bytes > m.params.wram_bytes) return true;
      return row.op == OP_ldma ? ahead.may_write_now(address, bytes)
                               : ahead.may_read_now(address, bytes);
    }
    case Kind::THREAD:
      return row.op != OP_clr_run;  // the target stops between two instructions
    default:
      return true;
  }
}

// Lets whole rounds pass, as many as no tasklet has to execute in and nobody comes back in.
bool skip_rounds(Ahead& ahead, Queue& queue, uint32_t next, uint64_t& cycle, uint64_t distance,
                 const Tasklet* base) {
  const uint32_t count = queue.count;
  if (!queue.in_order && count < distance) return false;
  const uint64_t period = queue.in_order ? distance : count;
  uint64_t rounds = (queue.horizon - cycle) / period;
  for (uint32_t k = 0, j = next; k < count; ++k) {
    const Tasklet& t = *queue.ready[j];
    if (!queue.in_order && t.ready > cycle + k) return false;
    rounds = std::min<uint64_t>(rounds, t.ahead);
    if (rounds == 0) return false;
    if (++j == count) j = 0;
  }
  for (uint32_t k = 0, j = next; k < count; ++k) {
    Tasklet& t = *queue.ready[j];
    t.ready =
        queue.in_order ? t.ready + rounds * distance : cycle + (rounds - 1) * period + k + distance;
    t.issued += rounds;
    t.ahead -= static_cast<uint32_t>(rounds);
    if (!t.ahead) ahead.close(static_cast<uint32_t>(&t - base));
    if (++j == count) j = 0;
  }
  cycle += rounds * period;
  return true;
}

// One stretch of running ahead; BUDGET before `until` means that a conflict has been met.
class Run {
 public:
  Run(Machine& machine, Ahead& bookkeeping, uint64_t end)
      : m_(machine), ahead_(bookkeeping), until_(end), cycle_(machine.cycle) {}

  Exit go() {
    const uint64_t distance = m_.params.issue_distance_cycles;
    queue_.rebuild(m_, cycle_, until_);
    last_ = &m_.tasklets[m_.last];
    uint32_t until_rounds = 0;  // steps before it is worth looking for whole rounds
    for (;;) {
      if (cycle_ >= queue_.horizon) [[unlikely]] {
        if (cycle_ >= until_) return leave(Exit::BUDGET);
        rebuild();
      }
      Tasklet* t = queue_.ready[queue_.next];
      if (t->ready > cycle_) {
        if (queue_.in_order) {
          cycle_ = std::min(t->ready, queue_.horizon);
          continue;
        }
        const Pick pick = queue_.pick(queue_.next, cycle_, distance);
        queue_.next = pick.position;
        cycle_ = pick.cycle;
        if (!pick.found) continue;
        t = queue_.ready[queue_.next];
      }
      if (t->ahead == 0 && !start_segment(*t)) {
        if (!may_execute(m_, ahead_, *t)) return leave(Exit::BUDGET);
        const Exit exit = event(*t);
        if (exit != Exit::BUDGET) return leave(exit);
        continue;
      }
      last_ = t;
      t->ready = cycle_ + distance;
      t->issued += 1;
      if (--t->ahead == 0) ahead_.close(index(*t));
      cycle_ += 1;
      if (++queue_.next == queue_.count) queue_.next = 0;
      if (until_rounds-- == 0) {
        until_rounds = queue_.count;
        if (cycle_ < queue_.horizon)
          skip_rounds(ahead_, queue_, queue_.next, cycle_, distance, m_.tasklets.data());
      }
    }
  }

  // The state as the interleaved loop would have left it before `cycle_`.
  Exit leave(Exit exit) {
    ahead_.take_back(m_, replay);
    m_.cycle = cycle_;
    m_.last = index(*last_);
    return exit;
  }

 private:
  uint32_t index(const Tasklet& t) const { return static_cast<uint32_t>(&t - m_.tasklets.data()); }

  void rebuild() {
    m_.last = index(*last_);
    queue_.rebuild(m_, cycle_, until_);
  }

  bool start_segment(Tasklet& t) {
    const uint16_t first = m_.code->decoded[t.pc].handler;
    if (first == kGeneral || first == handler(OP_acquire, RR) || first == handler(OP_release, RR))
      return false;
    const uint32_t self = index(t);
    const Ahead::Mark mark = ahead_.open(t, self);
    t.ahead = run_ahead(m_, ahead_, t, self, mark, kQuantum);
    ahead_.set_length(self, t.ahead);
    if (t.ahead == 0) ahead_.close(self);
    return t.ahead != 0;
  }

  // An instruction in its own cycle; BUDGET: go on.
  Exit event(Tasklet& t) {
    m_.cycle = cycle_;
    t.ready = cycle_ + m_.params.issue_distance_cycles;
    const bool changed = run_general(m_, t, cycle_);
    t.issued += 1;
    cycle_ += 1;
    last_ = &t;
    if (!changed) {
      if (++queue_.next == queue_.count) queue_.next = 0;
      return Exit::BUDGET;
    }
    if (m_.iram.count) return Exit::IRAM;
    if (!m_.running) return m_.settle();
    rebuild();
    return Exit::BUDGET;
  }

  Machine& m_;
  Ahead& ahead_;
  const uint64_t until_;
  uint64_t cycle_;
  Queue queue_;
  Tasklet* last_ = nullptr;
};

// Per thread, as one DPU after the other uses it; numbers go on, so that old marks mean nothing.
Ahead& bookkeeping(uint64_t wram_bytes) {
  thread_local std::unique_ptr<Ahead> made;
  thread_local uint64_t bytes = 0;
  if (!made || bytes != wram_bytes) made = std::make_unique<Ahead>(bytes = wram_bytes);
  return *made;
}

}  // namespace

Exit Machine::run_fast(uint64_t until) {
  if (!running) return settle();
  Ahead& ahead = bookkeeping(params.wram_bytes);
  for (;;) {
    const uint64_t began = cycle;
    Run run(*this, ahead, until);
    try {
      const Exit exit = run.go();
      if (exit != Exit::BUDGET || cycle >= until) return exit;
    } catch (const Fault& raised) {
      fault = raised;
      return run.leave(Exit::FAULTED);
    }
    // A conflict: the more often, the longer the refuge.
    const bool often = cycle - began < 8 * refuge;
    refuge = often ? std::min(2 * refuge, kLastRefuge) : kFirstRefuge;
    const Exit exit = run_interleaved(std::min(until, cycle + refuge));
    if (exit != Exit::BUDGET || cycle >= until) return exit;
  }
}

}  // namespace upmem
