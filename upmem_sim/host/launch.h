// Runs DPUs to their end, over the threads of the pool.
#pragma once
#include "board.h"

namespace upmem::host {

// DPU_ERR_DPU_FAULT if one of them stopped with a fault; it is told on standard error.
dpu_error_t run_dpus(const Dpus& dpus);
// Seconds of the slowest of the last run.
double kernel_seconds(const Dpus& dpus);

}  // namespace upmem::host
