// A DPU program as the library holds it, and the reader of its ELF file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../core/code.h"
#include "include/dpu/dpu_error.h"
#include "include/dpu/dpu_types.h"

namespace upmem::host {

inline constexpr uint32_t kIramBase = 1u << 31;

// Thrown anywhere below the C interface, which returns the code.
struct Failure {
  dpu_error_t code;
  std::string text;  // one line, or empty when the code says it all
};

struct Symbol {
  uint32_t address, size;
  bool visible;  // to the host
};

// Initial bytes of a memory from `start` on.
struct Image {
  uint32_t start = 0;
  std::string bytes;
};

struct Line {
  int32_t file = -1;  // index into dpu_program_t::files, -1: unknown
  uint32_t line = 0;
};

}  // namespace upmem::host

struct dpu_program_t {
  std::string file;  // bytes it was read from: equal bytes are the same program
  std::shared_ptr<upmem::Code> code;
  upmem::host::Image wram, mram;
  std::unordered_map<std::string, upmem::host::Symbol> symbols;
  uint32_t nr_tasklets = 0;
  std::vector<upmem::host::Line> lines;  // of each instruction
  std::vector<std::string> files;

  const upmem::host::Symbol* find(std::string_view name) const {
    const auto found = symbols.find(std::string(name));
    return found == symbols.end() ? nullptr : &found->second;
  }
};

namespace upmem::host {

using Program = std::shared_ptr<dpu_program_t>;

// Throws Failure for a file that is damaged or no DPU program.
Program read_program(std::string file);

}  // namespace upmem::host
