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

template <typename B>
inline uint32_t high_product(int32_t a, B b) {
  return static_cast<uint32_t>((int64_t{a} * b) >> 32);
}

inline float as_float(uint32_t v) { return std::bit_cast<float>(v); }

// Every NaN that arithmetic makes is the same one.
inline uint32_t float_word(float v) { return v != v ? 0x7fc00000u : std::bit_cast<uint32_t>(v); }

// The smaller of two, with `flip` ~0 the larger: a NaN gives the other one, -0 is less than +0.
inline uint32_t float_least(uint32_t a, uint32_t b, uint32_t flip) {
  if (as_float(a) != as_float(a)) return b;
  if (as_float(b) != as_float(b)) return a;
  const auto ordered = [](uint32_t v) {
    return static_cast<int32_t>(v ^ (v >> 31 ? 0x7fffffffu : 0u));
  };
  return (ordered(a) < ordered(b)) != (flip != 0) ? a : b;
}

// One bit: -inf, -normal, -subnormal, -0, +0, +subnormal, +normal, +inf, signalling, quiet NaN.
inline uint32_t float_class(uint32_t v) {
  const uint32_t exponent = v >> 23 & 255, fraction = v & 0x7fffffu;
  if (exponent == 255 && fraction) return fraction >> 22 ? 1u << 9 : 1u << 8;
  const uint32_t size = exponent == 255 ? 3 : exponent ? 2 : fraction ? 1 : 0;
  return v >> 31 ? 1u << (3 - size) : 1u << (4 + size);
}

// Towards zero; what does not fit saturates, NaN by its sign.
inline uint32_t float_to_signed(uint32_t v) {
  const float f = as_float(v);
  if (f > -2147483904.0f && f < 2147483648.0f)
    return static_cast<uint32_t>(static_cast<int32_t>(f));
  return v >> 31 ? 0x80000000u : 0x7fffffffu;
}

inline uint32_t float_to_unsigned(uint32_t v) {
  const float f = as_float(v);
  if (f > -1.0f && f < 4294967296.0f) return static_cast<uint32_t>(static_cast<int64_t>(f));
  return v >> 31 ? 0u : ~0u;
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
