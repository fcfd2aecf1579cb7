// The plain loop: one cycle after the other, every option. The fast loop must agree with it.
#include <algorithm>
#include <bit>

#include "machine.h"
#include "watch.h"

namespace upmem {
namespace {

// Slots that this instruction costs beyond its own under the rules that are switches.
uint64_t conflict_slots(const Machine& m, const Row& row) {
  if (!m.params.parity_conflict_cycles || row.op >= OP_COUNT) return 0;
  uint32_t read = row.ra < 24 ? 1u << row.ra : 0;
  if (row.rb < 24) {
    const Kind kind = kOpKinds[row.op];
    const bool pair = kind == Kind::STEP || kind == Kind::PAIR || row.op == OP_sd;
    read |= (pair ? 3u : 1u) << row.rb;
  }
  const int even = std::popcount(read & 0x555555u), odd = std::popcount(read & 0xaaaaaau);
  return m.params.parity_conflict_cycles * static_cast<uint64_t>(even / 2 + odd / 2);
}

}  // namespace

void Machine::issue(uint32_t index, uint64_t at) {
  Tasklet& t = tasklets[index];
  t.pc %= kIramInstructions;
  const uint32_t pc = t.pc;
  const Row& row = code->rows[pc];
  const uint64_t jumps_before = jumps;
  t.ready = at + params.issue_distance_cycles;
  cycle = at;
  if (watch) watch->issue(*this, index, at);
  execute(*this, index, row, at);
  t.issued += 1;
  last = index;
  const uint64_t conflict = conflict_slots(*this, row);
  const uint64_t jump = (jumps - jumps_before) * params.taken_jump_cycles;
  const bool unit = row.op < OP_COUNT && kOpKinds[row.op] == Kind::UNIT;
  const uint64_t more = unit ? unit_slots(params, static_cast<Op>(row.op)) - 1 : 0;
  uint64_t steal = 0;
  if (params.dma_steal_bytes) {
    steal = steal_bytes / params.dma_steal_bytes;
    steal_bytes %= params.dma_steal_bytes;
  }
  conflicts += conflict;
  stolen += steal;
  cycle = at + 1 + conflict + jump + steal + more;
}

Exit Machine::run_plain(uint64_t until) {
  try {
    while (running) {
      uint64_t at = 0;
      const int t = next_issue(at);
      if (at >= until) {
        cycle = std::max(cycle, until);
        return Exit::BUDGET;
      }
      issue(static_cast<uint32_t>(t), at);
      if (iram.count) return Exit::IRAM;
    }
    return settle();
  } catch (const Fault& raised) {
    fault = raised;
    return Exit::FAULTED;
  }
}

}  // namespace upmem
