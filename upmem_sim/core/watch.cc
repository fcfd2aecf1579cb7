#include "watch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace upmem {

Validity::Validity(uint64_t bytes) : bytes_(bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(base);
}

Validity::~Validity() { munmap(data_, bytes_); }

Watch::Watch(uint32_t what, const Machine& m) : bits(what) {
  if (bits & W_UNINITIALISED) {
    wram_valid = std::make_unique<Validity>(m.params.wram_bytes);
    mram_valid = std::make_unique<Validity>(m.params.mram_bytes);
    wram_origin.assign((m.params.wram_bytes + 7) / 8, 0);
  }
  if (bits & W_RACES) races = std::make_unique<Races>(m.params.wram_bytes);
}

void Watch::start(const Machine&) {
  histogram.assign(kIramInstructions, 0);
  spans.clear();
  std::fill(std::begin(open_), std::end(open_), Open{});
  if (races) races->start();
}

void Watch::finish(const Machine& m) {
  for (uint32_t t = 0; t < kMaxTasklets; ++t) {
    if (m.tasklets[t].ended) open_[t].open = false;
    close(t, m.cycle);
  }
}

void Watch::issue(const Machine& m, uint32_t tasklet, uint64_t at) {
  histogram[m.tasklets[tasklet].pc] += 1;
  if (bits & W_TRACE) trace(m, tasklet, at);
}

// ---- timeline

void Watch::close(uint32_t tasklet, uint64_t at) {
  Open& o = open_[tasklet];
  if (o.open && at > o.begin)
    spans.push_back({o.begin, at, o.pc, o.bytes, static_cast<uint8_t>(tasklet), o.kind});
  o.open = false;
}

void Watch::change(uint32_t tasklet, uint64_t at, SpanKind kind, uint32_t pc, uint16_t bytes) {
  close(tasklet, at);
  open_[tasklet] = {at, pc, bytes, kind, true};
}

// A tasklet that issues runs; its spans of waiting, opened by the calls below, end here. An attempt
// at a bit that is taken starts or prolongs a lock span.
void Watch::trace(const Machine& m, uint32_t tasklet, uint64_t at) {
  const Tasklet& t = m.tasklets[tasklet];
  const Row& row = m.code->rows[t.pc];
  const Open& o = open_[tasklet];
  if (row.op == OP_acquire) {
    const uint32_t bit = atomic_index(t.r[row.ra] + static_cast<uint32_t>(row.imm));
    const bool held = m.atomic[bit];
    if (held && o.open && o.kind == SpanKind::LOCK) return;
    if (held) return change(tasklet, at, SpanKind::LOCK, t.pc, 0);
  }
  if (!o.open || o.kind != SpanKind::RUN) change(tasklet, at, SpanKind::RUN, t.pc, 0);
  if (row.op == OP_stop) change(tasklet, at + 1, SpanKind::SLEEP, t.pc, 0);
}

// ---- memory

uint32_t Watch::origin(uint32_t address) const {
  const uint32_t from = wram_origin[address / 8];
  return from ? from + address % 8 : 0;
}

// Reading next to initialised bytes is allowed: a 64-bit load may take in padding.
void Watch::load(const Machine&, uint32_t tasklet, uint32_t address, uint32_t bytes) {
  if (wram_valid) {
    const uint8_t* valid = wram_valid->data() + address;
    if (std::none_of(valid, valid + bytes, [](uint8_t v) { return v != 0; }))
      throw Fault{FaultKind::UNINITIALISED, -1, -1, address, bytes, origin(address)};
  }
  if (!races) return;
  if (const int other = races->read(tasklet, address, bytes); other >= 0)
    throw Fault{FaultKind::RACE, -1, -1, address, bytes, static_cast<uint32_t>(other)};
}

void Watch::store(const Machine&, uint32_t tasklet, uint32_t address, uint32_t bytes) {
  if (wram_valid) std::memset(wram_valid->data() + address, 1, bytes);
  if (!races) return;
  if (const int other = races->write(tasklet, address, bytes); other >= 0)
    throw Fault{FaultKind::RACE, -1, -1, address, bytes, static_cast<uint32_t>(other)};
}

// A transfer copies what is known about the bytes: a block may be fetched beyond the data.
void Watch::dma(const Machine& m, uint32_t tasklet, uint32_t near, uint32_t far, uint32_t bytes,
                uint8_t op) {
  if (bits & W_TRACE) {
    const SpanKind kind = op == OP_sdma ? SpanKind::WRITE : SpanKind::READ;
    change(tasklet, m.cycle + 1, kind, m.tasklets[tasklet].pc, static_cast<uint16_t>(bytes));
  }
  if (op == OP_ldmai) return;
  if (wram_valid) {
    uint8_t *w = wram_valid->data() + near, *r = mram_valid->data() + far;
    op == OP_ldma ? std::memcpy(w, r, bytes) : std::memcpy(r, w, bytes);
    for (uint32_t i = 0; op == OP_ldma && i < bytes; i += 8)
      wram_origin[(near + i) / 8] = kMramBase | (far + i);
  }
  if (!races) return;
  const int other =
      op == OP_ldma ? races->write(tasklet, near, bytes) : races->read(tasklet, near, bytes);
  if (other >= 0) throw Fault{FaultKind::RACE, -1, -1, near, bytes, static_cast<uint32_t>(other)};
}

// ---- synchronisation

void Watch::lock(uint32_t tasklet, uint32_t bit, bool taken) {
  if (races && taken) races->acquire(tasklet, bit);
}

void Watch::unlock(uint32_t tasklet, uint32_t bit) {
  if (races) races->release(tasklet, bit);
}

void Watch::wake(uint32_t tasklet, uint32_t target) {
  if (races) races->wake(tasklet, target);
}

void Watch::sleep(uint32_t tasklet) {
  if (races) races->sleep(tasklet);
}

}  // namespace upmem
