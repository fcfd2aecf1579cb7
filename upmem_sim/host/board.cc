#include "board.h"

#include <algorithm>
#include <cstdio>

namespace upmem::host {
namespace {

// Never destroyed: threads may still use it when the program exits.
struct Board {
  std::mutex mutex;
  std::vector<std::unique_ptr<dpu_rank_t>> ranks;
  std::vector<std::unique_ptr<Allocation>> allocations;
};

Board& board() {
  static Board* const board = [] {
    auto* made = new Board;
    const uint32_t count = (settings().dpus + kDpusPerRank - 1) / kDpusPerRank;
    for (uint32_t i = 0; i < count; ++i) made->ranks.push_back(std::make_unique<dpu_rank_t>());
    for (uint32_t i = 0; i < count; ++i) {
      dpu_rank_t& rank = *made->ranks[i];
      rank.id = i;
      for (uint32_t k = 0; k < kDpusPerRank; ++k) {
        rank.dpus[k].rank = &rank;
        rank.dpus[k].slice = k / kDpusPerSlice;
        rank.dpus[k].member = k % kDpusPerSlice;
      }
    }
    return made;
  }();
  return *board;
}

// DPUs of a rank that exist: the last rank of a machine may be a part of one.
uint32_t size_of(const dpu_rank_t& rank) {
  return std::min(kDpusPerRank, settings().dpus - rank.id * kDpusPerRank);
}

// Ranks that are free and hold what is asked for, none if there are not enough.
Ranks choose(Board& all, uint32_t count, bool whole_ranks) {
  Ranks chosen;
  uint32_t found = 0;
  for (const auto& rank : all.ranks) {
    if (rank->owner || (count != kAll && found >= count)) continue;
    chosen.push_back(rank.get());
    found += whole_ranks ? 1 : size_of(*rank);
  }
  if (chosen.empty() || (count != kAll && found < count)) return {};
  return chosen;
}

void take(dpu_rank_t& rank, Allocation& owner, uint32_t dpus) {
  rank.owner = &owner;
  rank.enabled = dpus;
  rank.queue.open(&rank, owner.profile.jobs_per_rank);
  const Params params = chip_params();
  const auto nothing = std::make_shared<Code>(nullptr, 0);
  for (uint32_t i = 0; i < dpus; ++i) {
    dpu_t& dpu = rank.dpus[i];
    dpu.enabled = true;
    dpu.machine = std::make_unique<Machine>(nothing, params);
  }
}

void clear(dpu_rank_t& rank) {
  for (dpu_t& dpu : rank.dpus) {
    dpu.enabled = false;
    dpu.buffer = nullptr;
    dpu.machine.reset();
    dpu.program.reset();
    dpu.fault.clear();
  }
  rank.enabled = 0;
  rank.owner = nullptr;
}

[[noreturn]] void no_set() { throw Failure{DPU_ERR_INVALID_DPU_SET, ""}; }

}  // namespace

Allocation& allocate(uint32_t count, bool ranks, const char* profile) {
  auto made = std::make_unique<Allocation>();
  made->profile = read_profile(profile);
  preset();  // or what is wrong with it
  Board& all = board();
  const std::lock_guard lock(all.mutex);
  if (count) made->ranks = choose(all, count, ranks);
  if (made->ranks.empty()) throw Failure{DPU_ERR_ALLOCATION, ""};
  try {
    for (dpu_rank_t* rank : made->ranks) {
      const uint32_t left = ranks || count == kAll ? kAll : count - made->dpus;
      take(*rank, *made, std::min(size_of(*rank), left));
      made->dpus += rank->enabled;
    }
  } catch (...) {
    for (dpu_rank_t* rank : made->ranks) clear(*rank);
    throw;
  }
  made->bus.open(tracks_of(made->ranks));
  made->set.kind = DPU_SET_RANKS;
  made->set.list.nr_ranks = static_cast<uint32_t>(made->ranks.size());
  made->set.list.ranks = made->ranks.data();
  all.allocations.push_back(std::move(made));
  return *all.allocations.back();
}

void release(Allocation& allocation) {
  for (dpu_rank_t* rank : allocation.ranks) rank->queue.close();
  allocation.elapsed = allocation.bus.settle(tracks_of(allocation.ranks));
  Board& all = board();
  const std::lock_guard lock(all.mutex);
  for (dpu_rank_t* rank : allocation.ranks) clear(*rank);
  allocation.programs.clear();
}

std::vector<Allocation*> allocations() {
  Board& all = board();
  const std::lock_guard lock(all.mutex);
  std::vector<Allocation*> out;
  for (const auto& allocation : all.allocations) out.push_back(allocation.get());
  return out;
}

Tracks tracks_of(const Ranks& ranks) {
  Tracks out;
  for (dpu_rank_t* rank : ranks) out.push_back(&rank->track);
  return out;
}

Ranks ranks_of(const dpu_set_t& set) {
  if (set.kind == DPU_SET_DPU) {
    if (!set.dpu || !set.dpu->rank || !set.dpu->rank->owner) no_set();
    if (!set.dpu->enabled) throw Failure{DPU_ERR_DPU_DISABLED, ""};
    return {set.dpu->rank};
  }
  if (set.kind != DPU_SET_RANKS || !set.list.ranks || !set.list.nr_ranks) no_set();
  Ranks out(set.list.ranks, set.list.ranks + set.list.nr_ranks);
  for (const dpu_rank_t* rank : out)
    if (!rank || !rank->owner) no_set();
  return out;
}

Dpus dpus_of(const dpu_set_t& set) {
  Dpus out;
  const Ranks ranks = ranks_of(set);
  if (set.kind == DPU_SET_DPU) return {set.dpu};
  for (dpu_rank_t* rank : ranks)
    for (uint32_t i = 0; i < rank->enabled; ++i) out.push_back(&rank->dpus[i]);
  return out;
}

Allocation& owner_of(const dpu_set_t& set) { return *ranks_of(set)[0]->owner; }

dpu_t& single_dpu(const dpu_set_t& set) {
  if (set.kind != DPU_SET_DPU) no_set();
  return *dpus_of(set)[0];
}

uint32_t id_of(const dpu_t& dpu) { return dpu.rank->id << 16 | dpu.slice << 8 | dpu.member; }

void tell(const std::string& text) {
  if (!settings().quiet) std::fprintf(stderr, "libdpu: %s\n", text.c_str());
}

}  // namespace upmem::host
