// What the environment and the profile string ask for.
#pragma once
#include <cstdint>
#include <string>

#include "system_model.h"

namespace upmem::host {

// Of the process, read once: the variables are explained in include/dpu/dpu_sim.h.
struct Settings {
  bool summary, quiet;
  uint32_t threads, dpus;
  uint64_t max_cycles;
};
const Settings& settings();
// The system that DPU_SIM_PRESET names. Throws Failure if there is none, at each call.
const TransferPreset& preset();

// Of an allocation. Keys that mean nothing to a simulator are accepted.
struct Profile {
  uint32_t threads_per_rank = 1;
  uint32_t jobs_per_rank = 16;
  bool scatter_gather = false;
  uint32_t max_blocks = 0;  // of one DPU in a scatter/gather transfer; 0: as many as DPUs
};

// Throws Failure unless the text is `key=value,key=value`. UPMEM_PROFILE_BASE comes before it and
// UPMEM_PROFILE after it.
Profile read_profile(const char* text);

}  // namespace upmem::host
