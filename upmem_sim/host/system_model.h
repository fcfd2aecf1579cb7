// The simulated system in numbers: chip, machine, and what calls of the host cost.
#pragma once
#include <cstdint>
#include <string_view>

#include "../core/params.h"

namespace upmem::host {

struct ChipNumber {
  const char* name;  // of a ParamField
  uint64_t value;
};

// Fields as in Curve and WramCost of transfer.py, in the same order.
struct Curve {
  double fixed_ms, per_rank_ms, rank_gb_s, exponent, cap_gb_s;
};
struct WramCost {
  double fixed_ms, per_rank_ms, per_byte_us, slowdown_ranks;
};
struct TransferPreset {
  const char* name;
  Curve in, out;
  WramCost wram_in, wram_out;
  double broadcast_gain, launch_ms, launch_per_rank_ms;
};

#include "tables.inc"

inline constexpr uint32_t kDpusPerSlice = 8;

Params chip_params();
// The preset of that name, nullptr if there is none.
const TransferPreset* find_preset(std::string_view name);

// Seconds of one call that moves `bytes` of each of `dpus` DPUs; 0 if nothing moves.
double mram_seconds(const Curve& curve, double bytes, uint32_t dpus);
double wram_seconds(const WramCost& cost, double bytes, uint32_t dpus);
// Seconds of a synchronous launch besides the kernel.
double launch_seconds(const TransferPreset& preset, uint32_t dpus);

}  // namespace upmem::host
