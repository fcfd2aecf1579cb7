// What went wrong on a DPU in one line, in the words of faults.py.
#pragma once
#include <string>

#include "board.h"

namespace upmem::host {

std::string describe_fault(const dpu_t& dpu, uint64_t max_cycles);

}  // namespace upmem::host
