// Simulated time. Each rank has a track of work (bus.h), and each thread of the host a clock for an
// allocation: a call that waits begins when both are free and moves both on; an asynchronous one
// moves the ranks' only.
#pragma once
#include "board.h"

namespace upmem::host {

enum class Way { TO_DPUS, FROM_DPUS };

// When the calling thread makes its next call.
double thread_time(const Allocation& allocation);
// A call of this thread, for which the ranks, which it has the turn of, work as one.
void pass(const Ranks& ranks, Work work);
// A job of one rank, which its thread has the turn of.
void pass_job(dpu_rank_t& rank, const Work& work);
// The calling thread has waited for the ranks.
void meet(const Ranks& ranks);
// The calling thread's clock starts again, with the time of the ranks.
void restart(Allocation& allocation);

void count_copy(Allocation& allocation, Way way, double seconds, uint64_t bytes);
void count_launch(Allocation& allocation, double launch, double kernel);
// Without `elapsed`.
dpu_sim_time_t counted(Allocation& allocation);

}  // namespace upmem::host
