// dpu.h: sets. dpu_management.h.
#include "board.h"
#include "include/dpu/dpu.h"
#include "include/dpu/dpu_management.h"

using namespace upmem::host;

namespace {

dpu_error_t allocate_set(uint32_t count, bool ranks, const char* profile, dpu_set_t* out) {
  return guarded([&] {
    *out = allocate(count, ranks, profile).set;
    return DPU_OK;
  });
}

dpu_set_t set_of(dpu_rank_t** rank) {
  dpu_set_t set{};
  set.kind = DPU_SET_RANKS;
  set.list.nr_ranks = 1;
  set.list.ranks = rank;
  return set;
}

dpu_set_t set_of(dpu_t* dpu) {
  dpu_set_t set{};
  set.kind = DPU_SET_DPU;
  set.dpu = dpu;
  return set;
}

_dpu_description_t describe() {
  const upmem::Params chip = chip_params();
  _dpu_description_t out{};
  out.hw.topology = {kDpusPerRank / kDpusPerSlice, kDpusPerSlice};
  out.hw.memories = {static_cast<uint32_t>(chip.mram_bytes),
                     static_cast<uint32_t>(chip.wram_bytes / 4), upmem::kIramInstructions};
  out.hw.timings.fck_frequency_in_mhz = static_cast<uint32_t>(kClockHz / 1e6);
  out.hw.dpu = {upmem::kMaxTasklets, upmem::kAtomicBits};
  return out;
}

// Points the iterator at DPU `next_idx` of the rank it is in, or of a later one.
void settle(dpu_set_dpu_iterator_t& it) {
  while (it.rank_iterator.has_next) {
    const dpu_rank_t& rank = *it.rank_iterator.next.list.ranks[0];
    if (it.next_idx < rank.enabled) {
      it.next = set_of(const_cast<dpu_t*>(&rank.dpus[it.next_idx]));
      it.has_next = true;
      return;
    }
    dpu_set_rank_iterator_next(&it.rank_iterator);
    it.next_idx = 0;
  }
  it.has_next = false;
}

}  // namespace

extern "C" {

dpu_error_t dpu_alloc(uint32_t nr_dpus, const char* profile, dpu_set_t* dpu_set) {
  return allocate_set(nr_dpus, false, profile, dpu_set);
}

dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char* profile, dpu_set_t* dpu_set) {
  return allocate_set(nr_ranks, true, profile, dpu_set);
}

dpu_error_t dpu_free(dpu_set_t dpu_set) {
  return guarded([&] {
    Allocation& allocation = owner_of(dpu_set);
    const dpu_set_t& whole = allocation.set;
    if (dpu_set.kind != DPU_SET_RANKS || dpu_set.list.nr_ranks != whole.list.nr_ranks ||
        dpu_set.list.ranks != whole.list.ranks)
      return DPU_ERR_INVALID_DPU_SET;
    release(allocation);
    return DPU_OK;
  });
}

dpu_error_t dpu_get_nr_ranks(dpu_set_t dpu_set, uint32_t* nr_ranks) {
  return guarded([&] {
    *nr_ranks = static_cast<uint32_t>(ranks_of(dpu_set).size());
    return DPU_OK;
  });
}

dpu_error_t dpu_get_nr_dpus(dpu_set_t dpu_set, uint32_t* nr_dpus) {
  return guarded([&] {
    *nr_dpus = static_cast<uint32_t>(dpus_of(dpu_set).size());
    return DPU_OK;
  });
}

dpu_set_rank_iterator_t dpu_set_rank_iterator_from(dpu_set_t* set) {
  dpu_set_rank_iterator_t it{};
  it.set = set;
  it.has_next = set->kind == DPU_SET_DPU || set->list.nr_ranks > 0;
  if (it.has_next) it.next = set->kind == DPU_SET_DPU ? *set : set_of(&set->list.ranks[0]);
  return it;
}

void dpu_set_rank_iterator_next(dpu_set_rank_iterator_t* iterator) {
  const dpu_set_t& set = *iterator->set;
  ++iterator->count;
  ++iterator->next_idx;
  iterator->has_next = set.kind == DPU_SET_RANKS && iterator->next_idx < set.list.nr_ranks;
  if (iterator->has_next) iterator->next = set_of(&set.list.ranks[iterator->next_idx]);
}

dpu_set_dpu_iterator_t dpu_set_dpu_iterator_from(dpu_set_t* set) {
  dpu_set_dpu_iterator_t it{};
  it.rank_iterator = dpu_set_rank_iterator_from(set);
  if (set->kind == DPU_SET_DPU) {
    it.has_next = true;
    it.next = *set;
  } else {
    settle(it);
  }
  return it;
}

void dpu_set_dpu_iterator_next(dpu_set_dpu_iterator_t* iterator) {
  ++iterator->count;
  ++iterator->next_idx;
  if (iterator->rank_iterator.set->kind == DPU_SET_DPU)
    iterator->has_next = false;
  else
    settle(*iterator);
}

dpu_id_t dpu_get_id(dpu_t* dpu) { return id_of(*dpu); }
dpu_slice_id_t dpu_get_slice_id(dpu_t* dpu) { return static_cast<dpu_slice_id_t>(dpu->slice); }
dpu_member_id_t dpu_get_member_id(dpu_t* dpu) { return static_cast<dpu_member_id_t>(dpu->member); }
bool dpu_is_enabled(dpu_t* dpu) { return dpu->enabled; }
dpu_rank_t* dpu_get_rank(dpu_t* dpu) { return dpu->rank; }
dpu_rank_id_t dpu_get_rank_id(dpu_rank_t* rank) { return static_cast<dpu_rank_id_t>(rank->id); }
int dpu_get_rank_numa_node(dpu_rank_t*) { return 0; }

dpu_description_t dpu_get_description(dpu_rank_t*) {
  static _dpu_description_t description = describe();
  return &description;
}

dpu_error_t dpu_get_rank_of_type(const char* profile, dpu_rank_t** rank) {
  return guarded([&] {
    *rank = allocate(1, true, profile).ranks[0];
    return DPU_OK;
  });
}

dpu_error_t dpu_free_rank(dpu_rank_t* rank) {
  return guarded([&] {
    const Allocation& owner = owner_of(set_of(&rank));
    return owner.ranks.size() == 1 ? dpu_free(owner.set) : DPU_ERR_INVALID_DPU_SET;
  });
}

dpu_t* dpu_get(dpu_rank_t* rank, dpu_slice_id_t slice, dpu_member_id_t member) {
  const uint32_t index = slice * kDpusPerSlice + member;
  return member < kDpusPerSlice && index < kDpusPerRank ? &rank->dpus[index] : nullptr;
}

dpu_set_t dpu_set_from_rank(dpu_rank_t** rank) { return set_of(rank); }
dpu_set_t dpu_set_from_dpu(dpu_t* dpu) { return set_of(dpu); }

dpu_rank_t* dpu_rank_from_set(dpu_set_t set) {
  if (set.kind == DPU_SET_DPU) return set.dpu ? set.dpu->rank : nullptr;
  return set.list.nr_ranks ? set.list.ranks[0] : nullptr;
}

dpu_t* dpu_from_set(dpu_set_t set) { return set.kind == DPU_SET_DPU ? set.dpu : nullptr; }

dpu_t* dpu_next_enabled(dpu_rank_t* rank, dpu_t* previous) {
  const auto next = previous ? previous - rank->dpus.data() + 1 : 0;
  return next < static_cast<std::ptrdiff_t>(rank->enabled) ? &rank->dpus[next] : nullptr;
}

}  // extern "C"
