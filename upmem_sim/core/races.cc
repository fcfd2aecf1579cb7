#include "races.h"

#include <algorithm>
#include <bit>

namespace upmem {

Races::Races(uint64_t wram_bytes) : bytes_(wram_bytes), read_at_(wram_bytes * kMaxTasklets) {
  start();
}

void Races::start() {
  for (uint32_t t = 0; t < kMaxTasklets; ++t) {
    clocks_[t].fill(0);
    clocks_[t][t] = 1;
    stopped_[t].fill(0);
  }
  for (Clock& clock : bits_) clock.fill(0);
  std::fill(bytes_.begin(), bytes_.end(), Byte{});
}

void Races::join(Clock& into, const Clock& from) {
  for (uint32_t t = 0; t < kMaxTasklets; ++t) into[t] = std::max(into[t], from[t]);
}

int Races::read(uint32_t tasklet, uint32_t address, uint32_t bytes) {
  const Clock& now = clocks_[tasklet];
  for (uint32_t i = address; i < address + bytes; ++i) {
    Byte& byte = bytes_[i];
    if (byte.writer != tasklet && byte.written > now[byte.writer])
      return static_cast<int>(byte.writer);
    byte.readers |= 1u << tasklet;
    read_at_[i * kMaxTasklets + tasklet] = now[tasklet];
  }
  return -1;
}

int Races::write(uint32_t tasklet, uint32_t address, uint32_t bytes) {
  const Clock& now = clocks_[tasklet];
  for (uint32_t i = address; i < address + bytes; ++i) {
    Byte& byte = bytes_[i];
    if (byte.writer != tasklet && byte.written > now[byte.writer])
      return static_cast<int>(byte.writer);
    for (uint32_t left = byte.readers & ~(1u << tasklet); left; left &= left - 1) {
      const int reader = std::countr_zero(left);
      if (read_at_[i * kMaxTasklets + static_cast<uint32_t>(reader)] > now[reader]) return reader;
    }
    byte = {tasklet, now[tasklet], 0};
  }
  return -1;
}

void Races::release(uint32_t tasklet, uint32_t bit) {
  join(bits_[bit], clocks_[tasklet]);
  clocks_[tasklet][tasklet] += 1;
}

void Races::acquire(uint32_t tasklet, uint32_t bit) { join(clocks_[tasklet], bits_[bit]); }

void Races::wake(uint32_t tasklet, uint32_t target) {
  join(clocks_[tasklet], stopped_[target]);
  join(clocks_[target], clocks_[tasklet]);
  clocks_[tasklet][tasklet] += 1;
}

void Races::sleep(uint32_t tasklet) {
  stopped_[tasklet] = clocks_[tasklet];
  clocks_[tasklet][tasklet] += 1;
}

}  // namespace upmem
