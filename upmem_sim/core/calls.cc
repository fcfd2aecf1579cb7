// Each function is followed from its start, along every way through it, until the instruction in
// question: that tells how far the stack pointer has moved and where the return address is.
#include "calls.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

namespace upmem {
namespace {

constexpr uint32_t kReturn = 23;
constexpr size_t kMostCalls = 64;  // a damaged stack may go round in circles

// Where a function's return address is: registers, and a word relative to the stack at entry.
struct Frame {
  int32_t pc;
  int32_t moved = 0;  // bytes that the stack pointer has moved since entry
  uint32_t registers = 1u << kReturn;
  std::optional<int32_t> slot;
  int32_t tail = -1;  // the instruction with a line that was left for one without
};

uint32_t written(const Row& row) {
  if (row.rd >= kZero) return 0;
  const auto op = static_cast<Op>(row.op);
  const Kind kind = kOpKinds[op];
  if (kind == Kind::STORE || kind == Kind::STOREID || kind == Kind::DMA) return 0;
  const bool pair = kind == Kind::STEP || kind == Kind::PAIR || op == OP_ld ||
                    row.flags & (F_SIGNED | F_UNSIGNED);
  return (pair ? 3u : 1u) << row.rd;
}

bool is_copy(const Row& row) {
  return (row.op == OP_or || row.op == OP_add) && row.rb == kImmediate && row.imm == 0 &&
         row.ra < kZero && !(row.flags & F_SET);
}

void keep_return_address(Frame& f, const Row& row) {
  const auto op = static_cast<Op>(row.op);
  const bool on_stack = row.ra == kStackPointer;
  if (op == OP_sw && on_stack && row.rb < kZero && f.registers >> row.rb & 1)
    f.slot = f.moved + row.off;
  // the low word of a pair is in the odd register, and first in memory
  if (op == OP_sd && on_stack && row.rb < kZero && f.registers >> (row.rb + 1) & 1)
    f.slot = f.moved + row.off;
  const bool from_copy = is_copy(row) && f.registers >> row.ra & 1;
  const bool loads = (op == OP_lw || op == OP_ld) && on_stack && f.slot == f.moved + row.off;
  f.registers &= ~written(row);
  if (from_copy) f.registers |= written(row);
  if (loads && row.rd < kZero) f.registers |= 1u << (op == OP_ld ? row.rd + 1 : row.rd);
}

// False if the stack pointer becomes something that the code does not tell.
bool move_stack(Frame& f, const Row& row) {
  if (!(written(row) >> kStackPointer & 1)) return true;
  if (row.op == OP_ld) {  // a frame's end brings back what was at entry; start-up sets it
    f.moved = 0;
    return true;
  }
  const bool adds = row.op == OP_add || row.op == OP_sub;
  if (!adds || row.ra != kStackPointer || row.rb != kImmediate) return false;
  f.moved += row.op == OP_add ? row.imm : -row.imm;
  return true;
}

void successors(const Row& row, int32_t pc, std::vector<int32_t>& out) {
  out.clear();
  const bool jumps = row.op == OP_call && row.rd >= kZero;
  if (row.op == OP_fault || row.op >= OP_COUNT) return;
  if (jumps && row.ra >= kZero && row.rb == kImmediate) out.push_back(row.imm);
  if (row.flags & F_JUMP) out.push_back(row.target);
  const bool always = row.flags & F_JUMP && row.cc == CC_true;
  // a computed jump goes into the code behind it
  const bool leaves = jumps && (row.ra >= kZero || row.ra == kReturn);
  if (!always && !leaves) out.push_back(pc + 1);
}

// The frames at `pc` of a function that starts at `start`, if it gets there: one for each tail.
std::vector<Frame> frames_at(const Code& code, int32_t start, int32_t pc,
                             const std::vector<bool>& lined) {
  std::vector<Frame> found, work{{start}};
  std::vector<std::vector<int32_t>> seen(code.size);  // tails with which an instruction was met
  std::vector<int32_t> next;
  while (!work.empty()) {
    Frame f = work.back();
    work.pop_back();
    if (f.pc < 0 || f.pc >= static_cast<int32_t>(code.size)) continue;
    auto& tails = seen[f.pc];
    if (std::find(tails.begin(), tails.end(), f.tail) != tails.end()) continue;
    tails.push_back(f.tail);
    if (f.pc == pc) {
      found.push_back(f);
      continue;
    }
    const Row& row = code.rows[f.pc];
    if (row.op >= OP_COUNT) continue;
    successors(row, f.pc, next);
    keep_return_address(f, row);
    if (!move_stack(f, row)) continue;
    if (lined[f.pc]) f.tail = f.pc;
    for (const int32_t after : next) {
      work.push_back(f);
      work.back().pc = after;
      if (after < static_cast<int32_t>(code.size) && lined[after]) work.back().tail = -1;
    }
  }
  return found;
}

bool is_call(const Row& row) { return row.op == OP_call && row.rd == kReturn; }

bool is_direct(const Row& row) { return row.ra >= kZero && row.rb == kImmediate; }

// Where functions start: what is called, and the instruction that a DPU boots at.
std::set<int32_t> starts(const Code& code) {
  std::set<int32_t> out{0};
  for (uint32_t i = 0; i < code.size; ++i)
    if (is_call(code.rows[i]) && is_direct(code.rows[i])) out.insert(code.rows[i].imm);
  return out;
}

std::optional<uint32_t> return_address(const Machine& m, const Tasklet& t, const Frame& f,
                                       uint32_t entry_stack) {
  for (uint32_t r = kReturn + 1; r-- > 0;)
    if (f.registers >> r & 1) return t.r[r];
  if (!f.slot) return {};
  const uint64_t address = entry_stack + static_cast<uint32_t>(*f.slot);
  if (address + 4 > m.params.wram_bytes) return {};
  uint32_t word;
  std::memcpy(&word, m.wram + address, sizeof word);
  return word;
}

// The instruction that called, if the state holds a return address behind one that calls `start`.
std::optional<int32_t> caller(const Machine& m, const Tasklet& t, const Frame& f, uint32_t stack,
                              int32_t start) {
  const auto back = return_address(m, t, f, stack - static_cast<uint32_t>(f.moved));
  if (!back || *back == 0 || *back > m.code->size) return {};
  const Row& row = m.code->rows[*back - 1];
  if (!is_call(row) || (is_direct(row) && row.imm != start)) return {};
  return static_cast<int32_t>(*back) - 1;
}

}  // namespace

int32_t lined_caller(const Machine& m, uint32_t t, int32_t pc, const std::vector<bool>& lined) {
  const auto functions = starts(*m.code);
  const Tasklet& tasklet = m.tasklets[t];
  uint32_t stack = tasklet.r[kStackPointer];
  for (uint32_t depth = 0; depth < kMostCalls; ++depth) {
    if (pc < 0 || pc >= static_cast<int32_t>(m.code->size)) return -1;
    if (lined[pc]) return pc;
    std::map<int32_t, int32_t> origins;  // instruction -> how far the stack has moved since
    for (const int32_t start : functions) {
      for (Frame& f : frames_at(*m.code, start, pc, lined)) {
        if (depth) f.registers &= ~(1u << kReturn);  // the call has overwritten it
        const auto call = caller(m, tasklet, f, stack, start);
        if (start && !call) continue;
        if (f.tail >= 0 || call) origins[f.tail >= 0 ? f.tail : *call] = f.moved;
      }
    }
    if (origins.size() != 1) return -1;
    pc = origins.begin()->first;
    stack -= static_cast<uint32_t>(origins.begin()->second);
  }
  return -1;
}

}  // namespace upmem
