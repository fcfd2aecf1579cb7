// The simulated system in numbers: chip, machine, and what calls of the host cost.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../core/params.h"

namespace upmem::host {

struct ChipNumber {
  const char* name;  // of a ParamField
  uint64_t value;
};

// Fields as in Curve, WramCost and Table of transfer_costs.py, in the same order.
struct Curve {
  double fixed_ms, per_rank_ms, rank_gb_s, exponent, cap_gb_s;
};
struct WramCost {
  double fixed_ms, per_rank_ms, per_byte_us, slowdown_ranks;
};
struct Table {
  std::vector<double> bytes, dpus, seconds;  // seconds[bytes][dpus]
  double below;
};

// What a call costs by bytes of each DPU and DPUs.
class Cost {
 public:
  explicit Cost(Curve curve) : form_(curve) {}
  explicit Cost(WramCost wram) : form_(wram) {}
  explicit Cost(Table table) : form_(std::move(table)) {}
  // Seconds of one call that moves `bytes` of each of `dpus` DPUs; 0 if nothing moves.
  double seconds(double bytes, uint32_t dpus) const;

 private:
  std::variant<Curve, WramCost, Table> form_;
};

struct TransferPreset {
  std::string name;
  Cost in, out, wram_in, wram_out;
  double broadcast_gain, launch_ms, launch_per_rank_ms;
};

#include "tables.inc"

inline constexpr uint32_t kDpusPerSlice = 8;

Params chip_params();
// The preset of that name, or that of a file name.json as upmem_sim/transfer_file.py describes it.
// Throws Failure, with what is wrong, if there is none.
TransferPreset find_preset(const std::string& name);
// The one in the file.
TransferPreset read_preset(const std::string& path);
// The nearest table that decreases along neither axis, as transfer_costs.py's `monotone`.
std::vector<double> monotone(std::vector<double> table, size_t columns);

// Seconds of a synchronous launch besides the kernel.
double launch_seconds(const TransferPreset& preset, uint32_t dpus);

}  // namespace upmem::host
