#include "code.h"

#include <algorithm>

namespace upmem {
namespace {

bool is_pair(uint8_t reg) { return reg < 24 && reg % 2 == 0; }

bool writes_pair(const Row& row) {
  const Kind kind = kOpKinds[row.op];
  return kind == Kind::STEP || kind == Kind::PAIR || row.op == OP_ld ||
         (row.flags & (F_SIGNED | F_UNSIGNED));
}

bool reads_pair(const Row& row) {
  const Kind kind = kOpKinds[row.op];
  return kind == Kind::STEP || kind == Kind::PAIR || row.op == OP_sd;
}

bool needs_register_b(Kind kind) {
  return kind == Kind::SHADD || kind == Kind::STEP || kind == Kind::PAIR || kind == Kind::DMA;
}

// Every index in a valid row is inside the register file, so the loops need not look.
bool is_valid(const Row& row) {
  if (row.op >= OP_COUNT || row.cc >= CC_COUNT || row.ra > 31) return false;
  if (row.rb != kImmediate && row.rb >= 24) return false;
  if (row.rb == kImmediate && needs_register_b(kOpKinds[row.op])) return false;
  if (row.rb != kImmediate && reads_pair(row) && !is_pair(row.rb)) return false;
  return row.rd == kZero || (writes_pair(row) ? is_pair(row.rd) : row.rd < 24);
}

bool is_pure(Kind kind) {
  return kind == Kind::ALU || kind == Kind::UNARY || kind == Kind::SHADD || kind == Kind::STEP ||
         kind == Kind::PAIR || kind == Kind::CALL;
}

bool tests_flags_only(uint8_t cc) {
  return (cc >= CC_false && cc <= CC_mi) || (cc >= CC_ov && cc <= CC_nc) ||
         (cc >= CC_ltu && cc <= CC_xgtu);
}

uint32_t truth_table(Condition cc) {
  uint32_t table = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const bool zero = i & 1, negative = i & 2, less = i & 8;
    Outcome o;
    o.x = zero ? 0 : negative ? 0x80000000u : 1;
    o.carry = i & 4;
    o.overflow = less != negative;
    o.zf = i & 16;
    table |= uint32_t{test(cc, o)} << i;
  }
  return table;
}

// Sets the handler of a row that computes a result from two operands.
void decode_alu(const Row& row, Decoded& d) {
  const auto op = static_cast<Op>(row.op);
  const bool immediate = row.rb == kImmediate;
  const uint8_t form = row.flags & (F_SET | F_JUMP | F_SIGNED | F_UNSIGNED | F_RIR);
  if (form == 0) d.handler = handler(op, immediate ? RI : RR);
  if (form == F_RIR && op == OP_sub && immediate) d.handler = handler(op, IR);
  if (form == F_UNSIGNED && row.rd != kZero) d.handler = handler(op, immediate ? WIDE_RI : WIDE_RR);
  if ((form != F_JUMP && form != F_SET) || !tests_flags_only(row.cc)) return;
  d.off = static_cast<int32_t>(truth_table(static_cast<Condition>(row.cc)));
  if (form == F_SET) d.handler = handler(op, immediate ? SET_RI : SET_RR);
  if (form == F_JUMP) {
    const bool nz = row.cc == CC_nz;
    d.handler = handler(op, immediate ? (nz ? JNZ_RI : JUMP_RI) : (nz ? JNZ_RR : JUMP_RR));
  }
}

void decode_step(const Row& row, Decoded& d) {
  const auto op = static_cast<Op>(row.op);
  if (row.rd == kZero) return;
  if (!(row.flags & F_JUMP)) d.handler = handler(op, RR);
  // The multiply chain leaves when the remaining multiplier is zero.
  if ((row.flags & F_JUMP) && row.cc == CC_z && op == OP_mul_step) d.handler = handler(op, JUMP_RR);
}

Decoded decode(const Row& row) {
  Decoded d{
      kGeneral, row.rd == kZero ? kTrash : row.rd, row.ra, row.rb, row.cc, row.target, row.imm,
      row.off};
  if (row.op >= OP_COUNT) return d;
  const auto op = static_cast<Op>(row.op);
  const bool plain = row.flags == 0, immediate = row.rb == kImmediate;
  switch (kOpKinds[op]) {
    case Kind::ALU:
      decode_alu(row, d);
      break;
    case Kind::STEP:
      decode_step(row, d);
      break;
    case Kind::UNARY:
    case Kind::SHADD:
    case Kind::NONE:
      if (plain) d.handler = handler(op, RR);
      break;
    case Kind::PAIR:
    case Kind::LOAD:
      if (plain && row.rd != kZero) d.handler = handler(op, RR);
      break;
    case Kind::STORE:
    case Kind::CALL:
    case Kind::UNIT:
      if (plain) d.handler = handler(op, immediate ? RI : RR);
      break;
    case Kind::ATOMIC:
      if (row.flags == F_JUMP && row.cc == CC_nz) d.handler = handler(op, RR);
      break;
    default:
      break;
  }
  if (d.handler == kGeneral && is_pure(kOpKinds[op])) d.handler = kPure;
  return d;
}

}  // namespace

