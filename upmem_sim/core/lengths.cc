// Where the length of a DMA is computed. What arrives at the DMA is bytes / 8 - 1 in 8 bits, so a
// length of 0, beyond 2048 or not a multiple of 8 is visible only where the division is made.
//
// The forms: `lsr t, size, 3`, `add t, t, -1` or in one `lsr_add t, minus1, size, 3`; then
// `lsl_add w, wram, t, 24`; then the DMA with w, in straight-line code. Three instructions after
// each other with one register are our own header's, where nothing can have been left out. Another
// compiler may have dropped a mask of the low bits in front of its division, so a remainder means
// nothing there.
//
// The address in WRAM shares a register with the length: an MRAM address there would be taken as 8
// to 11 times 8 bytes more. Where no other instruction can have shifted a length there, it is what
// it looks like.
#include <algorithm>

#include "code.h"

namespace upmem {
namespace {

constexpr uint32_t kWindow = 24;  // instructions from the division to the DMA

bool straight(const Row& row) {
  if (row.op >= OP_COUNT || row.flags & F_JUMP) return false;
  const Kind kind = kOpKinds[row.op];
  return kind != Kind::CALL && kind != Kind::STOP && kind != Kind::THREAD && kind != Kind::CODE;
}

bool writes(const Row& row, uint8_t reg) {
  const Kind kind = kOpKinds[row.op];
  if (kind == Kind::STORE || kind == Kind::STOREID || kind == Kind::DMA) return false;
  const bool pair = kind == Kind::STEP || kind == Kind::PAIR || row.op == OP_ld ||
                    row.flags & (F_SIGNED | F_UNSIGNED);
  return row.rd == reg || (pair && row.rd + 1 == reg);
}

// What is known of the length on its way from the division to the DMA.
struct Length {
  enum Stage { QUOTIENT, SHIFTED, ADDRESS } stage = QUOTIENT;
  uint8_t reg;
  bool less_one;  // 1 has been taken off

  // Whether the row carries the length on.
  bool follow(const Row& row) {
    const bool immediate = row.rb == kImmediate, plain = row.flags == 0;
    const bool first = row.ra == reg;
    if (!plain || row.rd >= 24) return false;
    if (stage == QUOTIENT && !less_one && first && immediate &&
        ((row.op == OP_add && row.imm == -1) || (row.op == OP_sub && row.imm == 1))) {
      less_one = true;
    } else if (stage == QUOTIENT && first && row.op == OP_lsl_add && row.off == 24) {
      stage = ADDRESS;
    } else if (stage == QUOTIENT && first && row.op == OP_lsl && immediate && row.imm == 24) {
      stage = SHIFTED;
    } else if (stage == SHIFTED && (row.op == OP_add || row.op == OP_or) &&
               (first || row.rb == reg)) {
      stage = ADDRESS;
    } else {
      return false;
    }
    reg = row.rd;
    return true;
  }

