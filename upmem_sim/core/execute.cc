// One instruction of any form: operands, operation, condition, write back, next pc.
#include <bit>
#include <cstring>

#include "machine.h"
#include "watch.h"

namespace upmem {
namespace {

static_assert(std::endian::native == std::endian::little, "WRAM is little endian");

// State of one instruction on its way.
struct Step {
  Machine& m;
  Tasklet& t;
  const Row& row;
  uint32_t self;
  uint64_t at;
};

void write(Tasklet& t, const Row& row, uint32_t value) {
  if (row.rd == kZero) return;
  if (row.rd == kStackPointer && !(row.flags & (F_SIGNED | F_UNSIGNED)) && t.leaves_stack(value))
    throw Fault{FaultKind::STACK, -1, -1, value, t.stack_low, t.stack_low + t.stack_bytes};
  if (row.flags & (F_SIGNED | F_UNSIGNED)) {
    t.r[row.rd] = (row.flags & F_SIGNED) && value >> 31 ? ~0u : 0;
    t.r[row.rd + 1] = value;
  } else {
    t.r[row.rd] = value;
  }
}

uint32_t second(const Tasklet& t, const Row& row) {
  return row.rb == kImmediate ? static_cast<uint32_t>(row.imm) : t.r[row.rb];
}

// Jump if the form jumps and the condition holds, else on to the next instruction.
void go_on(Step& s, bool holds) {
  const bool jumps = (s.row.flags & F_JUMP) && holds;
  s.t.pc = jumps ? s.row.target : (s.t.pc + 1) % kIramInstructions;
  s.m.jumps += jumps;
}

void alu(Step& s) {
  const auto op = static_cast<Op>(s.row.op);
  Outcome o;
  o.src = o.a = s.t.r[s.row.ra];
  o.b = kOpKinds[op] == Kind::UNARY ? 0 : second(s.t, s.row);
  if (((s.row.flags & F_RIR) != 0) != (op == OP_rsub || op == OP_rsubc)) std::swap(o.a, o.b);
  o.zf = s.t.z == 0;
  o.count_max = op == OP_cls ? 31 : 32;
  if (is_adder(op)) {
    const Sum sum = adder(op, o.a, o.b, s.t.cf);
    o.x = sum.x;
    o.carry = s.t.cf = sum.carry;
    o.overflow = sum.overflow;
  } else {
    o.x = plain_result(op, o.a, o.b, 0);
  }
  const bool holds = test(static_cast<Condition>(s.row.cc), o);
  s.t.z = o.x;
  write(s.t, s.row, s.row.flags & F_SET ? holds : o.x);
  go_on(s, holds);
}

// Of a unit that no UPMEM chip has.
void unit(Step& s) {
  const auto op = static_cast<Op>(s.row.op);
  if (!unit_slots(s.m.params, op)) throw Fault{FaultKind::ILLEGAL, -1, -1, s.t.pc, 0, 0};
  write(s.t, s.row, plain_result(op, s.t.r[s.row.ra], second(s.t, s.row), 0));
  go_on(s, false);
}

void shift_add(Step& s) {
  const auto op = static_cast<Op>(s.row.op);
  Outcome o;
  o.src = s.t.r[s.row.ra];
  o.zf = s.t.z == 0;
  o.x = plain_result(op, o.src, 0, static_cast<uint32_t>(s.row.off) & 31);
  const uint32_t addend = s.t.r[s.row.rb];
  const bool holds = test(static_cast<Condition>(s.row.cc), o);
  s.t.z = o.x;
  write(s.t, s.row, op == OP_lsl_sub ? addend - o.x : addend + o.x);
  go_on(s, holds);
}

void pair_step(Step& s) {
  Outcome o;
  o.src = s.t.r[s.row.ra];
  o.zf = s.t.z == 0;
  const uint32_t shifted = o.src << (s.row.off & 31);
  uint32_t even = s.t.r[s.row.rb], odd = s.t.r[s.row.rb + 1];
  bool writes_odd;
  if (s.row.op == OP_mul_step) {
    writes_odd = even & 1;
    odd += shifted;
    even >>= 1;
    s.t.z = even;
  } else {
    writes_odd = odd >= shifted;
    odd -= shifted;
    even = even << 1 | writes_odd;
  }
  o.x = even;
  const bool holds = test(static_cast<Condition>(s.row.cc), o);
  if (s.row.rd != kZero) {
    s.t.r[s.row.rd] = even;
    if (writes_odd) s.t.r[s.row.rd + 1] = odd;
  }
  go_on(s, holds);
}

void move_pair(Step& s) {
  const uint32_t swap = s.row.op == OP_swapd;
  const uint32_t even = s.t.r[s.row.rb + swap], odd = s.t.r[s.row.rb + 1 - swap];
  if (s.row.rd != kZero) {
    s.t.r[s.row.rd] = even;
    s.t.r[s.row.rd + 1] = odd;
  }
  go_on(s, s.row.cc == CC_true);
}

uint32_t checked_address(const Step& s, uint32_t bytes) {
  const uint32_t address = s.t.r[s.row.ra] + static_cast<uint32_t>(s.row.off);
  if (uint64_t{address} + bytes > s.m.params.wram_bytes)
    throw Fault{FaultKind::MEMORY, -1, -1, address, bytes, 0};
  if (address % bytes) throw Fault{FaultKind::ALIGNMENT, -1, -1, address, bytes, 0};
  return address;
}

uint64_t ordered(uint64_t value, uint32_t bytes, bool big) {
  return big ? __builtin_bswap64(value) >> (64 - 8 * bytes) : value;
}

void load(Step& s) {
  const auto op = static_cast<Op>(s.row.op);
  const uint32_t bytes = access_bytes(op), address = checked_address(s, bytes);
  if (s.m.watch) s.m.watch->load(s.m, s.self, address, bytes);
  uint64_t value = 0;
  std::memcpy(&value, s.m.wram + address, bytes);
  value = ordered(value, bytes, s.row.flags & F_BIG);
  if (op == OP_lbs) value = static_cast<uint64_t>(static_cast<int8_t>(value));
  if (op == OP_lhs) value = static_cast<uint64_t>(static_cast<int16_t>(value));
  if (op != OP_ld) {
    write(s.t, s.row, static_cast<uint32_t>(value));
  } else if (s.row.rd != kZero) {
    s.t.r[s.row.rd] = static_cast<uint32_t>(value >> 32);
    s.t.r[s.row.rd + 1] = static_cast<uint32_t>(value);
  }
  go_on(s, false);
}

void store(Step& s) {
  const auto op = static_cast<Op>(s.row.op);
  const uint32_t bytes = access_bytes(op), address = checked_address(s, bytes);
  if (s.m.watch) s.m.watch->store(s.m, s.self, address, bytes);
  auto value = static_cast<uint64_t>(int64_t{s.row.imm});
  if (kOpKinds[op] == Kind::STOREID) {
    value |= s.self;
  } else if (s.row.rb != kImmediate) {
    value = s.t.r[s.row.rb];
    if (op == OP_sd) value = value << 32 | s.t.r[s.row.rb + 1];
  }
  value = ordered(value, bytes, s.row.flags & F_BIG);
  std::memcpy(s.m.wram + address, &value, bytes);
  go_on(s, false);
}

// Instructions whose result is an old bit: condition and zero flag on it.
void finish_bit(Step& s, uint32_t old) {
  Outcome o;
  o.x = old;
  o.src = s.t.r[s.row.ra];
  o.zf = s.t.z == 0;
  const bool holds = test(static_cast<Condition>(s.row.cc), o);
  s.t.z = old;
  go_on(s, holds);
}

void stop_self(Step& s) {
  s.t.ended = s.m.code->ends[s.t.pc];
  stop(s.m, s.self, s.at);
  finish_bit(s, 1);
}

void time_op(Step& s) {
  const uint32_t now = read_time(s.m, s.at);
  // Without a destination time_cfg is documented to have no effect.
  if (s.row.op == OP_time_cfg && s.row.rd != kZero) configure_time(s.m, second(s.t, s.row), s.at);
  write(s.t, s.row, now);
  go_on(s, s.row.cc == CC_true);
}

void call(Step& s) {
  const uint32_t target = s.t.r[s.row.ra] + second(s.t, s.row);
  write(s.t, s.row, (s.t.pc + 1) % kIramInstructions);
  s.t.pc = target % kIramInstructions;
  s.m.jumps += 1;
}

void dispatch(Step& s) {
  switch (kOpKinds[s.row.op]) {
    case Kind::ALU:
    case Kind::UNARY:
      return alu(s);
    case Kind::SHADD:
      return shift_add(s);
    case Kind::STEP:
      return pair_step(s);
    case Kind::PAIR:
      return move_pair(s);
    case Kind::LOAD:
      return load(s);
    case Kind::STORE:
    case Kind::STOREID:
      return store(s);
    case Kind::DMA:
      transfer(s.m, s.t, s.row, s.at);
      return go_on(s, false);
    case Kind::ATOMIC:
      return finish_bit(s, s.row.op == OP_acquire ? acquire(s.m, s.t, s.row, s.self)
                                                  : release(s.m, s.t, s.row, s.self));
    case Kind::THREAD:
      return finish_bit(s, control_thread(s.m, s.row, s.self, s.at));
    case Kind::STOP:
      return stop_self(s);
    case Kind::TIME:
      return time_op(s);
    case Kind::CALL:
      return call(s);
    case Kind::CODE:
      if (s.row.op == OP_fault)
        throw Fault{FaultKind::FAULT, -1, -1, static_cast<uint32_t>(s.row.imm), 0, 0};
      return go_on(s, false);
    case Kind::NONE:
      return go_on(s, false);
    case Kind::UNIT:
      return unit(s);
  }
}

// An instruction marked in Code::lengths prepares a transfer that cannot be.
Fault length_fault(const Code& code, const Tasklet& t) {
  const uint8_t mark = code.lengths[t.pc];
  const uint32_t pc = t.pc + (mark & kDistance);
  const Row& row = code.rows[t.pc];
  if (!(mark & kNearAddress)) return {FaultKind::DMA_LENGTH, -1, -1, t.r[row.ra], pc, 0};
  const bool at_dma = kOpKinds[row.op] == Kind::DMA;
  const uint32_t units = at_dma ? 1 : 1 + t.r[row.ra];
  const uint32_t bytes = 8 * ((units + static_cast<uint32_t>(code.rows[pc].off)) & 0xff);
  const uint32_t near = t.r[at_dma ? row.ra : row.rb];
  return {FaultKind::DMA_RANGE, -1, static_cast<int32_t>(pc), near, bytes, 0};
}

}  // namespace

void execute(Machine& m, uint32_t tasklet, const Row& row, uint64_t at) {
  Tasklet& t = m.tasklets[tasklet];
  t.pc %= kIramInstructions;
  try {
    if (row.op == kOutside) throw Fault{FaultKind::PC_RANGE, -1, -1, t.pc, m.code->size, 0};
    if (row.op == kIllegal) throw Fault{FaultKind::ILLEGAL, -1, -1, t.pc, 0, 0};
    if (!length_fits(m, t, t.pc)) [[unlikely]]
      throw length_fault(*m.code, t);
    Step s{m, t, row, tasklet, at};
    dispatch(s);
  } catch (Fault& fault) {
    if (fault.tasklet < 0) fault.tasklet = static_cast<int32_t>(tasklet);
    if (fault.pc < 0) fault.pc = static_cast<int32_t>(t.pc);
    throw;
  }
}

}  // namespace upmem