Code::Code(const Row* program, uint32_t count)
    : rows(kIramInstructions, Row{kOutside, 0, kZero, kZero, kImmediate, 0, 0, 0, 0}),
      decoded(kIramInstructions + 1),
      ends(kIramInstructions, 0),
      lengths(kIramInstructions, 0),
      size(count) {
  for (uint32_t i = 0; i <= kIramInstructions; ++i)
    decoded[i] = decode(rows[i % kIramInstructions]);
  load(0, program, count);
  has_stacks = uses_stacks();
  mark_frames();
}

void Code::replace(uint32_t index, const Row* program, uint32_t count) {
  size = std::max(size, index + count);
  load(index, program, count);
}

void Code::load(uint32_t index, const Row* program, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    Row row = program[i];
    if (!is_valid(row)) row.op = kIllegal;
    row.target %= kIramInstructions;
    rows[index + i] = row;
    decoded[index + i] = decode(row);
  }
  // Whatever stands at 0: execute() brings the counter back.
  decoded[kIramInstructions].handler = kGeneral;
  mark_ends();
  mark_lengths();
  mark_frames();
}

// A tasklet that has finished stops in a loop; one that waits to be resumed goes on to other code.
bool Code::is_end(uint32_t pc) const {
  const Row& row = rows[pc];
  const bool jumps = (row.flags & F_JUMP) && row.cc == CC_true;
  const uint32_t next = (jumps ? row.target : pc + 1) % kIramInstructions;
  if (next == pc || next >= size) return true;
  const Row& after = rows[next];
  return after.op == OP_call && after.rd == kZero && after.ra == kZero && after.rb == kImmediate &&
         static_cast<uint32_t>(after.imm) % kIramInstructions == pc;
}

// What compilers do with a stack pointer: move it, set it from the frame pointer, or copy what was
// just computed from it (room for an array of variable length).
bool Code::keeps_stack(uint32_t pc) const {
  const Row& row = rows[pc];
  const bool immediate = row.rb == kImmediate;
  if (row.op == OP_ld) return true;
  if (row.flags) return false;
  if (row.ra == kStackPointer) return row.op == OP_add || row.op == OP_sub;
  if (row.op == OP_add && immediate && row.ra >= kFirstSaved && row.ra < kStackPointer) return true;
  const bool copy = row.op == OP_or && immediate && row.imm == 0;
  return copy && pc > 0 && rows[pc - 1].rd == row.ra && rows[pc - 1].ra == kStackPointer;
}

// Tasklets have stacks if the start-up code takes r22 from the linker's table, and nothing writes
// it in ways in which no stack pointer is written: then it is a register like others.
bool Code::uses_stacks() const {
  bool table = false;
  for (uint32_t pc = 0; pc < size; ++pc) {
    if (rows[pc].op >= OP_COUNT || rows[pc].rd != kStackPointer) continue;
    if (!keeps_stack(pc)) return false;
    table |= rows[pc].op == OP_ld && rows[pc].ra == kId8;
  }
  return table;
}

// What writes the stack pointer executes in its own cycle, as it may be a fault; what opens and
// closes the frames of compiled functions has a handler that looks.
void Code::mark_frames() {
  for (uint32_t pc = 0; has_stacks && pc < size; ++pc) {
    const Row& row = rows[pc];
    if (row.op >= OP_COUNT || row.rd != kStackPointer || writes_pair(row)) continue;
    const bool moves = row.op == OP_add && row.ra == kStackPointer && row.rb == kImmediate;
    decoded[pc].handler = moves && !row.flags ? kFrame : kGeneral;
  }
}

void Code::mark_ends() {
  for (uint32_t pc = 0; pc < kIramInstructions; ++pc)
    ends[pc] = rows[pc].op == OP_stop && is_end(pc);
}

}  // namespace upmem
