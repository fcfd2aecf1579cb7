#include "pool.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "settings.h"

namespace upmem::host {
namespace {

struct Batch {
  const std::function<void(size_t)>& f;
  const size_t count;
  size_t next = 0, finished = 0;
};

class Pool {
 public:
  Pool() {
    for (uint32_t i = 0; i < settings().threads; ++i) std::thread([this] { work(); }).detach();
  }

  void run(Batch& batch) {
    std::unique_lock lock(mutex_);
    batches_.push_back(&batch);
    work_.notify_all();
    done_.wait(lock, [&] { return batch.finished == batch.count; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return !batches_.empty(); });
      Batch& batch = *batches_.front();
      const size_t index = batch.next++;
      if (batch.next == batch.count) batches_.pop_front();
      lock.unlock();
      batch.f(index);
      lock.lock();
      if (++batch.finished == batch.count) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<Batch*> batches_;
};

}  // namespace

void run_parallel(size_t count, const std::function<void(size_t)>& f) {
  if (count <= 1 || settings().threads == 1) {
    for (size_t i = 0; i < count; ++i) f(i);
    return;
  }
  static Pool* const pool = new Pool;  // its threads outlive exit handlers
  Batch batch{f, count};
  pool->run(batch);
}

}  // namespace upmem::host
