// Calls that copy: their turn or their jobs, and their simulated time.
#pragma once
#include "memory.h"

namespace upmem::host {

struct Transfer {
  Place place;
  Way way;
  bool broadcast;
  std::vector<Piece> pieces;
};

// Does it now, or as a job of each rank. Pieces may be on a part of the set's DPUs.
dpu_error_t perform(const dpu_set_t& set, Transfer transfer, bool asynchronous, JobKind kind);

// Failure if the allocation has no threads for such a call.
void need_threads(const Allocation& allocation, const Ranks& ranks, bool asynchronous);

}  // namespace upmem::host
