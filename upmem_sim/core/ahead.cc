#include "ahead.h"

#include <algorithm>
#include <cstring>

namespace upmem {

namespace {

// The bits of word `i` that bytes [address, address + bytes) use.
uint32_t used_of(uint32_t i, uint32_t address, uint32_t bytes) {
  const uint32_t first = std::max(address, 4 * i), end = std::min(address + bytes, 4 * i + 4);
  return ((1u << (end - first)) - 1) << (first & 3);
}

}  // namespace

Ahead::Ahead(uint32_t wram_bytes) : words_(wram_bytes / 4, Word{}) {}

void Ahead::forget() {
  std::fill(words_.begin(), words_.end(), Word{});
  number_ = oldest_ = 0;
}

Ahead::Mark Ahead::open(const Tasklet& t, uint32_t tasklet) {
  number_ += 1;
  Segment& segment = segments_[tasklet];
  std::copy_n(t.r, 24, segment.registers.begin());
  segment.pc = t.pc;
  segment.z = t.z;
  segment.cf = t.cf;
  segment.undos = segment.length = 0;
  alive_[tasklet] = number_ << 5 | tasklet;
  oldest_ = number_;
  for (const Mark mark : alive_)
    if (mark) oldest_ = std::min(oldest_, mark >> 5);
  return alive_[tasklet];
}

bool Ahead::alive_since(uint32_t number, Mark mark) const {
  return std::any_of(alive_.begin(), alive_.end(), [&](Mark other) {
    return other != 0 && other != mark && other >> 5 <= number;
  });
}

bool Ahead::may_read_now(uint32_t address, uint32_t bytes) const {
  for (uint32_t i = address / 4; i < (address + bytes + 3) / 4; ++i)
    if (alive(words_[i].writer) && words_[i].written & used_of(i, address, bytes)) return false;
  return true;
}

// Where the answer is no, all segments are taken back, and what has been cleared did not matter.
bool Ahead::may_write_now(uint32_t address, uint32_t bytes) {
  for (uint32_t i = address / 4; i < (address + bytes + 3) / 4; ++i) {
    Word& w = words_[i];
    const uint32_t used = used_of(i, address, bytes);
    if (alive(w.writer) && w.written & used) return false;
    if (w.read & used) {
      if (alive(w.reader)) return false;
      if (w.others && alive_since(w.others, 0)) return false;
    }
    w.written &= static_cast<uint8_t>(~used);
    w.read &= static_cast<uint8_t>(~used);
  }
  return true;
}

// Living segments have not touched the same words but to read them, so the order does not matter.
void Ahead::take_back(Machine& m, void (*replay)(Machine&, Tasklet&, uint32_t, uint32_t)) {
  for (uint32_t i = 0; i < kMaxTasklets; ++i) {
    Tasklet& t = m.tasklets[i];
    const Segment& segment = segments_[i];
    if (!alive_[i]) continue;
    if (t.ahead) {
      for (uint32_t k = segment.undos; k-- > 0;) {
        const Undo& undo = segment.undo[k];
        const uint64_t value = undo.value >> 8 * (undo.address & 7);
        std::memcpy(m.wram + undo.address, &value, 1u << undo.log);
      }
      std::copy_n(segment.registers.begin(), 24, t.r);
      t.pc = segment.pc;
      t.z = segment.z;
      t.cf = segment.cf;
      replay(m, t, i, segment.length - t.ahead);
      t.ahead = 0;
    }
    close(i);
  }
  if (number_ > 1u << 26) forget();
}

}  // namespace upmem
