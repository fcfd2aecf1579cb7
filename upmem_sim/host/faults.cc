#include "faults.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "../core/calls.h"

namespace upmem::host {
namespace {

constexpr const char* kCodes[] = {"breakpoint",
                                  "heap full",
                                  "division by zero",
                                  "assertion failed",
                                  "halt",
                                  "print buffer full",
                                  "profiling started twice",
                                  "profiling stopped without start",
                                  "MRAM access with wrong alignment"};
constexpr const char* kMemories[] = {"WRAM", "MRAM", "IRAM"};
// In the order of FaultKind.
constexpr const char* kKinds[] = {
    "none",          "memory",         "alignment",   "dma-range",
    "dma-alignment", "thread",         "fault",       "illegal-instruction",
    "pc-range",      "deadlock",       "cycle-limit", "uninitialised",
    "race",          "stack-overflow", "dma-length"};

[[gnu::format(printf, 1, 2)]] std::string format(const char* text, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(buffer, sizeof buffer, text, arguments);
  va_end(arguments);
  return buffer;
}

const Row* row_at(const Machine& m, int32_t pc) {
  return pc >= 0 && static_cast<uint32_t>(pc) < m.code->size ? &m.code->rows[pc] : nullptr;
}

const char* instruction(const Machine& m) {
  const Row* row = row_at(m, m.fault.pc);
  return row && row->op < OP_COUNT ? kOpNames[row->op] : "instruction";
}

// The address register and its value, empty where there is none.
std::string base(const Machine& m) {
  const Row* row = row_at(m, m.fault.pc);
  if (!row || row->ra >= 24 || m.fault.tasklet < 0) return "";
  return format(" (r%d = %#x)", row->ra, m.tasklets[m.fault.tasklet].r[row->ra]);
}

std::string place(const dpu_program_t& program, int32_t pc) {
  if (pc < 0 || static_cast<size_t>(pc) >= program.lines.size() || program.lines[pc].file < 0)
    return "";
  const Line& line = program.lines[pc];
  return format(" (%s:%u)", program.files[line.file].c_str(), line.line);
}

// Of library code, which has no lines, the place that it was called from.
std::string place_of(const dpu_t& dpu, uint32_t tasklet, int32_t pc) {
  std::vector<bool> lined(dpu.machine->code->size);
  for (size_t i = 0; i < std::min(lined.size(), dpu.program->lines.size()); ++i)
    lined[i] = dpu.program->lines[i].file >= 0;
  return place(*dpu.program, lined_caller(*dpu.machine, tasklet, pc, lined));
}

// " in NAME", empty if the program does not say.
std::string function(const dpu_program_t& program, int32_t pc) {
  const uint32_t at = kIramBase + 8 * static_cast<uint32_t>(pc);
  uint32_t best = 0;
  std::string name;
  for (const auto& [candidate, symbol] : program.symbols) {
    if (symbol.address < kIramBase || symbol.address > at || symbol.address < best) continue;
    if (symbol.address == best && candidate > name) continue;
    best = symbol.address;
    name = candidate;
  }
  return name.empty() ? "" : " in " + name;
}

std::string deadlock(const dpu_t& dpu) {
  const Machine& m = *dpu.machine;
  std::string waits;
  for (uint32_t t = 0; t < m.params.tasklets; ++t) {
    const Tasklet& tasklet = m.tasklets[t];
    if (!tasklet.booted || tasklet.ended) continue;
    const auto pc = static_cast<int32_t>(tasklet.pc % kIramInstructions);
    if (!waits.empty()) waits += "; ";
    waits += format("tasklet %u %s", t, m.running >> t & 1 ? "spins" : "sleeps");
    waits += function(*dpu.program, pc) + format(" at pc %d", pc);
    waits += place_of(dpu, t, pc);
  }
  return "nobody is left to wake them: " + waits;
}

std::string dma(const Machine& m, const std::string& rest) {
  const Fault& f = m.fault;
  return format("%s of %u bytes at %s %#x: ", instruction(m), f.size, kMemories[f.other],
                f.address) +
         rest;
}

std::string words(const dpu_t& dpu, uint64_t max_cycles) {
  const Machine& m = *dpu.machine;
  const Fault& f = m.fault;
  const uint64_t sizes[] = {m.params.wram_bytes, m.params.mram_bytes,
                            8 * m.params.iram_instructions};
  switch (f.kind) {
    case FaultKind::MEMORY:
      return format("%s of %u bytes at %#x%s: WRAM has %llu bytes%s", instruction(m), f.size,
                    f.address, base(m).c_str(), static_cast<unsigned long long>(sizes[0]),
                    f.address >> 27 == 1 ? ", an MRAM address used as WRAM" : "");
    case FaultKind::ALIGNMENT:
      return format("%s at %#x%s: address must be a multiple of %u, remainder %u", instruction(m),
                    f.address, base(m).c_str(), f.size, f.address % f.size);
    case FaultKind::DMA_RANGE:
      return dma(m, format("%s has %llu bytes", kMemories[f.other],
                           static_cast<unsigned long long>(sizes[f.other])));
    case FaultKind::DMA_ALIGNMENT:
      return dma(m, format("address must be a multiple of 8, remainder %u", f.address % 8));
    case FaultKind::THREAD:
      return format("%s of tasklet %u: limit %llu", instruction(m), f.address,
                    static_cast<unsigned long long>(m.params.tasklets - 1));
    case FaultKind::FAULT:
      return format("code %u, %s", f.address,
                    f.address < std::size(kCodes) ? kCodes[f.address] : "of the program") +
             (place(*dpu.program, f.pc).empty() ? function(*dpu.program, f.pc) : "");
    case FaultKind::ILLEGAL:
      return "not an instruction of the DPU";
    case FaultKind::PC_RANGE:
      return format("no instruction at %d: the program has %u", f.pc, f.size);
    case FaultKind::DEADLOCK:
      return deadlock(dpu);
    case FaultKind::CYCLE_LIMIT:
      return format("not finished after %llu cycles", static_cast<unsigned long long>(max_cycles));
    case FaultKind::STACK:
      return format("stack pointer r22 becomes %#x, limits of this tasklet's stack: %#x to %#x",
                    f.address, f.size, f.other);
    case FaultKind::DMA_LENGTH:
      return format("%s at pc %u of %u bytes%s: the length must be a multiple of 8 from 8 to 2048",
                    kOpNames[m.code->rows[f.size].op], f.size, f.address, base(m).c_str());
    default:
      return "no fault";
  }
}

std::string where(const dpu_t& dpu) {
  const Fault& f = dpu.machine->fault;
  return f.tasklet < 0 ? place(*dpu.program, f.pc)
                       : place_of(dpu, static_cast<uint32_t>(f.tasklet), f.pc);
}

}  // namespace

std::string describe_fault(const dpu_t& dpu, uint64_t max_cycles) {
  const Fault& f = dpu.machine->fault;
  const auto kind = static_cast<size_t>(f.kind);
  std::string text = kind < std::size(kKinds) ? kKinds[kind] : "unknown";
  if (f.kind == FaultKind::FAULT) text = "program";  // as errors.py puts it
  text += format(" fault at DPU 0x%x", id_of(dpu));
  if (f.tasklet >= 0) text += format(", tasklet %d", f.tasklet);
  if (f.pc >= 0) text += format(", pc %d", f.pc) + where(dpu);
  return text + ": " + words(dpu, max_cycles);
}

}  // namespace upmem::host
