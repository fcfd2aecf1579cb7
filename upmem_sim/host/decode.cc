// The layout of the words, and the evidence for it, are in encoding.py; names here follow it.
#include "decode.h"

#include "decode_tables.h"

namespace upmem::host {
namespace {

constexpr uint64_t kNopWord = 0x7C63'0000'0000;
constexpr uint8_t kNoReg = kZero, kLastGeneral = 23, kSelfRegister = 28;

// A word and the bits that were looked at: whatever was not must be 0.
class Word {
 public:
  explicit Word(uint64_t word) : word_(word) {}
  uint32_t take(uint32_t low, uint32_t bits) {
    const uint64_t mask = (1ull << bits) - 1;
    used_ |= mask << low;
    return static_cast<uint32_t>(word_ >> low & mask);
  }
  bool flag(uint32_t low) { return take(low, 1) != 0; }
  void expect(uint32_t low, uint32_t bits, uint32_t value) {
    if (take(low, bits) != value) throw NoInsn{};
  }
  bool is_used_up() const { return (word_ & ~used_) == 0; }
  uint32_t major() { return take(44, 4); }
  bool has_rb() { return take(32, 2) != 3; }

 private:
  uint64_t word_, used_ = 0;
};

constexpr uint32_t reversed4(uint32_t v) {
  return (v & 1) << 3 | (v & 2) << 1 | (v & 4) >> 1 | v >> 3;
}

int32_t sign_extend(uint32_t value, uint32_t bits) {
  return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits);
}

uint32_t imm8(Word& w) { return w.take(20, 4) | w.take(16, 4) << 4; }
uint32_t imm24(Word& w) { return imm8(w) | reversed4(w.take(12, 4)) << 8 | w.take(0, 12) << 12; }
uint32_t imm32(Word& w) { return imm24(w) | w.take(24, 8) << 24; }

uint32_t imm32_beside_rb(Word& w) {
  const uint32_t low = w.take(20, 4) | w.take(16, 1) << 4 | w.take(34, 3) << 5;
  return low | reversed4(w.take(12, 4)) << 8 | w.take(0, 12) << 12 | w.take(24, 8) << 24;
}

uint8_t general(uint32_t number) {
  if (number > kLastGeneral) throw NoInsn{};
  return static_cast<uint8_t>(number);
}

uint8_t even(uint32_t number) {
  if (number & 1) throw NoInsn{};
  return general(number);
}

uint8_t ra(Word& w) { return static_cast<uint8_t>(w.take(34, 5)); }
uint32_t rb(Word& w) { return w.take(17, 3) | w.take(32, 2) << 3; }

enum class Sets { NO, ZERO, SUB };  // which conditions the set forms take

std::optional<Condition> set_condition(uint32_t code, Sets sets) {
  if (sets == Sets::SUB) return code >= 32 ? jump_condition(code - 32, SUB) : std::nullopt;
  if (sets == Sets::NO) return {};
  switch (code) {
    case 6:
      return CC_z;
    case 7:
      return CC_nz;
    case 10:
      return CC_xz;
    case 11:
      return CC_xnz;
    default:
      return {};
  }
}

// Sets condition, flags and target; true for a jump form.
bool condition(Word& w, Row& row, uint32_t code, uint32_t classes, Sets sets) {
  if (code == 0) return false;
  if (const auto cc = set_condition(code, sets)) {
    row.cc = *cc;
    row.flags |= F_SET;
    return false;
  }
  const auto cc = code < 32 ? jump_condition(code, classes) : std::nullopt;
  if (!cc) throw NoInsn{};
  row.cc = *cc;
  row.flags |= F_JUMP;
  row.target = static_cast<uint16_t>(w.take(0, 16));
  return true;
}

void pair(Row& row, uint32_t number) {
  row.rd = even(number & ~1u);
  row.flags |= number & 1 ? F_SIGNED : F_UNSIGNED;
}

// Immediate of E and L forms with a condition field; without a destination its bits add to it.
int32_t immediate(Word& w, const Row& row, bool jump, bool logic) {
  uint32_t bits = jump ? 8 : 24;
  uint32_t value = jump ? imm8(w) : imm24(w);
  if (row.rd == kNoReg) {
    value |= w.take(39, 3) << bits;
    bits += 3;
    if (logic) value |= w.take(44, 1) << bits++;
  }
  return sign_extend(value, bits);
}

// ------------------------------------------------------------------------------------ group W

void wide(Word& w, Row& row, uint32_t major) {
  if (major == 6 && w.take(42, 2) == 3) {
    row.op = pick(kWideFlags, w.take(39, 3));
    row.ra = general(rb(w));
    if (w.flag(37)) {
      if (row.op != OP_sub && row.op != OP_subc) throw NoInsn{};
      row.flags = F_RIR;
    }
    row.imm = static_cast<int32_t>(imm32_beside_rb(w));
    return;
  }
  const uint32_t rc = w.take(39, 5);
  if (w.has_rb()) {
    row.op = pick(kWidePair, major);
    pair(row, rc);
    row.ra = general(rb(w));
    row.imm = static_cast<int32_t>(imm32_beside_rb(w));
    return;
  }
  row.ra = ra(w);
  row.imm = static_cast<int32_t>(imm32(w));
  row.op = pick(kWide, major);
  if (row.op == OP_and && row.ra >= kNoReg) return pair(row, rc);
  row.rd = general(rc);
  if (row.op == OP_sub || row.op == OP_subc) row.flags = F_RIR;
}

// ------------------------------------------------------------------------------------ group H

void unit(Word& w, Row& row) {
  const uint32_t rc = w.take(39, 5), op = OP_mul32 + w.take(20, 5);
  const bool two = w.has_rb();
  if (op > OP_u2f || two != (op < OP_fclass)) throw NoInsn{};
  row.op = static_cast<uint8_t>(op);
  row.rd = rc == kNoReg ? kNoReg : general(rc);
  row.ra = ra(w);
  if (two) row.rb = general(rb(w));
}

// ------------------------------------------------------------------------------------ group E

void destination_e(Word& w, Row& row, uint32_t major) {
  w.expect(42, 2, 3);
  if (major >= 4) {
    const uint32_t high = major == 14 ? 2 : major & 3;
    return pair(row, w.take(39, 3) | high << 3);
  }
  if (major == 3) return;  // the low bits may belong to the immediate
  row.rd = static_cast<uint8_t>(w.take(39, 3) | major << 3);
}

void group_e(Word& w, Row& row, uint32_t major) {
  destination_e(w, row, major);
  const bool by_register = w.has_rb();
  const uint32_t kind = by_register ? w.take(20, 4) : kSum;
  if (kind != kSum) {
    row.op = pick(kOthers, kind);
    const bool product = row.op != OP_time && row.op != OP_time_cfg;
    if (product) row.ra = ra(w);
    if (row.op == OP_time)
      w.expect(32, 2, 0);
    else
      row.rb = general(rb(w));
    condition(w, row, w.take(24, 5), kOpClasses[row.op], product ? Sets::ZERO : Sets::NO);
    return;
  }
  const uint32_t number = w.take(29, 3);
  row.op = pick(kAdders, number);
  row.ra = ra(w);
  Sets sets = row.op == OP_sub || row.op == OP_subc ? Sets::SUB : Sets::ZERO;
  if (!by_register && (row.op == OP_rsub || row.op == OP_rsubc)) {
    row.op = row.op == OP_rsub ? OP_sub : OP_subc;
    row.flags |= F_RIR;
  }
  const uint32_t code = w.take(24, 5) | (number >= 6 ? 32 : 0);
  if (number >= 6 && code == 32) throw NoInsn{};
  const bool jump = condition(w, row, code, kOpClasses[row.op], sets);
  if (by_register)
    row.rb = general(rb(w));
  else
    row.imm = immediate(w, row, jump, false);
}

// ------------------------------------------------------------------------------------ group L

// Without `pairs`, or with no destination, only major 8 exists.
void destination_l(Word& w, Row& row, uint32_t major, bool pairs) {
  if (w.take(42, 2) == 3) {  // none; the low bits and bit 44 may belong to the immediate
    return;
  }
  const uint32_t rc = w.take(39, 5);
  if (major == 9) {
    if (!pairs) throw NoInsn{};
    return pair(row, rc);
  }
  row.rd = static_cast<uint8_t>(rc);
}

void only_major_8(const Row& row, uint32_t major) {
  if (row.rd == kNoReg && major != 8) throw NoInsn{};
}

void call_by_constant(Word& w, Row& row, uint32_t major) {
  row.op = OP_call;
  destination_l(w, row, major, false);
  row.ra = ra(w);
  row.imm = immediate(w, row, false, true);
  if (row.ra == kNoReg) row.target = static_cast<uint16_t>(row.imm);
}

void group_l_constant(Word& w, Row& row, uint32_t major) {
  const uint32_t kind = w.take(28, 4);
  if (kind == 0) return call_by_constant(w, row, major);
  destination_l(w, row, major, true);
  row.ra = ra(w);
  if (kind == 3) {
    only_major_8(row, major);
    row.op = pick(kUnary, w.take(20, 4));
    condition(w, row, w.take(24, 4), kOpClasses[row.op], Sets::ZERO);
  } else if ((kind & 12) == 4) {
    only_major_8(row, major);
    row.op = pick(kShifts, w.take(16, 4));
    row.imm = static_cast<int32_t>(w.take(20, 4) | (kind & 1) << 4);
    condition(w, row, w.take(24, 4) | (kind & 2) << 3, kImmShift, Sets::ZERO);
  } else {
    row.op = pick(kLogic, kind);
    const bool jump = condition(w, row, w.take(24, 4), kOpClasses[row.op], Sets::ZERO);
    row.imm = immediate(w, row, jump, true);
  }
}

void group_l_shifted(Word& w, Row& row, uint32_t major) {
  const uint32_t number = w.take(29, 2);
  const bool pairs = w.flag(16);
  if (pairs) {
    const bool moves = number == kMovesNumber;
    row.op = moves ? pick(kMoves, w.take(20, 4)) : pick(kSteps, number);
    if (major != 8) throw NoInsn{};
    row.rd = even(w.take(39, 5));
    row.rb = even(rb(w));
    row.ra = ra(w);
    if (moves && row.ra != kNoReg) throw NoInsn{};
    if (!moves) row.off = static_cast<int32_t>(w.take(20, 4) | w.take(28, 1) << 4);
  } else {
    row.op = pick(kShifted, number);
    destination_l(w, row, major, true);
    only_major_8(row, major);
    row.rb = general(rb(w));
    row.ra = ra(w);
    row.off = static_cast<int32_t>(w.take(20, 4) | w.take(28, 1) << 4);
  }
  condition(w, row, w.take(24, 4), kOpClasses[row.op], Sets::NO);
}

void group_l(Word& w, Row& row, uint32_t major) {
  if (!w.has_rb()) return group_l_constant(w, row, major);
  if (!w.flag(31)) return group_l_shifted(w, row, major);
  const bool shift = !w.flag(30);
  row.op = shift ? pick(kShifts, w.take(20, 4)) : pick(kByRegister, w.take(20, 4));
  destination_l(w, row, major, row.op != OP_call);
  only_major_8(row, major);
  row.ra = ra(w);
  row.rb = general(rb(w));
  if (row.op == OP_call) return;
  const uint32_t code = w.take(24, 4) | (shift ? w.take(29, 1) << 4 : 0);
  condition(w, row, code, kOpClasses[row.op], Sets::ZERO);
}

// ------------------------------------------------------------------------------------ group M

uint32_t store_offset(Word& w) {
  return w.take(20, 4) | w.take(39, 3) << 4 | w.take(24, 1) << 7 | reversed4(w.take(12, 4)) << 8;
}

void atomic_bit(Word& w, Row& row) {
  const uint32_t code = w.take(24, 2);
  row.op = code ? OP_acquire : OP_release;
  row.cc = code ? *jump_condition(code, ACQUIRE) : CC_nz;
  row.flags = F_JUMP;
  row.ra = ra(w);
  row.imm = sign_extend(imm8(w) | w.take(26, 5) << 8 | w.take(39, 3) << 13, 16);
  row.target = static_cast<uint16_t>(w.take(0, 16));
}

void single(Word& w, Row& row) {
  w.expect(29, 1, 1);
  row.op = pick(kSingle, w.take(39, 3));
  if (row.op == OP_fault || row.op == OP_tell) {
    row.ra = ra(w);
    if (row.op == OP_fault && row.ra != kNoReg) throw NoInsn{};
    row.imm = sign_extend(imm24(w), 24);
    return;
  }
  if (row.op == OP_stop) {
    w.expect(34, 5, kSelfRegister);
  } else {
    row.ra = ra(w);
    row.imm = sign_extend(imm8(w), 8);
  }
  condition(w, row, w.take(24, 4), STEP, Sets::NO);
}

void store_constant(Word& w, Row& row) {
  w.expect(30, 1, 1);
  const uint32_t number = w.take(25, 2);
  row.op = w.flag(28) ? pick(kStoresById, number) : pick(kStores, number);
  if (w.flag(27)) row.flags = F_BIG;
  row.ra = ra(w);
  row.off = sign_extend(store_offset(w), 12);
  const uint32_t bits = number == 0 ? 4 : 12;
  row.imm = sign_extend(w.take(16, 4) | w.take(0, bits) << 4, bits + 4);
}

void load(Word& w, Row& row) {
  w.expect(30, 1, 1);
  row.op = pick(kLoads, w.take(24, 3));
  const uint32_t rc = w.take(39, 5);
  if (w.flag(29)) {
    if (row.op == OP_ld) throw NoInsn{};
    pair(row, rc);
  } else {
    row.rd = row.op == OP_ld ? even(rc) : general(rc);
  }
  if (w.flag(27)) row.flags |= F_BIG;
  row.ra = ra(w);
  row.off = sign_extend(imm24(w), 24);
}

void group_m(Word& w, Row& row) {
  const bool no_dest = w.take(42, 2) == 3;
  if (!w.has_rb()) {
    if (!no_dest) return load(w, row);
    if (w.flag(31)) return atomic_bit(w, row);
    return w.flag(30) ? store_constant(w, row) : single(w, row);
  }
  row.ra = ra(w);
  if (no_dest) {
    w.expect(30, 1, 1);
    row.op = pick(kStores, w.take(25, 2));
    w.expect(16, 1, row.op == OP_sd);
    row.rb = row.op == OP_sd ? even(rb(w)) : general(rb(w));
    if (w.flag(27)) row.flags = F_BIG;
    row.off = sign_extend(store_offset(w) | w.take(0, 12) << 12, 24);
    return;
  }
  w.expect(39, 5, 0);
  row.op = pick(kDma, w.take(0, 2));
  row.rb = general(rb(w));
  row.off = static_cast<int32_t>(w.take(24, 8));
}

void decode_group(Word& w, Row& row) {
  const uint32_t major = w.major();
  if (major == 7) return group_m(w, row);
  if (major == 8 || major == 9) return group_l(w, row, major);
  const bool escape = w.take(42, 2) == 3;
  if (escape && (major < 6 || major == 14)) return group_e(w, row, major);
  if (major == 10) return unit(w, row);
  if (major > 6) throw NoInsn{};
  wide(w, row, major);
}

}  // namespace

bool decode_word(uint64_t word, Row& row) {
  row = Row{OP_nop, 0, kNoReg, kNoReg, kImmediate, 0, 0, 0, 0};
  if (word == kNopWord) return true;
  if (word >> 48) return false;
  Word w(word);
  try {
    decode_group(w, row);
  } catch (const NoInsn&) {
    return false;
  }
  return w.is_used_up();
}

}  // namespace upmem::host

// For tests: `row` has room for 16 bytes.
extern "C" int dpu_sim_decode(uint64_t word, void* row) {
  return upmem::host::decode_word(word, *static_cast<upmem::Row*>(row));
}
