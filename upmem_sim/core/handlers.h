// The common forms of the instructions, each compiled on its own for the fast loop. A handler does
// what execute() does for that form, pc included; it returns false, with nothing changed, where
// execute() has to raise a fault.
#pragma once
#include <bit>
#include <cstring>

#include "machine.h"

namespace upmem::fast {

struct Memory {
  uint8_t* wram;
  uint32_t bytes;
};

template <Op op, Form form>
[[gnu::always_inline]] inline bool alu(Tasklet& t, uint32_t& pc, const Decoded& d) {
  constexpr bool immediate = form == RI || form == IR || form == JUMP_RI || form == JNZ_RI ||
                             form == SET_RI || form == WIDE_RI;
  constexpr bool swapped = form == IR || op == OP_rsub || op == OP_rsubc;
  const uint32_t first = t.r[d.ra];
  const uint32_t other = immediate ? static_cast<uint32_t>(d.imm) : t.r[d.rb];
  const uint32_t a = swapped ? other : first, b = swapped ? first : other;
  Sum sum{0, false, false};
  if constexpr (is_adder(op)) {
    sum = adder<op>(a, b, t.cf);
    t.cf = sum.carry;
  } else {
    sum.x = plain_result<op>(a, b, 0);
  }
  const uint32_t x = sum.x;
  bool holds = false;
  if constexpr (form == JUMP_RR || form == JUMP_RI || form == SET_RR || form == SET_RI) {
    const bool negative = x >> 31, less = sum.overflow != negative;
    const uint32_t index = flag_index(x == 0, negative, sum.carry, less, t.z == 0);
    holds = static_cast<uint32_t>(d.off) >> index & 1;
  } else if constexpr (form == JNZ_RR || form == JNZ_RI) {
    holds = x != 0;
  }
  t.z = x;
  if constexpr (form == SET_RR || form == SET_RI) {
    t.r[d.rd] = holds;
    pc += 1;
  } else if constexpr (form == WIDE_RR || form == WIDE_RI) {
    t.r[d.rd] = 0;
    t.r[d.rd + 1] = x;
    pc += 1;
  } else {
    t.r[d.rd] = x;
    pc = holds ? d.target : pc + 1;
  }
  return true;
}

// An instruction of a hypothetical unit, if the core has it.
template <Op op, Form form>
[[gnu::always_inline]] inline bool unit(Tasklet& t, uint32_t& pc, const Decoded& d,
                                        const Params& params) {
  if (!unit_slots(params, op)) [[unlikely]]
    return false;
  t.r[d.rd] = plain_result<op>(t.r[d.ra], form == RI ? 0 : t.r[d.rb], 0);
  pc += 1;
  return true;
}

// Opens or closes a frame on the stack, which has to have room for it.
[[gnu::always_inline]] inline bool frame(Tasklet& t, uint32_t& pc, const Decoded& d) {
  if (t.leaves_stack(t.r[kStackPointer] + static_cast<uint32_t>(d.imm))) [[unlikely]]
    return false;
  return alu<OP_add, RI>(t, pc, d);
}

template <Op op>
[[gnu::always_inline]] inline bool unary(Tasklet& t, uint32_t& pc, const Decoded& d) {
  t.r[d.rd] = t.z = plain_result<op>(t.r[d.ra], 0, 0);
  pc += 1;
  return true;
}

template <Op op>
[[gnu::always_inline]] inline bool shift_add(Tasklet& t, uint32_t& pc, const Decoded& d) {
  const uint32_t x = plain_result<op>(t.r[d.ra], 0, static_cast<uint32_t>(d.off) & 31);
  const uint32_t addend = t.r[d.rb];
  t.z = x;
  t.r[d.rd] = op == OP_lsl_sub ? addend - x : addend + x;
  pc += 1;
  return true;
}

template <Op op, Form form>
[[gnu::always_inline]] inline bool step(Tasklet& t, uint32_t& pc, const Decoded& d) {
  const uint32_t shifted = t.r[d.ra] << (d.off & 31);
  const uint32_t even = t.r[d.rb], odd = t.r[d.rb + 1];
  if constexpr (op == OP_mul_step) {
    const uint32_t rest = even >> 1;
    t.r[d.rd + 1] = even & 1 ? odd + shifted : t.r[d.rd + 1];
    t.r[d.rd] = t.z = rest;
    pc = form == JUMP_RR && rest == 0 ? d.target : pc + 1;
  } else {
    const bool fits = odd >= shifted;
    t.r[d.rd + 1] = fits ? odd - shifted : t.r[d.rd + 1];
    t.r[d.rd] = even << 1 | fits;
    pc += 1;
  }
  return true;
}

template <Op op>
[[gnu::always_inline]] inline bool move_pair(Tasklet& t, uint32_t& pc, const Decoded& d) {
  const uint32_t even = t.r[d.rb], odd = t.r[d.rb + 1];
  t.r[d.rd] = op == OP_swapd ? odd : even;
  t.r[d.rd + 1] = op == OP_swapd ? even : odd;
  pc += 1;
  return true;
}

// log2 of the bytes of a load or store.
constexpr int access_log(Op op) {
  if (op == OP_lbs || op == OP_lbu || op == OP_sb) return 0;
  if (op == OP_lhs || op == OP_lhu || op == OP_sh) return 1;
  return op == OP_ld || op == OP_sd ? 3 : 2;
}

// A misaligned address has a low bit that the rotation makes a high one: one test for both rules.
template <Op op>
[[gnu::always_inline]] inline bool reachable(uint32_t address, const Memory& memory) {
  return std::rotr(address, access_log(op)) < memory.bytes >> access_log(op);
}

// Address of a load or store; false if it breaks a rule.
template <Op op>
[[gnu::always_inline]] inline bool locate(const Tasklet& t, const Decoded& d, const Memory& memory,
                                          uint32_t& address) {
  address = t.r[d.ra] + static_cast<uint32_t>(d.off);
  return reachable<op>(address, memory);
}

template <Op op>
[[gnu::always_inline]] inline void load_from(Tasklet& t, const Decoded& d, const Memory& memory,
                                             uint32_t address) {
  uint64_t value = 0;
  std::memcpy(&value, memory.wram + address, 1 << access_log(op));
  if constexpr (op == OP_ld) {
    t.r[d.rd] = static_cast<uint32_t>(value >> 32);
    t.r[d.rd + 1] = static_cast<uint32_t>(value);
  } else if constexpr (op == OP_lbs) {
    t.r[d.rd] = static_cast<uint32_t>(static_cast<int8_t>(value));
  } else if constexpr (op == OP_lhs) {
    t.r[d.rd] = static_cast<uint32_t>(static_cast<int16_t>(value));
  } else {
    t.r[d.rd] = static_cast<uint32_t>(value);
  }
}

template <Op op, Form form>
[[gnu::always_inline]] inline void store_to(const Tasklet& t, const Decoded& d,
                                            const Memory& memory, uint32_t address) {
  uint64_t value = form == RI ? static_cast<uint64_t>(int64_t{d.imm}) : t.r[d.rb];
  if constexpr (op == OP_sd && form == RR) value = value << 32 | t.r[d.rb + 1];
  std::memcpy(memory.wram + address, &value, 1 << access_log(op));
}

template <Form form>
[[gnu::always_inline]] inline bool call(Tasklet& t, uint32_t& pc, const Decoded& d) {
  const uint32_t other = form == RI ? static_cast<uint32_t>(d.imm) : t.r[d.rb];
  const uint32_t target = t.r[d.ra] + other;
  t.r[d.rd] = (pc + 1) % kIramInstructions;
  pc = target % kIramInstructions;
  return true;
}

// Without anybody spinning, and the bit free; the rest is left to execute().
template <Op op>
[[gnu::always_inline]] inline bool atomic(Tasklet& t, uint32_t& pc, const Decoded& d, Machine& m) {
  uint8_t& bit = m.atomic[atomic_index(t.r[d.ra] + static_cast<uint32_t>(d.imm))];
  const uint32_t old = bit;
  if (op == OP_acquire && (old || m.spinning)) return false;
  bit = op == OP_acquire;
  t.z = old;
  pc = old ? d.target : pc + 1;
  return true;
}

[[gnu::always_inline]] inline bool skip(Tasklet&, uint32_t& pc, const Decoded&) {
  pc += 1;
  return true;
}

}  // namespace upmem::fast
