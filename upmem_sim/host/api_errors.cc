// dpu_error.h: words for status codes.
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

#include "include/dpu/dpu_error.h"
#include "jobs.h"

namespace {

constexpr const char* kTexts[] = {
    "success",
    "internal error",
    "system error",
    "driver error",
    "dpu allocation error",
    "invalid action for this dpu set",
    "invalid thread id",
    "invalid notify id",
    "invalid wram access",
    "invalid iram access",
    "invalid mram access",
    "invalid memory symbol access",
    "mram is busy",
    "dpu transfer is already set",
    "invalid parallel transfer (should be to/from WRAM)",
    "cannot push to WRAM FIFO, FIFO full",
    "no program has been loaded in the dpu set",
    "cannot access symbol on dpus with different programs",
    "corrupted memory",
    "dpu is disabled",
    "dpu is already running",
    "invalid memory transfer",
    "invalid launch policy",
    "dpu is in fault",
    "invalid ELF file",
    "no such ELF file",
    "no such ELF section",
    "result timeout",
    "invalid profile",
    "undefined symbol",
    "logging format error",
    "logging context missing",
    "logging buffer too small",
    "invalid VPD file",
    "repairs have not been generated",
    "no thread to perform multiple-rank operation",
    "invalid buffer size",
    "nonblocking and synchronous callback is invalid",
    "dpu program uses more tasklets than the hardware has threads",
    "scatter/gather transfer has more blocks than allowed",
    "scatter/gather transfer: sum of the blocks differs from the length",
    "scatter/gather transfers are not activated in the profile",
    "scatter/gather transfer of a symbol that is not in MRAM",
};
constexpr const char* kJobs[] = {"unknown", "launch", "copy", "broadcast", "transfer", "callback"};

std::string text_of(uint32_t status) {
  if (!(status & static_cast<uint32_t>(DPU_ERR_ASYNC_JOBS)))
    return status < std::size(kTexts) ? kTexts[status] : "unknown error";
  const uint32_t job = status >> 16 & 0x7fff;
  char code[16];
  std::snprintf(code, sizeof code, "0x%x", status);
  return std::string("asynchronous operation error (") + kJobs[job < std::size(kJobs) ? job : 0] +
         "): " + text_of(status & 0xffff) + " (" + code + ")";
}

}  // namespace

extern "C" char* dpu_error_to_string(dpu_error_t status) {
  return strdup(text_of(static_cast<uint32_t>(status)).c_str());
}
