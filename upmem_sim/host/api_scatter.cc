// dpu.h: scatter/gather transfers.
#include <cstring>

#include "include/dpu/dpu.h"
#include "memory.h"
#include "transfers.h"

using namespace upmem::host;

namespace {

using Blocks = std::vector<sg_block_info>;

struct Request {
  Place place;
  Way way;
  get_block_t source;
  std::vector<uint8_t> args;  // a copy, if its size was given
  uint32_t max_blocks;
  bool any_length;
};

Blocks blocks_of(const Request& request, uint32_t index) {
  void* args =
      request.args.empty() ? request.source.args : const_cast<uint8_t*>(request.args.data());
  Blocks blocks;
  uint64_t sum = 0;
  sg_block_info block{};
  for (uint32_t k = 0; request.source.f(&block, index, k, args); ++k) {
    if (k >= request.max_blocks) throw Failure{DPU_ERR_SG_TOO_MANY_BLOCKS, ""};
    sum += block.length;
    blocks.push_back(block);
  }
  if (sum > request.place.bytes || (sum < request.place.bytes && !request.any_length))
    throw Failure{DPU_ERR_SG_LENGTH_MISMATCH, ""};
  return blocks;
}

void move_blocks(const Request& request, dpu_t& dpu, uint32_t index) {
  uint8_t* memory = at(dpu, request.place);
  uint8_t* const end = memory + request.place.bytes;
  for (const sg_block_info& block : blocks_of(request, index)) {
    if (request.way == Way::TO_DPUS)
      std::memcpy(memory, block.addr, block.length);
    else
      std::memcpy(block.addr, memory, block.length);
    memory += block.length;
  }
  if (request.way == Way::TO_DPUS) std::memset(memory, 0, static_cast<size_t>(end - memory));
}

Request request_of(const Allocation& owner, dpu_xfer_t xfer, const dpu_symbol_t& symbol,
                   uint32_t offset, size_t length, const get_block_t& source, uint32_t flags) {
  if (!owner.profile.scatter_gather) throw Failure{DPU_ERR_SG_NOT_ACTIVATED, ""};
  if (symbol.address < upmem::kMramBase || symbol.address >= kIramBase)
    throw Failure{DPU_ERR_SG_NOT_MRAM_SYMBOL, ""};
  Request out{check_place(symbol, offset, length),
              xfer == DPU_XFER_TO_DPU ? Way::TO_DPUS : Way::FROM_DPUS,
              source,
              {},
              owner.profile.max_blocks ? owner.profile.max_blocks : owner.dpus,
              (flags & DPU_SG_XFER_DISABLE_LENGTH_CHECK) != 0};
  if (source.args_size) {
    const auto* first = static_cast<const uint8_t*>(source.args);
    out.args.assign(first, first + source.args_size);
  }
  return out;
}

dpu_error_t transfer(const dpu_set_t& set, dpu_xfer_t xfer, const dpu_symbol_t& symbol,
                     uint32_t offset, size_t length, const get_block_t& source, uint32_t flags) {
  if (set.kind != DPU_SET_RANKS) return DPU_ERR_INVALID_DPU_SET;
  const Ranks ranks = ranks_of(set);
  Allocation& owner = *ranks[0]->owner;
  const bool asynchronous = flags & DPU_SG_XFER_ASYNC;
  need_threads(owner, ranks, asynchronous);
  const Request request = request_of(owner, xfer, symbol, offset, length, source, flags);
  if (length == 0) return DPU_OK;
  uint32_t count = 0;
  std::vector<uint32_t> first;  // index of each rank's first DPU
  for (const dpu_rank_t* rank : ranks) {
    first.push_back(count);
    count += rank->enabled;
  }
  const Sending sending = sending_of(request.place, request.way, false);
  const auto move_rank = [request, first](dpu_rank_t& rank, uint32_t index) {
    for (uint32_t i = 0; i < rank.enabled; ++i)
      move_blocks(request, rank.dpus[i], first[index] + i);
    return DPU_OK;
  };
  count_copy(owner, request.way, sending.seconds(count), uint64_t{count} * length);
  if (!asynchronous) {
    wait_for_copies(owner.ranks);
    const Turn turn(ranks);
    for (uint32_t i = 0; i < ranks.size(); ++i) move_rank(*ranks[i], i);
    pass(ranks, {0, 0, sending, count});
    return DPU_OK;
  }
  auto call = std::make_shared<Call>();
  call->kind = JobKind::TRANSFER;
  call->body = [move_rank, asked = thread_time(owner), sending](dpu_rank_t& rank, uint32_t index) {
    const dpu_error_t status = move_rank(rank, index);
    pass_job(rank, {asked, 0, sending, rank.enabled});
    return status;
  };
  enqueue(ranks, call);
  return DPU_OK;
}

}  // namespace

extern "C" {

dpu_error_t dpu_push_sg_xfer(dpu_set_t dpu_set, dpu_xfer_t xfer, const char* symbol_name,
                             uint32_t symbol_offset, size_t length, get_block_t* get_block_info,
                             dpu_sg_xfer_flags_t flags) {
  return guarded([&] {
    const dpu_symbol_t symbol = find_symbol(dpus_of(dpu_set), symbol_name);
    return transfer(dpu_set, xfer, symbol, symbol_offset, length, *get_block_info, flags);
  });
}

dpu_error_t dpu_push_sg_xfer_symbol(dpu_set_t dpu_set, dpu_xfer_t xfer, dpu_symbol_t symbol,
                                    uint32_t symbol_offset, size_t length,
                                    get_block_t* get_block_info, dpu_sg_xfer_flags_t flags) {
  return guarded([&] {
    return transfer(dpu_set, xfer, symbol, symbol_offset, length, *get_block_info, flags);
  });
}

}  // extern "C"
