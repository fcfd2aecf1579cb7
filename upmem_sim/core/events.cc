// What others can see: DMA, atomic bits, thread control, the counter.
#include <algorithm>
#include <cstring>

#include "machine.h"
#include "watch.h"

namespace upmem {
namespace {

// When `work` is done if it starts at `start` and time stands still in every refresh window.
// Windows close the periods, so that a launch begins with a free engine.
uint64_t advance(const Params& p, uint64_t start, uint64_t work) {
  if (!p.refresh_period_cycles) return start + work;
  const uint64_t period = p.refresh_period_cycles * kFraction;
  const uint64_t window = p.refresh_window_cycles * kFraction;
  const uint64_t open = period - window;  // the engine works this long in each period
  uint64_t phase = start % period;
  if (phase >= open) {
    start += period - phase;
    phase = 0;
  }
  // The windows crossed on the way; work that ends as a window opens does not wait for it.
  const uint64_t crossed = work ? (phase + work - 1) / open : 0;
  return start + work + crossed * window;
}

// Books the transfer in the engine; the cycle in which its tasklet may go on.
uint64_t book(Machine& m, uint64_t at, uint32_t bytes, bool read) {
  const Params& p = m.params;
  const uint64_t start = std::max(at * kFraction, m.dma.free_at);
  const uint64_t latency = read ? p.dma_read_latency_cycles : p.dma_write_latency_cycles;
  m.dma.free_at =
      advance(p, start, p.dma_occupancy_cycles + p.dma_occupancy_cycles_per_byte * bytes);
  m.dma.busy += m.dma.free_at - start;
  const uint64_t done = advance(p, start, latency + p.dma_cycles_per_byte * bytes);
  (read ? m.dma.reads : m.dma.writes) += 1;
  (read ? m.dma.read_bytes : m.dma.write_bytes) += bytes;
  m.dma.sizes[bytes / 8 - 1] += 1;
  m.steal_bytes += p.dma_steal_bytes ? bytes : 0;
  return (done + kFraction - 1) / kFraction;
}

Fault dma_fault(FaultKind kind, uint32_t address, uint32_t bytes, uint32_t memory) {
  return Fault{kind, -1, -1, address, bytes, memory};
}

}  // namespace

// `other` of a DMA fault: 0 WRAM, 1 MRAM, 2 IRAM.
void transfer(Machine& m, Tasklet& t, const Row& row, uint64_t at) {
  const uint32_t ra = t.r[row.ra], rb = t.r[row.rb];
  const uint32_t bytes = 8 * (1 + ((static_cast<uint32_t>(row.off) + (ra >> 24)) & 0xff));
  const uint32_t near = ra & 0x00fffff8u;
  const uint32_t far = rb & 0xfffffff8u & ~kMramBase;
  const bool iram = row.op == OP_ldmai, read = row.op != OP_sdma;
  if (!m.params.silicon_dma_alignment) {
    if (ra & 7) throw dma_fault(FaultKind::DMA_ALIGNMENT, ra & 0xffffffu, bytes, iram ? 2 : 0);
    if (rb & 7) throw dma_fault(FaultKind::DMA_ALIGNMENT, rb, bytes, 1);
  }
  const uint64_t limit = iram ? 8 * m.params.iram_instructions : m.params.wram_bytes;
  if (uint64_t{near} + bytes > limit)
    throw dma_fault(FaultKind::DMA_RANGE, near, bytes, iram ? 2 : 0);
  if (uint64_t{far} + bytes > m.params.mram_bytes)
    throw dma_fault(FaultKind::DMA_RANGE, far, bytes, 1);
  if (m.watch) {
    const auto self = static_cast<uint32_t>(&t - m.tasklets.data());
    m.watch->dma(m, self, near, far, bytes, row.op);
  }
  if (iram) {
    m.iram.index = near / 8;
    m.iram.count = bytes / 8;
    std::memcpy(m.iram.words.data(), m.mram + far, bytes);
  } else if (read) {
    std::memcpy(m.wram + near, m.mram + far, bytes);
  } else {
    std::memcpy(m.mram + far, m.wram + near, bytes);
  }
  t.ready = std::max(at + m.params.issue_distance_cycles, book(m, at, bytes, read));
  t.dmas += 1;
  t.dma_wait += t.ready - at - 1;
}

uint32_t acquire(Machine& m, Tasklet& t, const Row& row, uint32_t self) {
  const uint32_t index = atomic_index(t.r[row.ra] + static_cast<uint32_t>(row.imm));
  const uint32_t old = m.atomic[index];
  m.atomic[index] = 1;
  if (m.watch) m.watch->lock(self, index, !old);
  if (!old) {
    m.spinning &= ~(1u << self);
    return 0;
  }
  t.retries += 1;
  if ((row.flags & F_JUMP) && row.target == t.pc) {
    m.spinning |= 1u << self;
    if ((m.spinning & m.running) == m.running) m.raise_if_all_spin();
  }
  return 1;
}

uint32_t release(Machine& m, Tasklet& t, const Row& row, uint32_t self) {
  const uint32_t index = atomic_index(t.r[row.ra] + static_cast<uint32_t>(row.imm));
  const uint32_t old = m.atomic[index];
  m.atomic[index] = 0;
  if (m.watch) m.watch->unlock(self, index);
  return old;
}

uint32_t control_thread(Machine& m, const Row& row, uint32_t self, uint64_t at) {
  const Tasklet& caller = m.tasklets[self];
  uint32_t target = caller.r[row.ra] + static_cast<uint32_t>(row.imm);
  target &= 0xff;
  if (target >= m.params.tasklets) throw Fault{FaultKind::THREAD, -1, -1, target, 0, 0};
  const uint32_t bit = 1u << target, old = m.running >> target & 1;
  Tasklet& t = m.tasklets[target];
  if (row.op == OP_clr_run && old) {
    if (m.watch) m.watch->sleep(target);
    // The wait after its last instruction goes on and is counted as such.
    m.running &= ~bit;
    t.stopped_at = std::max(at, target == self ? at : t.ready - 1);
  }
  if (m.watch && !old) m.watch->wake(self, target);
  if ((row.op == OP_boot || row.op == OP_resume) && !old) {
    if (row.op == OP_boot) t.pc = 0;
    t.ready = std::max(t.ready, at + 1);
    const uint64_t since = t.booted ? t.stopped_at + 1 : 0;
    (t.booted && !t.ended ? t.asleep : t.idle) += t.ready - since;
    t.booted = true;
    t.ended = false;
    m.running |= bit;
  }
  return old;
}

void stop(Machine& m, uint32_t self, uint64_t at) {
  Tasklet& t = m.tasklets[self];
  if (m.watch) m.watch->sleep(self);
  t.stops += 1;
  t.stopped_at = at;
  m.running &= ~(1u << self);
}

uint32_t read_time(const Machine& m, uint64_t at) {
  uint64_t value = m.counter.value;
  if (m.counter.mode == Counter::CYCLES) value += at - m.counter.since;
  if (m.counter.mode == Counter::INSTRUCTIONS) value += m.instructions() - m.counter.since;
  return static_cast<uint32_t>(value >> 4);
}

void configure_time(Machine& m, uint32_t setting, uint64_t at) {
  const uint64_t instructions = m.instructions();
  Counter& c = m.counter;
  if (c.mode == Counter::CYCLES) c.value += at - c.since;
  if (c.mode == Counter::INSTRUCTIONS) c.value += instructions - c.since;
  if (setting & 1) c.value = 0;
  if (const uint32_t mode = setting >> 1 & 3) c.mode = mode;
  c.since = c.mode == Counter::INSTRUCTIONS ? instructions : at;
}

}  // namespace upmem
