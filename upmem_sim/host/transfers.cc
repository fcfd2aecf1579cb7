#include "transfers.h"

#include <algorithm>

namespace upmem::host {
namespace {

using Pieces = std::vector<Piece>;

std::vector<Pieces> by_rank(const Ranks& ranks, const Pieces& pieces) {
  std::vector<Pieces> out(ranks.size());
  size_t at = 0;  // pieces come in the order of the ranks
  for (const Piece& piece : pieces) {
    while (ranks[at] != piece.dpu->rank) ++at;
    out[at].push_back(piece);
  }
  return out;
}

}  // namespace

void need_threads(const Allocation& allocation, const Ranks& ranks, bool asynchronous) {
  if (allocation.profile.threads_per_rank == 0 && (asynchronous || ranks.size() > 1))
    throw Failure{DPU_ERR_NO_THREAD_PER_RANK, ""};
}

dpu_error_t perform(const dpu_set_t& set, Transfer transfer, bool asynchronous, JobKind kind) {
  if (transfer.pieces.empty() || transfer.place.bytes == 0) return DPU_OK;
  const Ranks ranks = ranks_of(set);
  Allocation& owner = *ranks[0]->owner;
  need_threads(owner, ranks, asynchronous);
  const auto count = static_cast<uint32_t>(transfer.pieces.size());
  const Sending sending = sending_of(transfer.place, transfer.way, transfer.broadcast);
  count_copy(owner, transfer.way, sending.seconds(count), uint64_t{count} * transfer.place.bytes);
  if (!asynchronous) {
    wait_for_copies(owner.ranks);
    const Turn turn(ranks);
    copy(transfer.pieces, transfer.place, transfer.way);
    pass(ranks, {0, 0, sending, count});
    return DPU_OK;
  }
  auto call = std::make_shared<Call>();
  call->kind = kind;
  call->body = [parts = by_rank(ranks, transfer.pieces), place = transfer.place, way = transfer.way,
                asked = thread_time(owner), sending](dpu_rank_t& rank, uint32_t index) {
    copy(parts[index], place, way);
    pass_job(rank, {asked, 0, sending, static_cast<uint32_t>(parts[index].size())});
    return DPU_OK;
  };
  enqueue(ranks, call);
  return DPU_OK;
}

}  // namespace upmem::host
