// The simulated machine: ranks of DPUs, and what is allocated of them.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../core/machine.h"
#include "bus.h"
#include "include/dpu/dpu_sim.h"
#include "include/dpu/dpu_types.h"
#include "jobs.h"
#include "program.h"
#include "settings.h"

namespace upmem::host {

// An allocation. It stays after it is freed: programs and the summary point to it.
struct Allocation {
  Ranks ranks;
  dpu_set_t set{};
  Profile profile;
  uint32_t dpus = 0;
  Bus bus;
  std::mutex mutex;               // of what follows
  dpu_sim_time_t time{};          // without `elapsed`
  double elapsed = 0;             // when it was freed
  std::vector<Program> programs;  // that the user may hold pointers to
};

}  // namespace upmem::host

struct dpu_t {
  dpu_rank_t* rank = nullptr;
  uint32_t slice = 0, member = 0;
  bool enabled = false;
  void* buffer = nullptr;  // of dpu_prepare_xfer
  std::unique_ptr<upmem::Machine> machine;
  upmem::host::Program program;
  std::string fault;  // of the last launch, empty if there was none
};

struct dpu_rank_t {
  uint32_t id = 0;
  upmem::host::Allocation* owner = nullptr;
  std::array<dpu_t, upmem::host::kDpusPerRank> dpus;  // the enabled ones come first
  uint32_t enabled = 0;
  upmem::host::Track track;  // in simulated time; the bus's
  upmem::host::JobQueue queue;
};

namespace upmem::host {

using Dpus = std::vector<dpu_t*>;

// Throws Failure when there are not so many. `ranks` counts ranks, not DPUs; kAll: what there is.
inline constexpr uint32_t kAll = ~0u;
Allocation& allocate(uint32_t count, bool ranks, const char* profile);
void release(Allocation& allocation);
// All that there ever were.
std::vector<Allocation*> allocations();

Tracks tracks_of(const Ranks& ranks);

// Of a set, in the order of iteration. Failure: a set that is no part of an allocation.
Ranks ranks_of(const dpu_set_t& set);
Dpus dpus_of(const dpu_set_t& set);
Allocation& owner_of(const dpu_set_t& set);
// The DPU of a set of a single one; Failure otherwise.
dpu_t& single_dpu(const dpu_set_t& set);

// The program of a file's bytes; the same one if the allocation has loaded these bytes before.
Program program_of(Allocation& allocation, std::string bytes, const char* name);
// Its instructions and stacks, without the initial values of its variables.
void put_program(dpu_t& dpu, const Program& program);

uint32_t id_of(const dpu_t& dpu);
void tell(const std::string& text);  // one line on standard error, unless asked to be quiet

// What the C interface returns for what `action` does or throws.
template <class Action>
dpu_error_t guarded(const Action& action) {
  try {
    return action();
  } catch (const Failure& failure) {
    if (!failure.text.empty()) tell(failure.text);
    return failure.code;
  } catch (const std::bad_alloc&) {
    return DPU_ERR_SYSTEM;
  } catch (...) {
    return DPU_ERR_INTERNAL;
  }
}

}  // namespace upmem::host
