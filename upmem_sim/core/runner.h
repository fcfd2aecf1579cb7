// Runs DPUs to their end, over threads.
#pragma once
#include <cstdint>
#include <vector>

#include "machine.h"

namespace upmem {

// How each machine ended, in order. Releases the GIL; lets Python handle signals several times a
// second and raises what the handler raised. `plain` forces the plain loop.
std::vector<Exit> run_machines(const std::vector<Machine*>& machines, uint32_t threads,
                               uint64_t max_cycles, bool plain);

}  // namespace upmem
