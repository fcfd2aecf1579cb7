// A program as the loops read it: the rows as they came, and each row pre-decoded to a handler.
#pragma once
#include <cstdint>
#include <vector>

#include "arith.h"
#include "isa.h"
#include "params.h"

namespace upmem {

// Forms that the fast loop has a handler for; every other row is general and runs in execute().
// A handler number is op * kForms + form.
enum Form : uint8_t {
  RR,       // rd = ra op rb
  RI,       // rd = ra op imm
  IR,       // rd = imm op ra (sub only)
  JUMP_RR,  // the same with a jump on a condition that is a table over the flags
  JUMP_RI,
  JNZ_RR,  // with a jump if the result is not zero
  JNZ_RI,
  SET_RR,  // rd = condition
  SET_RI,
  WIDE_RR,  // zero-extended into a pair
  WIDE_RI,
  FORM_COUNT
};
inline constexpr uint32_t kForms = 16;
inline constexpr uint16_t kGeneral = OP_COUNT * kForms;
inline constexpr uint16_t kPure = kGeneral + 1;    // general, but touches registers only
inline constexpr uint16_t kLength = kGeneral + 2;  // computes the length of a DMA (lengths.cc)
inline constexpr uint16_t kFrame = kGeneral + 3;   // adds to the stack pointer
// Marks of lengths.cc: a distance in instructions, and what else is checked.
inline constexpr uint8_t kDistance = 0x1f;
inline constexpr uint8_t kExactLength = 0x80;  // the length must be a multiple of 8
inline constexpr uint8_t kNearAddress = 0x40;  // the address in WRAM must not be one in MRAM

constexpr uint16_t handler(Op op, Form form) { return static_cast<uint16_t>(op * kForms + form); }

inline constexpr uint8_t kOutside = 255;  // row op: beyond the end of the program
inline constexpr uint8_t kIllegal = 254;  // row op: not an instruction

// Register file index that swallows writes to "zero".
inline constexpr uint8_t kTrash = 32;

inline constexpr uint8_t kFirstSaved = 14, kStackPointer = 22;  // r14 to r21 survive calls

struct Decoded {
  uint16_t handler;
  uint8_t rd, ra, rb, cc;
  uint16_t target;
  int32_t imm;
  // Offset or shift; for JUMP and SET forms the truth table of the condition over flag_index().
  int32_t off;
};
static_assert(sizeof(Decoded) == 16);

// The flags as an index into a condition's truth table; less = sign of the full difference.
constexpr uint32_t flag_index(bool zero, bool negative, bool carry, bool less, bool old_zero) {
  return uint32_t{zero} | uint32_t{negative} << 1 | uint32_t{carry} << 2 | uint32_t{less} << 3 |
         uint32_t{old_zero} << 4;
}

struct Code {
  std::vector<Row> rows;         // kIramInstructions, padded with kOutside
  std::vector<Decoded> decoded;  // one more: the fast loop lands there before the counter wraps
  std::vector<uint8_t> ends;     // 1: a stop that a tasklet is not meant to be woken from
  // Not 0: has a part in the length or the address of the DMA that many instructions further on.
  std::vector<uint8_t> lengths;
  uint32_t size = 0;
  // Of the program as it was loaded, whatever the DMA puts in its place.
  bool has_stacks = false;

  Code(const Row* program, uint32_t count);
  // Replaces instructions from `index` on (DMA into IRAM).
  void replace(uint32_t index, const Row* program, uint32_t count);
  // Whether the DMA that a marked instruction prepares can do what is asked.
  bool length_fits(uint32_t pc, const uint32_t* registers) const;

 private:
  void load(uint32_t index, const Row* program, uint32_t count);
  void mark_ends();
  bool is_end(uint32_t pc) const;
  void mark_lengths();
  bool uses_stacks() const;
  bool keeps_stack(uint32_t pc) const;
  void mark_frames();
  void mark_length(uint32_t pc);
  uint32_t lengths_elsewhere() const;
};

}  // namespace upmem
