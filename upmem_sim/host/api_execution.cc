// dpu.h: launches, waiting and callbacks. dpu_sim.h.
#include <algorithm>
#include <cstring>
#include <thread>

#include "clock.h"
#include "include/dpu/dpu.h"
#include "launch.h"
#include "transfers.h"

using namespace upmem::host;

namespace {

// An asynchronous launch: what its ranks have in common.
struct Launch {
  Allocation& owner;
  const double seconds, asked;
  std::vector<Dpus> dpus;  // of each rank
  std::mutex mutex;
  size_t left;
  double kernel = 0;

  void finish_rank(double rank_kernel) {
    const std::lock_guard lock(mutex);
    kernel = std::max(kernel, rank_kernel);
    if (--left == 0) count_launch(owner, seconds, kernel);
  }
};

dpu_error_t launch_now(const Ranks& ranks, const Dpus& dpus) {
  const Turn turn(ranks);
  const dpu_error_t status = run_dpus(dpus);
  const double overhead = launch_seconds(preset(), static_cast<uint32_t>(dpus.size()));
  const double kernel = kernel_seconds(dpus);
  pass(ranks, {0, overhead + kernel, {}, 0});
  count_launch(*ranks[0]->owner, overhead, kernel);
  return status;
}

void launch_later(const Ranks& ranks, const Dpus& dpus) {
  Allocation& owner = *ranks[0]->owner;
  const double overhead = launch_seconds(preset(), static_cast<uint32_t>(dpus.size()));
  auto launch = std::shared_ptr<Launch>(new Launch{
      owner, overhead, thread_time(owner), std::vector<Dpus>(ranks.size()), {}, ranks.size()});
  size_t at = 0;
  for (dpu_t* dpu : dpus) {
    while (ranks[at] != dpu->rank) ++at;
    launch->dpus[at].push_back(dpu);
  }
  auto call = std::make_shared<Call>();
  call->kind = JobKind::LAUNCH;
  call->body = [launch](dpu_rank_t& rank, uint32_t index) {
    const Dpus& mine = launch->dpus[index];
    const dpu_error_t status = run_dpus(mine);
    const double kernel = kernel_seconds(mine);
    pass_job(rank, {launch->asked, launch->seconds + kernel, {}, 0});
    launch->finish_rank(kernel);
    return status;
  };
  call->dropped = [launch](dpu_rank_t&) { launch->finish_rank(0); };
  enqueue(ranks, call);
}

void wait(const dpu_set_t& set) {
  const Ranks ranks = ranks_of(set);
  wait_for_copies(ranks[0]->owner->ranks);
  {
    const Turn turn(ranks);
    meet(ranks);
  }
  for (dpu_rank_t* rank : ranks) rank->queue.wait_detached();
}

}  // namespace

extern "C" {

dpu_error_t dpu_launch(dpu_set_t dpu_set, dpu_launch_policy_t policy) {
  return guarded([&] {
    if (policy != DPU_SYNCHRONOUS && policy != DPU_ASYNCHRONOUS)
      return DPU_ERR_INVALID_LAUNCH_POLICY;
    const Dpus dpus = dpus_of(dpu_set);
    const Ranks ranks = ranks_of(dpu_set);
    need_threads(*ranks[0]->owner, ranks, policy == DPU_ASYNCHRONOUS);
    for (const dpu_t* dpu : dpus)
      if (!dpu->program) return DPU_ERR_NO_PROGRAM_LOADED;
    if (policy == DPU_SYNCHRONOUS) return launch_now(ranks, dpus);
    launch_later(ranks, dpus);
    return DPU_OK;
  });
}

dpu_error_t dpu_sync(dpu_set_t dpu_set) {
  return guarded([&] {
    wait(dpu_set);
    dpu_error_t first = DPU_OK;
    for (dpu_rank_t* rank : ranks_of(dpu_set)) {
      const dpu_error_t status = rank->queue.take_error();
      if (first == DPU_OK) first = status;
    }
    return first;
  });
}

dpu_error_t dpu_status(dpu_set_t dpu_set, bool* done, bool* fault) {
  return guarded([&] {
    const Dpus dpus = dpus_of(dpu_set);
    const Turn turn(ranks_of(dpu_set));
    *done = true;
    *fault =
        std::any_of(dpus.begin(), dpus.end(), [](const dpu_t* d) { return !d->fault.empty(); });
    return DPU_OK;
  });
}

dpu_error_t dpu_sim_time(dpu_set_t set, struct dpu_sim_time_t* out) {
  return guarded([&] {
    wait(set);
    const Ranks ranks = ranks_of(set);
    const Turn turn(ranks);
    *out = counted(*ranks[0]->owner);
    out->elapsed = ranks[0]->owner->bus.settle(tracks_of(ranks));
    return DPU_OK;
  });
}

dpu_error_t dpu_sim_now(dpu_set_t set, double* seconds) {
  return guarded([&] {
    *seconds = thread_time(owner_of(set));
    return DPU_OK;
  });
}

dpu_error_t dpu_sim_time_reset(dpu_set_t set) {
  return guarded([&] {
    Allocation& owner = owner_of(set);
    wait(owner.set);
    const Turn turn(owner.ranks);
    restart(owner);
    const std::lock_guard lock(owner.mutex);
    owner.time = {};
    return DPU_OK;
  });
}

dpu_error_t dpu_sim_cycles(dpu_set_t set, uint64_t* cycles) {
  return guarded([&] {
    const Turn turn(ranks_of(set));
    *cycles = 0;
    for (const dpu_t* dpu : dpus_of(set)) *cycles = std::max(*cycles, dpu->machine->cycle);
    return DPU_OK;
  });
}

dpu_error_t dpu_sim_last_run(dpu_set_t set, struct dpu_sim_run_t* out) {
  return guarded([&] {
    const Turn turn(ranks_of(set));
    const upmem::Machine& m = *single_dpu(set).machine;
    *out = {m.cycle,      m.instructions(), m.dma.reads,
            m.dma.writes, m.dma.read_bytes, m.dma.write_bytes};
    return DPU_OK;
  });
}

dpu_error_t dpu_sim_fault(dpu_set_t set, char* text, size_t size) {
  return guarded([&] {
    const Turn turn(ranks_of(set));
    const std::string& fault = single_dpu(set).fault;
    if (size == 0) return DPU_OK;
    const size_t length = std::min(fault.size(), size - 1);
    std::memcpy(text, fault.data(), length);
    text[length] = 0;
    return DPU_OK;
  });
}

}  // extern "C"
