// Finds accesses to WRAM by two tasklets that nothing orders, at least one of them a write.
//
// Happens-before by vector clocks, as in FastTrack (Flanagan and Freund, PLDI 2009): releasing an
// atomic bit orders what came before it before what follows the next acquire; boot and resume order
// the caller's past before the target's future, and a tasklet that found another one stopped comes
// after what that one did.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "params.h"

namespace upmem {

class Races {
 public:
  explicit Races(uint64_t wram_bytes);
  void start();
  // The other tasklet of a race that this access makes, -1 if it makes none.
  int read(uint32_t tasklet, uint32_t address, uint32_t bytes);
  int write(uint32_t tasklet, uint32_t address, uint32_t bytes);
  void release(uint32_t tasklet, uint32_t bit);
  void acquire(uint32_t tasklet, uint32_t bit);
  void wake(uint32_t tasklet, uint32_t target);
  void sleep(uint32_t tasklet);

 private:
  using Clock = std::array<uint32_t, kMaxTasklets>;
  struct Byte {
    uint32_t writer = 0, written = 0;  // tasklet and its time, 0: never
    uint32_t readers = 0;              // since that write, one bit a tasklet
  };

  std::array<Clock, kMaxTasklets> clocks_, stopped_;
  std::array<Clock, kAtomicBits> bits_;
  std::vector<Byte> bytes_;
  std::vector<uint32_t> read_at_;  // [byte][tasklet]

  static void join(Clock& into, const Clock& from);
};

}  // namespace upmem
