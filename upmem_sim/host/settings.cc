#include "settings.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>
#include <thread>

#include "program.h"

namespace upmem::host {
namespace {

constexpr uint64_t kMaxCycles = 100'000'000'000;  // 286 s of a 350 MHz DPU
constexpr uint32_t kMaxDpus = 1u << 16;

bool is_on(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::string_view(value) != "0";
}

uint64_t number(const char* variable, uint64_t otherwise, uint64_t high) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end == 0 && value >= 1 && value <= high) return value;
  std::fprintf(stderr, "libdpu: %s=%s ignored, limit 1 to %llu\n", variable, text,
               static_cast<unsigned long long>(high));
  return otherwise;
}

uint32_t processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

using Keys = std::map<std::string, std::string, std::less<>>;

void add_keys(Keys& keys, std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find_first_of(",&");
    const std::string_view part = text.substr(0, end);
    text = end == text.npos ? "" : text.substr(end + 1);
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    if (equals == part.npos || equals == 0)
      throw Failure{DPU_ERR_INVALID_PROFILE, "profile: no value in " + std::string(part)};
    keys[std::string(part.substr(0, equals))] = part.substr(equals + 1);
  }
}

uint32_t count(const Keys& keys, std::string_view name, uint32_t otherwise) {
  const auto found = keys.find(name);
  if (found == keys.end()) return otherwise;
  char* end = nullptr;
  const unsigned long value = std::strtoul(found->second.c_str(), &end, 0);
  if (end == found->second.c_str() || *end || value > 1u << 20)
    throw Failure{DPU_ERR_INVALID_PROFILE,
                  "profile: " + found->first + "=" + found->second + " is not a number"};
  return static_cast<uint32_t>(value);
}

bool truth(const Keys& keys, std::string_view name) {
  const auto found = keys.find(name);
  return found != keys.end() && found->second != "false" && found->second != "0";
}

}  // namespace

const Settings& settings() {
  static const Settings* const all = new Settings{
      is_on("DPU_SIM_SUMMARY"),
      is_on("DPU_SIM_QUIET"),
      static_cast<uint32_t>(number("DPU_SIM_THREADS", processors(), 1024)),
      static_cast<uint32_t>(number("DPU_SIM_DPUS", kSystemDpus, kMaxDpus)),
      number("DPU_SIM_CYCLES", kMaxCycles, ~0ull >> 1),
  };
  return *all;
}

const TransferPreset& preset() {
  static const TransferPreset* const found = [] {
    const char* name = std::getenv("DPU_SIM_PRESET");
    return new TransferPreset(find_preset(name && *name ? name : "common"));
  }();
  return *found;
}

Profile read_profile(const char* text) {
  Keys keys;
  for (const char* part : {static_cast<const char*>(std::getenv("UPMEM_PROFILE_BASE")), text,
                           static_cast<const char*>(std::getenv("UPMEM_PROFILE"))})
    if (part) add_keys(keys, part);
  Profile out;
  out.threads_per_rank = count(keys, "nrThreadsPerRank", out.threads_per_rank);
  out.jobs_per_rank = std::max(1u, count(keys, "nrJobsPerRank", out.jobs_per_rank));
  out.scatter_gather = truth(keys, "sgXferEnable");
  out.max_blocks = count(keys, "sgXferMaxBlocksPerDpu", 0);
  if (out.max_blocks && !out.scatter_gather)
    throw Failure{DPU_ERR_INVALID_PROFILE, "profile: sgXferMaxBlocksPerDpu without sgXferEnable"};
  return out;
}

}  // namespace upmem::host
