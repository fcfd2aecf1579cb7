#include "machine.h"

#include <sys/mman.h>

#include <bit>
#include <new>

#include "watch.h"

namespace upmem {

Machine::Machine(std::shared_ptr<Code> program, const Params& parameters)
    : params(parameters), code(std::move(program)) {
  void* base = mmap(nullptr, params.wram_bytes + params.mram_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  wram = static_cast<uint8_t*>(base);
  mram = wram + params.wram_bytes;
}

Machine::~Machine() { munmap(wram, params.wram_bytes + params.mram_bytes); }

void Machine::start() {
  for (uint32_t i = 0; i < kMaxTasklets; ++i) {
    Tasklet& t = tasklets[i];
    const uint32_t low = t.stack_low, bytes = t.stack_bytes;
    t = Tasklet{};
    t.stack_low = low;
    t.stack_bytes = bytes;
    const uint32_t constants[] = {0, 1, ~0u, 1u << 31, i, 2 * i, 4 * i, 8 * i};
    for (uint32_t k = 0; k < 8; ++k) t.r[24 + k] = constants[k];
  }
  tasklets[0].booted = true;
  running = 1;
  spinning = 0;
  last = static_cast<uint32_t>(params.tasklets) - 1;
  cycle = stolen = conflicts = jumps = steal_bytes = 0;
  dma = Dma{};
  counter = Counter{};
  fault = Fault{};
  iram.count = 0;
  if (watch) watch->start(*this);
}

bool Machine::plain_only() const {
  return watch != nullptr || params.parity_conflict_cycles || params.dma_steal_bytes ||
         params.taken_jump_cycles || params.multiply32_slots > 1 || params.float_add_slots > 1 ||
         params.float_mul_slots > 1 || params.float_div_slots > 1;
}

uint64_t Machine::instructions() const {
  uint64_t sum = 0;
  for (const Tasklet& t : tasklets) sum += t.issued;
  return sum;
}

int Machine::next_issue(uint64_t& at) const {
  int best = -1;
  uint64_t best_ready = ~0ull;
  for (uint32_t k = 1; k <= params.tasklets; ++k) {
    const auto t = static_cast<uint32_t>((last + k) % params.tasklets);
    if (!(running >> t & 1) || tasklets[t].ready >= best_ready) continue;
    best = static_cast<int>(t);
    best_ready = tasklets[t].ready;
    if (best_ready <= cycle) break;
  }
  at = best_ready > cycle ? best_ready : cycle;
  return best;
}

Exit Machine::settle() {
  for (uint32_t t = 0; t < params.tasklets; ++t) {
    Tasklet& sleeper = tasklets[t];
    if (!sleeper.booted || sleeper.ended) continue;
    fault = {FaultKind::DEADLOCK, static_cast<int32_t>(t), static_cast<int32_t>(sleeper.pc)};
    return Exit::FAULTED;
  }
  return Exit::FINISHED;
}

// Every tasklet that runs waits in "acquire, nz, @self" for a bit that nobody is left to release.
void Machine::raise_if_all_spin() const {
  for (uint32_t left = running; left; left &= left - 1) {
    const Tasklet& t = tasklets[std::countr_zero(left)];
    const Row& row = code->rows[t.pc % kIramInstructions];
    const bool spins = row.op == OP_acquire && row.cc == CC_nz && (row.flags & F_JUMP) &&
                       row.target == t.pc % kIramInstructions &&
                       atomic[atomic_index(t.r[row.ra] + static_cast<uint32_t>(row.imm))];
    if (!spins) return;
  }
  const int first = std::countr_zero(running);
  throw Fault{FaultKind::DEADLOCK, first, static_cast<int32_t>(tasklets[first].pc)};
}

}  // namespace upmem
