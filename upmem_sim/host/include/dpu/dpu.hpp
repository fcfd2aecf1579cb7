// C++ interface of the UPMEM SDK (`#include <dpu>`), over the C interface. C++11.
//
// Sets are made by allocate() and free their DPUs when they go; dpus() and ranks() give parts, which
// live as long as their set. Every failure throws DpuError.
#ifndef DPU_HPP
#define DPU_HPP

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "dpu.h"
#include "dpu_log.h"
#include "dpu_program.h"

namespace dpu {

constexpr unsigned ALLOCATE_ALL = DPU_ALLOCATE_ALL;

class DpuError : public std::exception {
 public:
  explicit DpuError(dpu_error_t status) : status_(status) {
    char *text = dpu_error_to_string(status);
    text_ = text ? text : "";
    std::free(text);
  }
  const char *what() const noexcept override { return text_.c_str(); }
  dpu_error_t status() const { return status_; }
  static void throwOnErr(dpu_error_t status) {
    if (status != DPU_OK) throw DpuError(status);
  }

 private:
  dpu_error_t status_;
  std::string text_;
};

class DpuSymbol {
 public:
  DpuSymbol(uint32_t address, uint32_t size) : symbol_{address, size} {}
  explicit DpuSymbol(dpu_symbol_t symbol) : symbol_(symbol) {}
  uint32_t address() const { return symbol_.address; }
  uint32_t size() const { return symbol_.size; }
  dpu_symbol_t get() const { return symbol_; }

 private:
  dpu_symbol_t symbol_;
};

class DpuProgram {
 public:
  explicit DpuProgram(dpu_program_t *program) : program_(program) {}
  DpuSymbol get(const std::string &name) const {
    dpu_symbol_t symbol;
    DpuError::throwOnErr(dpu_get_symbol(program_, name.c_str(), &symbol));
    return DpuSymbol(symbol);
  }

 private:
  dpu_program_t *program_;
};

// What sets can do now (DpuSet) or one after the other beside the host (DpuSetAsync).
class DpuSetOps {
 public:
  // The same data to every DPU.
  template <typename T>
  void copy(const std::string &name, unsigned offset, const std::vector<T> &data) {
    copy(symbol(name), offset, data);
  }
  template <typename T>
  void copy(const std::string &name, const std::vector<T> &data) {
    copy(symbol(name), 0, data);
  }
  template <typename T>
  void copy(const DpuSymbol &to, const std::vector<T> &data) {
    copy(to, 0, data);
  }
  template <typename T>
  void copy(const DpuSymbol &to, unsigned offset, const std::vector<T> &data) {
    DpuError::throwOnErr(dpu_broadcast_to_symbol(set_, to.get(), offset, data.data(),
                                                 data.size() * sizeof(T), flags()));
  }

  // data[i] to DPU i; `size` bytes of each, by default those of the longest.
  template <typename T>
  void copy(const std::string &name, unsigned offset, const std::vector<std::vector<T>> &data,
            unsigned size = 0) {
    copy(symbol(name), offset, data, size);
  }
  template <typename T>
  void copy(const std::string &name, const std::vector<std::vector<T>> &data, unsigned size = 0) {
    copy(symbol(name), 0, data, size);
  }
  template <typename T>
  void copy(const DpuSymbol &to, const std::vector<std::vector<T>> &data, unsigned size = 0) {
    copy(to, 0, data, size);
  }
  template <typename T>
  void copy(const DpuSymbol &to, unsigned offset, const std::vector<std::vector<T>> &data,
            unsigned size = 0) {
    push(DPU_XFER_TO_DPU, to, offset, const_cast<std::vector<std::vector<T>> &>(data), size);
  }

  // From DPU i to data[i], which must be long enough.
  template <typename T>
  void copy(std::vector<std::vector<T>> &data, const std::string &name, unsigned offset = 0) {
    copy(data, 0, symbol(name), offset);
  }
  template <typename T>
  void copy(std::vector<std::vector<T>> &data, unsigned size, const std::string &name,
            unsigned offset = 0) {
    copy(data, size, symbol(name), offset);
  }
  template <typename T>
  void copy(std::vector<std::vector<T>> &data, const DpuSymbol &from, unsigned offset = 0) {
    copy(data, 0, from, offset);
  }
  template <typename T>
  void copy(std::vector<std::vector<T>> &data, unsigned size, const DpuSymbol &from,
            unsigned offset = 0) {
    push(DPU_XFER_FROM_DPU, from, offset, data, size);
  }

  void exec() {
    const dpu_launch_policy_t policy = asynchronous_ ? DPU_ASYNCHRONOUS : DPU_SYNCHRONOUS;
    DpuError::throwOnErr(dpu_launch(set_, policy));
  }

  dpu_set_t unsafe() const { return set_; }

 protected:
  DpuSetOps(dpu_set_t set, bool asynchronous) : set_(set), asynchronous_(asynchronous) {}

  dpu_xfer_flags_t flags() const { return asynchronous_ ? DPU_XFER_ASYNC : DPU_XFER_DEFAULT; }

  DpuSymbol symbol(const std::string &name) const {
    dpu_set_t set = set_, one = set_;
    DPU_FOREACH(set, one) break;
    return DpuProgram(dpu_get_program(one.dpu)).get(name);
  }

