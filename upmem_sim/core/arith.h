// Arithmetic of the operations and tests of the conditions, straight from the rows of isa.def.
#pragma once
#include <bit>
#include <cstdint>

#include "isa.h"

namespace upmem {

inline int32_t sl(uint32_t v) { return static_cast<int8_t>(v); }
inline int32_t sh(uint32_t v) { return static_cast<int8_t>(v >> 8); }
inline int32_t ul(uint32_t v) { return static_cast<int32_t>(v & 0xff); }
inline int32_t uh(uint32_t v) { return static_cast<int32_t>(v >> 8 & 0xff); }
inline uint32_t product(int32_t a, int32_t b) { return static_cast<uint32_t>(a * b); }

// Each byte of the result is 1 where the bytes of a and b are equal.
inline uint32_t equal_bytes(uint32_t a, uint32_t b) {
  const uint32_t d = a ^ b;
  const uint32_t nonzero = ((d & 0x7f7f7f7fu) + 0x7f7f7f7fu) | d;
  return ~nonzero >> 7 & 0x01010101u;
}

// Folds a to 7 + (h >> 2) bits; two or three pieces.
inline uint32_t hash_bits(uint32_t a, uint32_t b) {
  const uint32_t h = b & 15, width = 7 + (h >> 2), mask = (1u << width) - 1;
  const uint32_t x = (a & mask) ^ (a >> width & mask);
  return h & 1 ? x ^ (a >> (2 * width) & mask) : x;
}

inline constexpr bool is_adder(Op op) { return op <= OP_rsubc; }
inline constexpr bool subtracts(Op op) { return op >= OP_sub && op <= OP_rsubc; }
inline constexpr bool takes_carry(Op op) {
  return op == OP_addc || op == OP_subc || op == OP_rsubc;
}

struct Sum {
  uint32_t x;
  bool carry, overflow;
};

// The adder: a + b, or a - b as a + ~b + 1. cf is the old carry flag. For rsub and rsubc the caller
// exchanges the operands.
template <Op op>
inline Sum adder(uint32_t a, uint32_t b, bool cf) {
  const uint32_t addend = subtracts(op) ? ~b : b;
  const bool carry_in = takes_carry(op) ? cf : subtracts(op);
  const uint64_t wide = uint64_t{a} + addend + carry_in;
  const auto x = static_cast<uint32_t>(wide);
  return {x, (wide >> 32) != 0, (((a ^ x) & (addend ^ x)) >> 31) != 0};
}

inline Sum adder(Op op, uint32_t a, uint32_t b, bool cf) {
  switch (op) {
    case OP_add:
      return adder<OP_add>(a, b, cf);
    case OP_addc:
      return adder<OP_addc>(a, b, cf);
    case OP_sub:
    case OP_rsub:
      return adder<OP_sub>(a, b, cf);
    default:
      return adder<OP_subc>(a, b, cf);
  }
}

// Result of everything else that has one; s is the shift amount of the shift-adds.
template <Op op>
inline uint32_t plain_result([[maybe_unused]] uint32_t a, [[maybe_unused]] uint32_t b,
                             [[maybe_unused]] uint32_t s) {
#define OP(name, kind, cls, result) \
  if constexpr (op == OP_##name) return result;
#include "isa.def"
}

inline uint32_t plain_result(Op op, uint32_t a, uint32_t b, uint32_t s) {
  switch (op) {
#define OP(name, kind, cls, result) \
  case OP_##name:                   \
    return plain_result<OP_##name>(a, b, s);
#include "isa.def"
    default:
      return 0;
  }
}

// What a condition may look at.
struct Outcome {
  uint32_t x = 0, a = 0, b = 0, src = 0;
  bool zf = false, carry = false, overflow = false;
  uint32_t count_max = 32;
};

inline bool test(Condition cc, const Outcome& o) {
  [[maybe_unused]] const auto& [x, a, b, src, zf, carry, overflow, count_max] = o;
  switch (cc) {
#define CONDITION(name, classes, expression) \
  case CC_##name:                            \
    return expression;
#include "isa.def"
    default:
      return false;
  }
}

}  // namespace upmem
