#include "runner.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace nb = nanobind;

namespace upmem {
namespace {

// Cycles between two looks at signals: some 20 ms in the fast loop, 100 ms in the plain one.
constexpr uint64_t kFastSlice = 1 << 22;
constexpr uint64_t kPlainSlice = 1 << 20;
constexpr std::chrono::milliseconds kPoll{50};

class Runner {
 public:
  Runner(const std::vector<Machine*>& machines, uint64_t max_cycles, bool plain)
      : machines_(machines),
        exits_(machines.size(), Exit::BUDGET),
        max_(max_cycles),
        plain_(plain) {}

  // The calling thread works too and is the one that looks at signals.
  void run(uint32_t threads) {
    std::vector<std::thread> pool;
    const auto helpers = std::min<size_t>(threads, machines_.size());
    active_ = helpers > 1 ? static_cast<uint32_t>(helpers) - 1 : 0;
    for (uint32_t i = 1; i < helpers; ++i) pool.emplace_back([this] { help(); });
    work(true);
    std::unique_lock lock(mutex_);
    while (!finished_.wait_for(lock, kPoll, [this] { return active_ == 0; })) {
      lock.unlock();
      look_at_signals();
      lock.lock();
    }
    lock.unlock();
    for (std::thread& t : pool) t.join();
  }

  bool interrupted() const { return interrupted_; }
  const std::vector<Exit>& exits() const { return exits_; }

 private:
  void help() {
    work(false);
    const std::lock_guard lock(mutex_);
    --active_;
    finished_.notify_one();
  }

  void work(bool caller) {
    for (size_t i; (i = next_.fetch_add(1)) < machines_.size() && !interrupted_;)
      exits_[i] = run_one(*machines_[i], caller);
  }

  Exit run_one(Machine& m, bool caller) {
    const bool plain = plain_ || m.plain_only();
    const uint64_t slice = plain ? kPlainSlice : kFastSlice;
    while (!interrupted_) {
      const uint64_t until = std::min(m.cycle + slice, max_);
      const Exit exit = plain ? m.run_plain(until) : m.run_fast(until);
      if (exit != Exit::BUDGET) return exit;
      if (m.cycle >= max_) {
        m.fault = {FaultKind::CYCLE_LIMIT, static_cast<int32_t>(m.last),
                   static_cast<int32_t>(m.tasklets[m.last].pc % kIramInstructions)};
        return Exit::FAULTED;
      }
      if (caller) look_at_signals();
    }
    return Exit::BUDGET;
  }

  void look_at_signals() {
    const nb::gil_scoped_acquire gil;
    if (!interrupted_ && PyErr_CheckSignals()) interrupted_ = true;
  }

  const std::vector<Machine*>& machines_;
  std::vector<Exit> exits_;
  const uint64_t max_;
  const bool plain_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> interrupted_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  uint32_t active_ = 0;
};

}  // namespace

std::vector<Exit> run_machines(const std::vector<Machine*>& machines, uint32_t threads,
                               uint64_t max_cycles, bool plain) {
  Runner runner(machines, max_cycles, plain);
  {
    const nb::gil_scoped_release release;
    runner.run(threads);
  }
  if (runner.interrupted()) nb::raise_python_error();
  return runner.exits();
}

}  // namespace upmem