  template <typename T>
  void push(dpu_xfer_t way, const DpuSymbol &place, unsigned offset,
            std::vector<std::vector<T>> &data, size_t size) {
    const size_t longest =
        std::max_element(data.begin(), data.end(), [](const std::vector<T> &a,
                                                      const std::vector<T> &b) {
          return a.size() < b.size();
        })->size();
    if (size == 0) size = longest * sizeof(T);
    dpu_set_t set = set_, one;
    size_t i = 0;
    DPU_FOREACH(set, one) {
      if (i == data.size()) break;
      if (data[i].size() * sizeof(T) < size) throw DpuError(DPU_ERR_INVALID_BUFFER_SIZE);
      DpuError::throwOnErr(dpu_prepare_xfer(one, data[i++].data()));
    }
    DpuError::throwOnErr(dpu_push_xfer_symbol(set_, way, place.get(), offset, size, flags()));
  }

  dpu_set_t set_;
  bool asynchronous_;
};

class DpuSet;

// Calls come back at once; sync() waits for them.
class DpuSetAsync : public DpuSetOps {
 public:
  void sync() { DpuError::throwOnErr(dpu_sync(set_)); }

  // f(part of the set, index) for every rank, or once for the whole set.
  void call(const std::function<void(DpuSet &, unsigned)> &f, bool blocking = true,
            bool single = false);

 private:
  friend class DpuSet;
  explicit DpuSetAsync(dpu_set_t set) : DpuSetOps(set, true) {}
};

class DpuSet : public DpuSetOps {
 public:
  static DpuSet allocate(unsigned nr_dpus = ALLOCATE_ALL, const std::string &profile = "") {
    dpu_set_t set;
    DpuError::throwOnErr(dpu_alloc(nr_dpus, profile.c_str(), &set));
    return DpuSet(set, true);
  }
  static DpuSet allocateRanks(unsigned nr_ranks = ALLOCATE_ALL, const std::string &profile = "") {
    dpu_set_t set;
    DpuError::throwOnErr(dpu_alloc_ranks(nr_ranks, profile.c_str(), &set));
    return DpuSet(set, true);
  }

  DpuSet(DpuSet &&other) noexcept
      : DpuSetOps(other), owner_(other.owner_), dpus_(std::move(other.dpus_)),
        ranks_(std::move(other.ranks_)) {
    other.owner_ = false;
  }
  DpuSet(const DpuSet &) = delete;
  DpuSet &operator=(const DpuSet &) = delete;
  ~DpuSet() {
    if (owner_) dpu_free(set_);
  }

  DpuProgram load(const std::string &path) {
    dpu_program_t *program;
    DpuError::throwOnErr(dpu_load(set_, path.c_str(), &program));
    return DpuProgram(program);
  }

  std::vector<DpuSet *> &dpus() {
    dpu_set_t one;
    if (dpus_.empty()) DPU_FOREACH(set_, one) dpus_.emplace_back(new DpuSet(one, false));
    return pointers(dpus_, dpu_pointers_);
  }
  std::vector<DpuSet *> &ranks() {
    dpu_set_t one;
    if (ranks_.empty()) DPU_RANK_FOREACH(set_, one) ranks_.emplace_back(new DpuSet(one, false));
    return pointers(ranks_, rank_pointers_);
  }

  // What the DPUs printed, one after the other.
  void log(std::ostream &out) {
    for (DpuSet *dpu : dpus()) {
      std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::tmpfile(), std::fclose);
      if (!file) throw DpuError(DPU_ERR_SYSTEM);
      DpuError::throwOnErr(dpu_log_read(dpu->set_, file.get()));
      std::rewind(file.get());
      for (int c; (c = std::getc(file.get())) != EOF;) out.put(static_cast<char>(c));
    }
  }

  DpuSetAsync async() { return DpuSetAsync(set_); }

 private:
  friend class DpuSetAsync;
  using Parts = std::vector<std::unique_ptr<DpuSet>>;

  DpuSet(dpu_set_t set, bool owner) : DpuSetOps(set, false), owner_(owner) {}

  static std::vector<DpuSet *> &pointers(const Parts &parts, std::vector<DpuSet *> &out) {
    if (out.empty())
      for (const auto &part : parts) out.push_back(part.get());
    return out;
  }

  bool owner_;
  Parts dpus_, ranks_;
  std::vector<DpuSet *> dpu_pointers_, rank_pointers_;
};

inline void DpuSetAsync::call(const std::function<void(DpuSet &, unsigned)> &f, bool blocking,
                              bool single) {
  struct State {
    std::function<void(DpuSet &, unsigned)> f;
    // C code is between, so exceptions become statuses.
    static dpu_error_t run(dpu_set_t set, uint32_t index, void *state) {
      DpuSet part(set, false);
      try {
        static_cast<State *>(state)->f(part, index);
      } catch (const DpuError &error) {
        return error.status();
      } catch (...) {
        return DPU_ERR_INTERNAL;
      }
      return DPU_OK;
    }
  };
  int flags = DPU_CALLBACK_ASYNC;
  if (!blocking) flags |= DPU_CALLBACK_NONBLOCKING;
  if (single) flags |= DPU_CALLBACK_SINGLE_CALL;
  // Lives as long as the program: the call may happen any time.
  State *state = new State{f};
  DpuError::throwOnErr(
      dpu_callback(set_, State::run, state, static_cast<dpu_callback_flags_t>(flags)));
}

}  // namespace dpu

#endif
