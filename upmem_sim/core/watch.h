// What a run records or checks on request; only the plain loop looks at it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "machine.h"
#include "races.h"

namespace upmem {

// What to record and check; the bits are those of WATCH in dpu.py.
enum WatchBit : uint32_t {
  W_PROFILE = 1,
  W_TRACE = 2,
  W_UNINITIALISED = 4,
  W_RACES = 8,
};

enum class SpanKind : uint8_t { RUN, READ, WRITE, SLEEP, LOCK };

// Something a tasklet did from cycle `begin` up to `end`; same layout as SPAN in dpu.py.
struct Span {
  uint64_t begin, end;
  uint32_t pc;
  uint16_t bytes;  // of a transfer
  uint8_t tasklet;
  SpanKind kind;
};
static_assert(sizeof(Span) == 24);

// One byte per byte of memory: 1 once something has written it. The pages appear when touched.
class Validity {
 public:
  explicit Validity(uint64_t bytes);
  ~Validity();
  Validity(const Validity&) = delete;
  Validity& operator=(const Validity&) = delete;
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }

 private:
  uint8_t* data_;
  uint64_t bytes_;
};

struct Watch {
  uint32_t bits;
  std::vector<uint64_t> histogram;  // executions of each instruction
  std::vector<Span> spans;
  std::unique_ptr<Validity> wram_valid, mram_valid;
  std::vector<uint32_t> wram_origin;  // of each 8 bytes: MRAM address they were copied from, or 0
  std::unique_ptr<Races> races;

  Watch(uint32_t what, const Machine& m);
  void start(const Machine& m);
  void finish(const Machine& m);  // closes the spans that are open
  void issue(const Machine& m, uint32_t tasklet, uint64_t at);
  void load(const Machine& m, uint32_t tasklet, uint32_t address, uint32_t bytes);
  void store(const Machine& m, uint32_t tasklet, uint32_t address, uint32_t bytes);
  void dma(const Machine& m, uint32_t tasklet, uint32_t near, uint32_t far, uint32_t bytes,
           uint8_t op);
  void lock(uint32_t tasklet, uint32_t bit, bool taken);
  void unlock(uint32_t tasklet, uint32_t bit);
  void wake(uint32_t tasklet, uint32_t target);
  void sleep(uint32_t tasklet);

 private:
  // What each tasklet is doing and since when.
  struct Open {
    uint64_t begin = 0;
    uint32_t pc = 0;
    uint16_t bytes = 0;
    SpanKind kind = SpanKind::RUN;
    bool open = false;
  } open_[kMaxTasklets];

  uint32_t origin(uint32_t address) const;
  void change(uint32_t tasklet, uint64_t at, SpanKind kind, uint32_t pc, uint16_t bytes);
  void close(uint32_t tasklet, uint64_t at);
  void trace(const Machine& m, uint32_t tasklet, uint64_t at);
};

}  // namespace upmem
