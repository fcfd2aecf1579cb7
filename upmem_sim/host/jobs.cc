#include "jobs.h"

#include <algorithm>
#include <utility>

#include "board.h"

namespace upmem::host {
namespace {

thread_local Ranks t_held;

// Calls on several ranks stand in the same order in the queues of all, or they could wait for each
// other.
std::mutex& order() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

bool is_copy(const Call& call) {
  return call.kind != JobKind::LAUNCH && call.kind != JobKind::CALLBACK;
}

}  // namespace

// ---------------------------------------------------------------------------------- one queue

void JobQueue::open(dpu_rank_t* rank, uint32_t limit) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  limit_ = limit;
  error_ = DPU_OK;
}

void JobQueue::close() {
  wait_detached();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
  closing_ = false;
}

dpu_error_t JobQueue::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, DPU_OK);
}

void JobQueue::begin_detached() {
  const std::lock_guard lock(mutex_);
  ++detached_;
}

void JobQueue::end_detached(JobKind kind, dpu_error_t status) {
  const std::lock_guard lock(mutex_);
  keep_error(kind, status);
  --detached_;
  changed_.notify_all();
}

void JobQueue::wait_detached() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return detached_ == 0; });
}

void JobQueue::wait_copies() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, asked = copies_asked_] { return copies_done_ >= asked; });
}

bool JobQueue::has_room() {
  const std::lock_guard lock(mutex_);
  return jobs_ < limit_;
}

void JobQueue::wait_for_room() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_ < limit_; });
}

void JobQueue::push(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (entry.call) {
    ++jobs_;
    copies_asked_ += is_copy(*entry.call);
    if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
  }
  entries_.push_back(std::move(entry));
  if (!busy_) advance();
}

void JobQueue::wait_for(const Ticket& ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ticket.granted; });
}

void JobQueue::release() {
  const std::lock_guard lock(mutex_);
  busy_ = false;
  advance();
}

void JobQueue::advance() {
  if (!entries_.empty() && entries_.front().ticket) {
    entries_.front().ticket->granted = true;
    entries_.pop_front();
    busy_ = true;
  }
  changed_.notify_all();
}

void JobQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto has_job = [this] { return !busy_ && !entries_.empty() && entries_.front().call; };
    changed_.wait(lock, [&] { return has_job() || (closing_ && entries_.empty() && !busy_); });
    if (!has_job()) return;
    const Entry entry = std::move(entries_.front());
    entries_.pop_front();
    busy_ = true;
    lock.unlock();
    const dpu_error_t status = guarded([&] { return entry.call->body(*rank_, entry.index); });
    lock.lock();
    leave(*entry.call);
    busy_ = false;
    keep_error(entry.call->kind, status);
    if (status != DPU_OK) drop_jobs();
    advance();
  }
}

// With the lock.
void JobQueue::keep_error(JobKind kind, dpu_error_t status) {
  if (status == DPU_OK || error_ != DPU_OK) return;
  const uint32_t code = static_cast<uint32_t>(DPU_ERR_ASYNC_JOBS) |
                        static_cast<uint32_t>(kind) << 16 |
                        (static_cast<uint32_t>(status) & 0xffff);
  error_ = static_cast<dpu_error_t>(static_cast<int32_t>(code));
}

// With the lock.
void JobQueue::leave(const Call& call) {
  --jobs_;
  copies_done_ += is_copy(call);
}

// With the lock.
void JobQueue::drop_jobs() {
  std::deque<Entry> kept;
  for (Entry& entry : entries_) {
    if (entry.ticket) {
      kept.push_back(std::move(entry));
      continue;
    }
    leave(*entry.call);
    if (entry.call->dropped) entry.call->dropped(*rank_);
  }
  entries_ = std::move(kept);
}

// ---------------------------------------------------------------------------------- many ranks

void enqueue(const Ranks& ranks, const std::shared_ptr<Call>& call) {
  for (;;) {
    JobQueue* full = nullptr;
    {
      const std::lock_guard lock(order());
      for (dpu_rank_t* rank : ranks)
        if (!rank->queue.has_room()) full = &rank->queue;
      if (!full) {
        for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i]->queue.push({call, nullptr, i});
        return;
      }
    }
    full->wait_for_room();
  }
}

void wait_for_copies(const Ranks& ranks) {
  if (!t_held.empty()) return;
  for (dpu_rank_t* rank : ranks) rank->queue.wait_copies();
}

Turn::Turn(const Ranks& ranks) {
  const bool held = std::all_of(ranks.begin(), ranks.end(), [](dpu_rank_t* rank) {
    return std::find(t_held.begin(), t_held.end(), rank) != t_held.end();
  });
  if (held) return;
  ranks_ = ranks;
  std::vector<Ticket> tickets(ranks.size());
  {
    const std::lock_guard lock(order());
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i]->queue.push({nullptr, &tickets[i], 0});
  }
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i]->queue.wait_for(tickets[i]);
}

Turn::~Turn() {
  for (dpu_rank_t* rank : ranks_) rank->queue.release();
}

Holding::Holding(Ranks ranks) : before_(std::exchange(t_held, std::move(ranks))) {}

Holding::~Holding() { t_held = std::move(before_); }

}  // namespace upmem::host
