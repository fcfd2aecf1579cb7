#include "clock.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

namespace upmem::host {
namespace {

double& my_clock(const Allocation& allocation) {
  thread_local std::unordered_map<const Allocation*, double> clocks;
  return clocks[&allocation];
}

void print_line(Allocation& allocation) {
  const dpu_sim_time_t time = counted(allocation);
  double elapsed = allocation.elapsed;
  if (allocation.ranks[0]->owner == &allocation)
    elapsed = allocation.bus.settle(tracks_of(allocation.ranks));
  const auto calls = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::fprintf(stderr,
               "libdpu: %u DPUs: to DPUs %.6f ms (%llu B, %llu calls), launches %.6f ms, kernels "
               "%.6f ms (%llu calls), from DPUs %.6f ms (%llu B, %llu calls), elapsed %.6f ms\n",
               allocation.dpus, time.to_dpus * 1e3, calls(time.bytes_to_dpus),
               calls(time.nr_to_dpus), time.launches * 1e3, time.kernels * 1e3,
               calls(time.nr_launches), time.from_dpus * 1e3, calls(time.bytes_from_dpus),
               calls(time.nr_from_dpus), elapsed * 1e3);
}

[[gnu::destructor]] void print_summary() {
  if (!settings().summary) return;
  for (Allocation* allocation : allocations()) print_line(*allocation);
}

}  // namespace

double thread_time(const Allocation& allocation) { return my_clock(allocation); }

void pass(const Ranks& ranks, Work work) {
  Allocation& owner = *ranks[0]->owner;
  double& mine = my_clock(owner);
  work.asked = mine;
  mine = owner.bus.pass(tracks_of(ranks), work);
}

void pass_job(dpu_rank_t& rank, const Work& work) { rank.owner->bus.add(rank.track, work); }

void meet(const Ranks& ranks) {
  double& mine = my_clock(*ranks[0]->owner);
  mine = std::max(mine, ranks[0]->owner->bus.settle(tracks_of(ranks)));
}

void restart(Allocation& allocation) {
  my_clock(allocation) = 0;
  allocation.bus.restart();
}

void count_copy(Allocation& allocation, Way way, double seconds, uint64_t bytes) {
  const std::lock_guard lock(allocation.mutex);
  dpu_sim_time_t& t = allocation.time;
  (way == Way::TO_DPUS ? t.to_dpus : t.from_dpus) += seconds;
  (way == Way::TO_DPUS ? t.nr_to_dpus : t.nr_from_dpus) += 1;
  (way == Way::TO_DPUS ? t.bytes_to_dpus : t.bytes_from_dpus) += bytes;
}

void count_launch(Allocation& allocation, double launch, double kernel) {
  const std::lock_guard lock(allocation.mutex);
  allocation.time.launches += launch;
  allocation.time.kernels += kernel;
  ++allocation.time.nr_launches;
}

dpu_sim_time_t counted(Allocation& allocation) {
  const std::lock_guard lock(allocation.mutex);
  return allocation.time;
}

}  // namespace upmem::host
