#include "launch.h"

#include <algorithm>

#include "decode.h"
#include "faults.h"
#include "pool.h"

namespace upmem::host {
namespace {

// Instructions that a DPU fetched into IRAM take their place; meaningless words fault if executed.
void load_code(Machine& m) {
  std::vector<Row> rows(m.iram.count);
  for (uint32_t i = 0; i < m.iram.count; ++i)
    if (!decode_word(m.iram.words[i] & ((1ull << 48) - 1), rows[i])) rows[i].op = kIllegal;
  auto own = std::make_shared<Code>(*m.code);  // other DPUs keep theirs
  own->replace(m.iram.index, rows.data(), m.iram.count);
  m.code = std::move(own);
  m.iram.count = 0;
}

void run(dpu_t& dpu) {
  Machine& m = *dpu.machine;
  const uint64_t limit = settings().max_cycles;
  dpu.fault.clear();
  m.start();
  Exit exit = m.run_fast(limit);
  while (exit == Exit::IRAM) {
    load_code(m);
    exit = m.run_fast(limit);
  }
  if (exit == Exit::BUDGET)
    m.fault = {FaultKind::CYCLE_LIMIT, static_cast<int32_t>(m.last),
               static_cast<int32_t>(m.tasklets[m.last].pc % kIramInstructions)};
  if (exit != Exit::FINISHED) dpu.fault = describe_fault(dpu, limit);
}

}  // namespace

dpu_error_t run_dpus(const Dpus& dpus) {
  for (const dpu_t* dpu : dpus)
    if (!dpu->program) throw Failure{DPU_ERR_NO_PROGRAM_LOADED, ""};
  run_parallel(dpus.size(), [&](size_t i) { run(*dpus[i]); });
  const auto faulty = [](const dpu_t* dpu) { return !dpu->fault.empty(); };
  const auto first = std::find_if(dpus.begin(), dpus.end(), faulty);
  if (first == dpus.end()) return DPU_OK;
  const auto others = std::count_if(first + 1, dpus.end(), faulty);
  tell((*first)->fault + (others ? " (and " + std::to_string(others) + " more at fault)" : ""));
  return DPU_ERR_DPU_FAULT;
}

double kernel_seconds(const Dpus& dpus) {
  uint64_t cycles = 0;
  for (const dpu_t* dpu : dpus) cycles = std::max(cycles, dpu->machine->cycle);
  return static_cast<double>(cycles) / kClockHz;
}

}  // namespace upmem::host