  bool reaches(const Row& dma) const {
    return stage == ADDRESS && dma.ra == reg && (dma.off & 0xff) == (less_one ? 0 : 0xff);
  }
};

bool begins(const Row& row, Length& length) {
  if (row.flags || row.rd >= 24 || row.op >= OP_COUNT) return false;
  const bool divides = row.op == OP_lsr && row.rb == kImmediate && row.imm == 3;
  if (!divides && !(row.op == OP_lsr_add && row.off == 3)) return false;
  length.reg = row.rd;
  length.less_one = row.op == OP_lsr_add;
  return true;
}

// The form of cc/include/mram.h, which no later pass changes.
bool own_form(const Row* row) {
  return row[0].op == OP_lsr && row[1].op == OP_add && row[2].op == OP_lsl_add &&
         row[1].rd == row[0].rd && row[2].rd == row[0].rd && kOpKinds[row[3].op] == Kind::DMA;
}

// Whether the upper byte of a source can be in the result.
bool carries(const Row& row) {
  switch (row.op) {
    case OP_add:
    case OP_addc:
    case OP_sub:
    case OP_subc:
    case OP_rsub:
    case OP_or:
    case OP_xor:
    case OP_and:
    case OP_lsl_add:
    case OP_lsl_sub:
    case OP_lsr_add:
    case OP_rol_add:
    case OP_movd:
    case OP_swapd:
      return true;
    default:
      return false;
  }
}

// A shift by 24.
bool makes_upper_byte(const Row& row) {
  if (row.op == OP_lsl_add || row.op == OP_lsl_sub || row.op == OP_rol_add) return row.off == 24;
  if (row.rb != kImmediate) return false;
  if (row.op == OP_lsl || row.op == OP_rol) return (row.imm & 31) == 24;
  return row.op == OP_ror && (row.imm & 31) == 8;
}

bool is_mram(uint32_t address) { return address >> 26 == kMramBase >> 26; }

}  // namespace

// Follows a length from `pc` to its DMA, and marks the instructions that are to be checked.
void Code::mark_length(uint32_t pc) {
  Length length{};
  if (!begins(rows[pc], length)) return;
  uint32_t adds_address = 0;
  for (uint32_t i = 1; i < kWindow && pc + i < size; ++i) {
    const Row& row = rows[pc + i];
    if (!straight(row)) return;
    if (kOpKinds[row.op] == Kind::DMA && length.reaches(row)) {
      const bool exact = i == 3 && own_form(&rows[pc]);
      lengths[pc] = static_cast<uint8_t>(i | (exact ? kExactLength : 0));
      decoded[pc].handler = kLength;
      lengths[pc + i] = kDistance;  // has its length
      if (!adds_address) return;
      lengths[pc + adds_address] = static_cast<uint8_t>((i - adds_address) | kNearAddress);
      decoded[pc + adds_address].handler = kLength;
      return;
    }
    if (length.follow(row)) {
      if (row.op == OP_lsl_add) adds_address = i;
    } else if (writes(row, length.reg)) {
      return;
    }
  }
}

// Registers that may hold a length by other ways: from a shift by 24 that is not marked. Code and
// memory are followed as a whole.
uint32_t Code::lengths_elsewhere() const {
  uint32_t tainted = 0;
  bool memory = false;
  for (bool more = true; more;) {
    const uint32_t before = tainted;
    const bool before_memory = memory;
    for (uint32_t pc = 0; pc < size; ++pc) {
      const Row& row = rows[pc];
      if (row.op >= OP_COUNT) continue;
      const Kind kind = kOpKinds[row.op];
      const bool immediate = row.rb == kImmediate;
      const bool from = (row.ra < 24 && tainted >> row.ra & 1) ||
                        (!immediate && row.rb < 24 && tainted >> row.rb & 1);
      if (kind == Kind::STORE) memory |= !immediate && (tainted >> row.rb & 1);
      bool taints = kind == Kind::LOAD ? memory : from && carries(row);
      taints |= makes_upper_byte(row) && !(lengths[pc] & kNearAddress);
      if (taints && row.rd < 24) tainted |= 3u << (row.rd & ~1u);
    }
    more = tainted != before || memory != before_memory;
  }
  return tainted;
}

void Code::mark_lengths() {
  std::fill(lengths.begin(), lengths.end(), 0);
  for (uint32_t pc = 0; pc < size; ++pc) mark_length(pc);
  const uint32_t elsewhere = lengths_elsewhere();
  for (uint32_t pc = 0; pc < size; ++pc) {
    const Row& row = rows[pc];
    if (row.op >= OP_COUNT || kOpKinds[row.op] != Kind::DMA) continue;
    const bool open = lengths[pc] || row.ra >= 24 || elsewhere >> row.ra & 1;
    lengths[pc] = open ? 0 : kNearAddress;
  }
}

bool Code::length_fits(uint32_t pc, const uint32_t* registers) const {
  const Row& row = rows[pc];
  if (lengths[pc] & kNearAddress)
    return !is_mram(registers[row.op == OP_lsl_add ? row.rb : row.ra]);
  const uint32_t bytes = registers[row.ra];
  if (row.op == OP_lsr_add && registers[row.rb] != ~0u) return true;  // another computation
  const bool remainder = lengths[pc] & kExactLength && bytes % 8;
  return bytes >= 8 && bytes < 2056 && !remainder;
}

}  // namespace upmem
