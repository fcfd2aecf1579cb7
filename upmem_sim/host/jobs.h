// Order of what happens to a rank: each has a queue of jobs that one thread serves, and calls that
// wait take their turn in the same queue, so everything happens in program order.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "include/dpu/dpu_error.h"
#include "include/dpu/dpu_types.h"

namespace upmem::host {

using Ranks = std::vector<dpu_rank_t*>;

// Number in bits 16 to 30 of the status of a job that failed.
enum class JobKind : uint32_t { LAUNCH = 1, COPY, BROADCAST, TRANSFER, CALLBACK };

// One asynchronous call, a job in the queue of each of its ranks.
struct Call {
  JobKind kind;
  // Does the part of one rank; `index` counts the call's ranks. May throw Failure.
  std::function<dpu_error_t(dpu_rank_t&, uint32_t index)> body;
  // Instead of body, when an earlier job of the rank has failed.
  std::function<void(dpu_rank_t&)> dropped;
};

// A waiting call's place in a queue.
struct Ticket {
  bool granted = false;
};

class JobQueue {
 public:
  void open(dpu_rank_t* rank, uint32_t limit);
  // Waits for what is queued and ends the thread.
  void close();

  // Error of the first asynchronous job that failed since the last call, DPU_OK if none.
  dpu_error_t take_error();
  // Callbacks that run beside the queue.
  void begin_detached();
  void end_detached(JobKind kind, dpu_error_t status);
  void wait_detached();
  // Until the copies that are queued now are done.
  void wait_copies();

 private:
  friend class Turn;
  friend void enqueue(const Ranks& ranks, const std::shared_ptr<Call>& call);

  struct Entry {
    std::shared_ptr<Call> call;  // or
    Ticket* ticket;
    uint32_t index;
  };

  bool has_room();
  void wait_for_room();
  void push(Entry entry);
  void wait_for(const Ticket& ticket);
  void release();
  void advance();  // with the lock: gives an idle rank to the next in the queue
  void work();
  void keep_error(JobKind kind, dpu_error_t status);
  void drop_jobs();
  void leave(const Call& call);

  dpu_rank_t* rank_ = nullptr;
  uint32_t limit_ = 16, jobs_ = 0, detached_ = 0;
  uint64_t copies_asked_ = 0, copies_done_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool busy_ = false, closing_ = false;
  dpu_error_t error_ = DPU_OK;
  std::thread worker_;
};

// Appends a job to the queue of each rank. Waits while one of them is full.
void enqueue(const Ranks& ranks, const std::shared_ptr<Call>& call);

// Until the copies that the queues of the ranks hold now are done, so that simulated times do not
// depend on which of the ranks' threads is the faster. Not from within a callback, where others may
// wait for the caller.
void wait_for_copies(const Ranks& ranks);

// While it exists, nobody else touches the ranks. Inside a callback, its ranks are the callback's.
class Turn {
 public:
  explicit Turn(const Ranks& ranks);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Ranks ranks_;  // to give back
};

// Ranks that this thread holds because it runs their callback.
class Holding {
 public:
  explicit Holding(Ranks ranks);
  ~Holding();

 private:
  Ranks before_;
};

}  // namespace upmem::host
