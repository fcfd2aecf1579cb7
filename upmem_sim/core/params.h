// Hardware parameters as integers: what DpuParams.resolved() of params.py hands over, same names.
// Values named in `FRACTION`s are in units of 1 / kFraction cycle.
#pragma once
#include <cstdint>

namespace upmem {

inline constexpr uint64_t kFraction = 1024;
inline constexpr uint32_t kMaxTasklets = 24;
inline constexpr uint32_t kIramInstructions = 4096;  // the program counter wraps here on every chip
inline constexpr uint32_t kMramBase = 1u << 27;      // link address of MRAM, ignored by the DMA
inline constexpr uint32_t kAtomicBits = 256;

struct Params {
  uint64_t tasklets = kMaxTasklets;
  uint64_t iram_instructions = kIramInstructions;
  uint64_t wram_bytes = 65536;
  uint64_t mram_bytes = 64u << 20;
  uint64_t issue_distance_cycles = 11;
  uint64_t dma_read_latency_cycles = 0;        // FRACTION
  uint64_t dma_write_latency_cycles = 0;       // FRACTION
  uint64_t dma_cycles_per_byte = 0;            // FRACTION
  uint64_t dma_occupancy_cycles = 0;           // FRACTION
  uint64_t dma_occupancy_cycles_per_byte = 0;  // FRACTION
  uint64_t refresh_period_cycles = 0;
  uint64_t refresh_window_cycles = 0;
  uint64_t parity_conflict_cycles = 0;
  uint64_t dma_steal_bytes = 0;
  uint64_t taken_jump_cycles = 0;
  uint64_t silicon_dma_alignment = 0;
  // Hypothetical units: issue slots of an instruction, 0: there is no such unit.
  uint64_t multiply32_slots = 0;
  uint64_t float_add_slots = 0;
  uint64_t float_mul_slots = 0;
  uint64_t float_div_slots = 0;
};

// Names and members once, for the bindings.
struct ParamField {
  const char* name;
  uint64_t Params::* member;
};
inline constexpr ParamField kParamFields[] = {
    {"tasklets", &Params::tasklets},
    {"iram_instructions", &Params::iram_instructions},
    {"wram_bytes", &Params::wram_bytes},
    {"mram_bytes", &Params::mram_bytes},
    {"issue_distance_cycles", &Params::issue_distance_cycles},
    {"dma_read_latency_cycles", &Params::dma_read_latency_cycles},
    {"dma_write_latency_cycles", &Params::dma_write_latency_cycles},
    {"dma_cycles_per_byte", &Params::dma_cycles_per_byte},
    {"dma_occupancy_cycles", &Params::dma_occupancy_cycles},
    {"dma_occupancy_cycles_per_byte", &Params::dma_occupancy_cycles_per_byte},
    {"refresh_period_cycles", &Params::refresh_period_cycles},
    {"refresh_window_cycles", &Params::refresh_window_cycles},
    {"parity_conflict_cycles", &Params::parity_conflict_cycles},
    {"dma_steal_bytes", &Params::dma_steal_bytes},
    {"taken_jump_cycles", &Params::taken_jump_cycles},
    {"silicon_dma_alignment", &Params::silicon_dma_alignment},
    {"multiply32_slots", &Params::multiply32_slots},
    {"float_add_slots", &Params::float_add_slots},
    {"float_mul_slots", &Params::float_mul_slots},
    {"float_div_slots", &Params::float_div_slots},
};

}  // namespace upmem
