// dpu.h: callbacks.
#include <climits>
#include <thread>

#include "clock.h"
#include "include/dpu/dpu.h"
#include "transfers.h"

using namespace upmem::host;

namespace {

using Function = dpu_error_t (*)(dpu_set_t, uint32_t, void*);

struct Callback {
  dpu_set_t set;
  Ranks ranks;
  Function f;
  void* args;

  // Of one rank, whose turn the thread has if it is `held`.
  dpu_error_t call_rank(uint32_t index, bool held) const {
    dpu_set_t part = set;
    if (set.kind == DPU_SET_RANKS) {
      part.list.nr_ranks = 1;
      part.list.ranks = &set.list.ranks[index];
    }
    const Holding holding(held ? Ranks{ranks[index]} : Ranks{});
    return f(part, index, args);
  }

  dpu_error_t call_all(bool held) const {
    const Holding holding(held ? ranks : Ranks{});
    return f(set, UINT32_MAX, args);
  }
};
using Shared = std::shared_ptr<const Callback>;

dpu_error_t call_now(const Callback& callback, bool single) {
  const Turn turn(callback.ranks);
  if (single) return callback.call_all(true);
  std::vector<dpu_error_t> statuses(callback.ranks.size(), DPU_OK);
  std::vector<std::thread> others;
  const auto run = [&](uint32_t i) { statuses[i] = callback.call_rank(i, true); };
  for (uint32_t i = 1; i < callback.ranks.size(); ++i) others.emplace_back(run, i);
  run(0);
  for (std::thread& other : others) other.join();
  meet(callback.ranks);
  for (const dpu_error_t status : statuses)
    if (status != DPU_OK) return status;
  return DPU_OK;
}

// A job for each rank. Beside the queue, the thread holds no rank: its calls take turns.
std::shared_ptr<Call> each_rank(const Shared& callback, bool beside) {
  auto call = std::make_shared<Call>();
  call->kind = JobKind::CALLBACK;
  const double asked = thread_time(*callback->ranks[0]->owner);
  call->body = [callback, beside, asked](dpu_rank_t& rank, uint32_t index) {
    pass_job(rank, {asked, 0, {}, 0});  // its own calls begin no earlier
    if (!beside) return callback->call_rank(index, true);
    rank.queue.begin_detached();
    std::thread([callback, index, &rank] {
      const dpu_error_t status = callback->call_rank(index, false);
      rank.queue.end_detached(JobKind::CALLBACK, status);
    }).detach();
    return DPU_OK;
  };
  return call;
}

// The ranks of a single call meet here; the last one to come makes it.
struct Meeting {
  std::mutex mutex;
  std::condition_variable over;
  size_t missing;
  bool dropped = false, done = false;

  // True for the last.
  bool arrive(bool by_error) {
    const std::lock_guard lock(mutex);
    dropped |= by_error;
    return --missing == 0;
  }
  void end() {
    const std::lock_guard lock(mutex);
    done = true;
    over.notify_all();
  }
  void wait_end() {
    std::unique_lock lock(mutex);
    over.wait(lock, [this] { return done; });
  }
};

void call_beside(const Shared& callback) {
  std::thread([callback] {
    const dpu_error_t status = callback->call_all(false);
    for (dpu_rank_t* rank : callback->ranks) rank->queue.end_detached(JobKind::CALLBACK, status);
  }).detach();
}

void give_up(const Shared& callback, bool beside) {
  if (!beside) return;
  for (dpu_rank_t* rank : callback->ranks) rank->queue.end_detached(JobKind::CALLBACK, DPU_OK);
}

std::shared_ptr<Call> single_call(const Shared& callback, bool beside) {
  auto meeting = std::make_shared<Meeting>();
  meeting->missing = callback->ranks.size();
  // Until the call is over its ranks have something under way; dpu_sync waits for it.
  if (beside)
    for (dpu_rank_t* rank : callback->ranks) rank->queue.begin_detached();
  auto call = std::make_shared<Call>();
  call->kind = JobKind::CALLBACK;
  call->body = [callback, beside, meeting](dpu_rank_t&, uint32_t) {
    if (!meeting->arrive(false)) {
      if (!beside) meeting->wait_end();
      return DPU_OK;
    }
    dpu_error_t status = DPU_OK;
    if (meeting->dropped)
      give_up(callback, beside);
    else if (beside)
      call_beside(callback);
    else
      status = callback->call_all(true);
    meeting->end();
    return status;
  };
  call->dropped = [callback, beside, meeting](dpu_rank_t&) {
    if (!meeting->arrive(true)) return;
    std::thread([callback, beside, meeting] {  // not with the queue's lock, which is held here
      give_up(callback, beside);
      meeting->end();
    })
        .detach();
  };
  return call;
}

}  // namespace

extern "C" dpu_error_t dpu_callback(dpu_set_t dpu_set,
                                    dpu_error_t (*callback)(dpu_set_t, uint32_t, void*), void* args,
                                    dpu_callback_flags_t flags) {
  return guarded([&] {
    const bool asynchronous = flags & DPU_CALLBACK_ASYNC;
    const bool beside = flags & DPU_CALLBACK_NONBLOCKING;
    const bool single = flags & DPU_CALLBACK_SINGLE_CALL;
    if (beside && !asynchronous) return DPU_ERR_NONBLOCKING_SYNC_CALLBACK;
    const Ranks ranks = ranks_of(dpu_set);
    need_threads(*ranks[0]->owner, ranks, asynchronous);
    const auto shared = std::make_shared<const Callback>(Callback{dpu_set, ranks, callback, args});
    if (!asynchronous) return call_now(*shared, single);
    enqueue(ranks, single ? single_call(shared, beside) : each_rank(shared, beside));
    return DPU_OK;
  });
}
