// Copies between host and DPU memory: places, their rules, and what a copy costs.
#pragma once
#include <cstdint>

#include "board.h"
#include "clock.h"

namespace upmem::host {

// A checked part of a DPU's memory.
struct Place {
  bool mram;
  uint32_t address;  // from the memory's first byte
  size_t bytes;
};

// Failure with the code of the rule that (symbol, offset, length) breaks.
Place check_place(dpu_symbol_t symbol, uint32_t offset, size_t length);
// The symbol in the one program of all DPUs.
dpu_symbol_t find_symbol(const Dpus& dpus, const char* name);

struct Piece {
  dpu_t* dpu;
  void* host;
};
void copy(const std::vector<Piece>& pieces, const Place& place, Way way);
uint8_t* at(dpu_t& dpu, const Place& place);

// What a call costs, by DPUs.
Sending sending_of(const Place& place, Way way, bool broadcast);

}  // namespace upmem::host
