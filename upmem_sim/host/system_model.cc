#include "system_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace upmem::host {
namespace {

// Every parameter of the chip has its number.
constexpr bool is_complete() {
  for (const ParamField& field : kParamFields) {
    bool found = false;
    for (const ChipNumber& number : kChip) found |= std::string_view(field.name) == number.name;
    if (!found) return false;
  }
  return std::size(kChip) == std::size(kParamFields);
}
static_assert(is_complete());

double ranks_of(uint32_t dpus) { return std::ceil(static_cast<double>(dpus) / kDpusPerRank); }

}  // namespace

Params chip_params() {
  Params params;
  for (const ChipNumber& number : kChip)
    for (const ParamField& field : kParamFields)
      if (std::string_view(field.name) == number.name) params.*field.member = number.value;
  return params;
}

const TransferPreset* find_preset(std::string_view name) {
  for (const TransferPreset& preset : kPresets)
    if (name == preset.name) return &preset;
  return nullptr;
}

double mram_seconds(const Curve& curve, double bytes, uint32_t dpus) {
  if (bytes == 0 || dpus == 0) return 0;
  const double share = static_cast<double>(dpus) / kDpusPerRank;
  const double rate =
      std::min(curve.rank_gb_s * 1e9 * std::pow(share, curve.exponent), curve.cap_gb_s * 1e9);
  return (curve.fixed_ms + curve.per_rank_ms * ranks_of(dpus)) * 1e-3 + bytes * dpus / rate;
}

double wram_seconds(const WramCost& cost, double bytes, uint32_t dpus) {
  if (bytes == 0 || dpus == 0) return 0;
  const double ranks = ranks_of(dpus);
  const double serial = cost.per_byte_us * 1e-6 * bytes * std::min(dpus, kDpusPerRank);
  return (cost.fixed_ms + cost.per_rank_ms * ranks) * 1e-3 +
         serial * (1 + ranks / cost.slowdown_ranks);
}

double launch_seconds(const TransferPreset& preset, uint32_t dpus) {
  return (preset.launch_ms + preset.launch_per_rank_ms * ranks_of(dpus)) * 1e-3;
}

}  // namespace upmem::host
