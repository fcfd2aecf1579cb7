#define UPMEM_PRESETS
#include "system_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "program.h"

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

double seconds_of(const Curve& curve, double bytes, uint32_t dpus) {
  const double share = static_cast<double>(dpus) / kDpusPerRank;
  const double rate =
      std::min(curve.rank_gb_s * 1e9 * std::pow(share, curve.exponent), curve.cap_gb_s * 1e9);
  return (curve.fixed_ms + curve.per_rank_ms * ranks_of(dpus)) * 1e-3 + bytes * dpus / rate;
}

double seconds_of(const WramCost& cost, double bytes, uint32_t dpus) {
  const double ranks = ranks_of(dpus);
  const double serial = cost.per_byte_us * 1e-6 * bytes * std::min(dpus, kDpusPerRank);
  return (cost.fixed_ms + cost.per_rank_ms * ranks) * 1e-3 +
         serial * (1 + ranks / cost.slowdown_ranks);
}

// The cell of a value on a logarithmic axis, and the value's place in it.
std::pair<size_t, double> cell(double value, const std::vector<double>& knots) {
  const auto after = std::upper_bound(knots.begin(), knots.end(), value) - knots.begin();
  const auto last = static_cast<ptrdiff_t>(knots.size()) - 2;
  const auto at = static_cast<size_t>(std::clamp<ptrdiff_t>(after - 1, 0, last));
  return {at, (std::log(value) - std::log(knots[at])) /
                  (std::log(knots[at + 1]) - std::log(knots[at]))};
}

double interpolate(const Table& table, double bytes, double dpus) {
  const double most_bytes = table.bytes.back(), most_dpus = table.dpus.back();
  const auto [row, down] = cell(std::clamp(bytes, table.bytes[0], most_bytes), table.bytes);
  const auto [column, right] = cell(std::min(dpus, most_dpus), table.dpus);
  const auto line = [&, column = column, right = right](size_t at) {
    const double* seconds = &table.seconds[at * table.dpus.size() + column];
    return std::log(seconds[0]) * (1 - right) + std::log(seconds[1]) * right;
  };
  const double beyond = std::max(bytes / most_bytes, 1.0) * std::max(dpus / most_dpus, 1.0);
  return std::exp(line(row) * (1 - down) + line(row + 1) * down) * beyond;
}

double seconds_of(const Table& table, double bytes, uint32_t dpus) {
  const double first = table.dpus[0], count = dpus;
  const double at = interpolate(table, bytes, std::max(count, first));
  if (count >= first) return at;
  const double floor = interpolate(table, table.bytes[0], first);
  return floor + (at - floor) * std::pow(count / first, table.below);
}

}  // namespace

Params chip_params() {
  Params params;
  for (const ChipNumber& number : kChip)
    for (const ParamField& field : kParamFields)
      if (std::string_view(field.name) == number.name) params.*field.member = number.value;
  return params;
}

TransferPreset find_preset(const std::string& name) {
  if (name.ends_with(".json")) return read_preset(name);
  std::string known;
  for (const TransferPreset& preset : presets()) {
    if (name == preset.name) return preset;
    known += (known.empty() ? "" : ", ") + preset.name;
  }
  throw Failure{DPU_ERR_ALLOCATION,
                "DPU_SIM_PRESET=" + name + " is unknown: " + known + ", or a file name.json"};
}

double Cost::seconds(double bytes, uint32_t dpus) const {
  if (bytes == 0 || dpus == 0) return 0;
  return std::visit([&](const auto& form) { return seconds_of(form, bytes, dpus); }, form_);
}

double launch_seconds(const TransferPreset& preset, uint32_t dpus) {
  return (preset.launch_ms + preset.launch_per_rank_ms * ranks_of(dpus)) * 1e-3;
}

}  // namespace upmem::host
