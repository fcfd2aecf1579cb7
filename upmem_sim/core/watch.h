// What a run records or checks on request; only the plain loop looks at it.
#pragma once
#include <cstdint>
#include <vector>

#include "machine.h"

namespace upmem {

struct Watch {
  std::vector<uint64_t> histogram;  // executions of each instruction

  void start(const Machine& m);
  void issue(const Machine& m, uint32_t tasklet, uint64_t at);
  void load(const Machine& m, uint32_t tasklet, uint32_t address, uint32_t bytes);
  void store(const Machine& m, uint32_t tasklet, uint32_t address, uint32_t bytes);
  void dma(const Machine& m, const Tasklet& t, uint32_t near, uint32_t far, uint32_t bytes,
           uint8_t op);
};

}  // namespace upmem
