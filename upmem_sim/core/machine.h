// State of one DPU, and the loops that advance it, to the same cycle: run_plain (one cycle after
// the other, all options), run_interleaved (default options) and run_fast (tasklets run ahead).
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "code.h"
#include "params.h"

namespace upmem {

enum class FaultKind : uint8_t {
  NONE,
  MEMORY,
  ALIGNMENT,
  DMA_RANGE,
  DMA_ALIGNMENT,
  THREAD,
  FAULT,
  ILLEGAL,
  PC_RANGE,
  DEADLOCK,
  CYCLE_LIMIT,
  UNINITIALISED,
  RACE,
  STACK,
  DMA_LENGTH,
};

// A broken rule. `address` and `size` say what was asked; their meaning depends on the kind.
struct Fault {
  FaultKind kind = FaultKind::NONE;
  int32_t tasklet = -1;
  int32_t pc = -1;
  uint32_t address = 0;
  uint32_t size = 0;
  uint32_t other = 0;
};

enum class Exit : uint8_t { BUDGET, FINISHED, FAULTED, IRAM };

struct Dma {
  uint64_t free_at = 0;  // 1 / kFraction cycle
  uint64_t reads = 0, writes = 0, read_bytes = 0, write_bytes = 0, busy = 0;
  std::array<uint64_t, 256> sizes{};  // transfers by length / 8 - 1
};

struct alignas(64) Tasklet {
  uint32_t r[33]{};  // 24 general, 8 constants, 1 that swallows writes to "zero"
  uint32_t pc = 0;
  uint32_t z = 1;      // zero flag: set if this is 0
  uint32_t ahead = 0;  // instructions executed that have not issued yet (run-ahead loop)
  bool cf = false;
  bool ended = false;  // stopped where nobody is meant to wake it
  bool booted = false;
  uint64_t ready = 0;  // first cycle in which it may issue
  uint64_t issued = 0;
  uint64_t retries = 0;  // acquires that found the bit set
  uint64_t dma_wait = 0, dmas = 0, asleep = 0, stops = 0, idle = 0;
  uint64_t stopped_at = 0;
  uint32_t stack_low = 0, stack_bytes = ~0u;  // of its stack; all of memory if that is not known

  // Whether a new value of the stack pointer is outside the stack, and the old one was not.
  bool leaves_stack(uint32_t after) const {
    return after - stack_low > stack_bytes && r[kStackPointer] - stack_low <= stack_bytes;
  }
};

// The 36-bit counter behind `time`.
struct Counter {
  enum Mode : uint32_t { KEEP, CYCLES, INSTRUCTIONS, STOPPED };
  uint32_t mode = CYCLES;
  uint64_t value = 0, since = 0;
};

struct Watch;  // profile, trace and checks (watch.h); only the plain loop knows them

struct Machine {
  Params params;
  std::shared_ptr<Code> code;
  uint8_t* wram = nullptr;  // one reservation, pages appear when touched: WRAM, then MRAM
  uint8_t* mram = nullptr;
  std::array<Tasklet, kMaxTasklets> tasklets{};
  std::array<uint8_t, kAtomicBits> atomic{};
  uint32_t running = 0;   // RUN bits
  uint32_t spinning = 0;  // tasklets whose last acquire failed and jumps to itself
  uint32_t last = 0;      // the tasklet that issued last
  uint64_t cycle = 0;     // the next cycle to issue in
  uint64_t stolen = 0, conflicts = 0, jumps = 0;  // slots lost to the rules that are switches
  uint64_t refuge = 0;                            // cycles to interleave after the next conflict
  uint64_t steal_bytes = 0;                       // bytes moved that have not cost a slot yet
  Dma dma;
  Counter counter;
  Fault fault;
  struct {
    uint32_t index = 0, count = 0;
    std::array<uint64_t, 256> words{};
  } iram;  // instructions that ldmai fetched, to be decoded by the caller
  std::unique_ptr<Watch> watch;

  Machine(std::shared_ptr<Code> program, const Params& parameters);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Boots tasklet 0 at instruction 0. Memories, atomic bits and stacks keep their values.
  void start();
  // Each runs until nothing is left to do or `cycle` reaches `until`.
  Exit run_plain(uint64_t until);
  Exit run_interleaved(uint64_t until);
  Exit run_fast(uint64_t until);

  // Whether an option is on that only the plain loop knows.
  bool plain_only() const;
  uint64_t instructions() const;
  // The tasklet that issues next and its cycle, both from the state as it is; -1 if none can.
  int next_issue(uint64_t& at) const;
  // Executes the instruction of tasklet `t` in cycle `at`; throws Fault.
  void issue(uint32_t t, uint64_t at);
  // Ends a run in which no tasklet is running: FINISHED, or a deadlock.
  Exit settle();
  void raise_if_all_spin() const;
};

// Issue slots of an instruction of a hypothetical unit, 0 if there is no such unit.
inline uint64_t unit_slots(const Params& p, Op op) {
  switch (kOpClasses[op]) {
    case MULTIPLY32:
      return p.multiply32_slots;
    case FLOAT_ADD:
      return p.float_add_slots;
    case FLOAT_MUL:
      return p.float_mul_slots;
    default:
      return p.float_div_slots;
  }
}

// Whether a marked instruction (Code::lengths) may execute; the rule is off with silicon's.
inline bool length_fits(const Machine& m, const Tasklet& t, uint32_t pc) {
  return m.params.silicon_dma_alignment || !m.code->lengths[pc] || m.code->length_fits(pc, t.r);
}

// One instruction, any form (execute.cc). Advances pc; `ready` is the caller's but for DMA.
void execute(Machine& m, uint32_t tasklet, const Row& row, uint64_t at);

// Bytes that a load or store uses.
inline uint32_t access_bytes(Op op) {
  switch (op) {
    case OP_lbs:
    case OP_lbu:
    case OP_sb:
    case OP_sb_id:
      return 1;
    case OP_lhs:
    case OP_lhu:
    case OP_sh:
    case OP_sh_id:
      return 2;
    case OP_ld:
    case OP_sd:
    case OP_sd_id:
      return 8;
    default:
      return 4;
  }
}

// What other tasklets or the clock can see (events.cc).
void transfer(Machine& m, Tasklet& t, const Row& row, uint64_t at);
uint32_t acquire(Machine& m, Tasklet& t, const Row& row, uint32_t self);
uint32_t release(Machine& m, Tasklet& t, const Row& row, uint32_t self);
uint32_t control_thread(Machine& m, const Row& row, uint32_t self, uint64_t at);
void stop(Machine& m, uint32_t self, uint64_t at);
uint32_t read_time(const Machine& m, uint64_t at);
void configure_time(Machine& m, uint32_t setting, uint64_t at);
inline uint32_t atomic_index(uint32_t v) { return ((v >> 8) ^ v) & 0xff; }

}  // namespace upmem
