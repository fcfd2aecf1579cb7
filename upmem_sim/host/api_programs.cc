// dpu.h: programs. dpu_program.h.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "board.h"
#include "include/dpu/dpu.h"
#include "include/dpu/dpu_program.h"

using namespace upmem;
using namespace upmem::host;

namespace {

std::string read_file(const char* path) {
  std::FILE* file = path ? std::fopen(path, "rb") : nullptr;
  if (!file) throw Failure{DPU_ERR_ELF_NO_SUCH_FILE, ""};
  std::string bytes;
  char buffer[1 << 16];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) bytes.append(buffer, n);
  const bool failed = std::ferror(file);
  std::fclose(file);
  if (failed) throw Failure{DPU_ERR_ELF_NO_SUCH_FILE, ""};
  return bytes;
}

}  // namespace

namespace upmem::host {

Program program_of(Allocation& allocation, std::string bytes, const char* name) {
  {
    const std::lock_guard lock(allocation.mutex);
    for (const Program& known : allocation.programs)
      if (known->file == bytes) return known;
  }
  try {
    Program made = read_program(std::move(bytes));
    const std::lock_guard lock(allocation.mutex);
    allocation.programs.push_back(made);
    return made;
  } catch (Failure& failure) {
    failure.text = std::string(name) + ": " + failure.text;
    throw;
  }
}

}  // namespace upmem::host

namespace {

void fill(uint8_t* memory, const Image& image) {
  std::memcpy(memory + image.start, image.bytes.data(), image.bytes.size());
}

// Where each tasklet's stack is, if the program says so.
void place_stacks(Machine& m, const dpu_program_t& program) {
  for (uint32_t t = 0; t < kMaxTasklets; ++t) {
    const std::string number = std::to_string(t);
    const Symbol* base = program.find("__sys_stack_thread_" + number);
    const Symbol* size = program.find("STACK_SIZE_TASKLET_" + number);
    const bool known = program.code->has_stacks && base && size;
    m.tasklets[t].stack_low = known ? base->address : 0;
    m.tasklets[t].stack_bytes = known ? size->address : ~0u;
  }
}

}  // namespace

void upmem::host::put_program(dpu_t& dpu, const Program& program) {
  dpu.machine->code = program->code;
  place_stacks(*dpu.machine, *program);
  dpu.program = program;
}

namespace {

void load(dpu_t& dpu, const Program& program) {
  Machine& m = *dpu.machine;
  put_program(dpu, program);
  m.atomic.fill(0);
  fill(m.wram, program->wram);
  fill(m.mram, program->mram);
  if (const Symbol* clock = program->find("CLOCKS_PER_SEC");
      clock && clock->address + 4 <= m.params.wram_bytes) {
    const auto hz = static_cast<uint32_t>(kClockHz);
    std::memcpy(m.wram + clock->address, &hz, sizeof hz);
  }
  dpu.fault.clear();
}

dpu_error_t load_set(const dpu_set_t& set, std::string bytes, const char* name,
                     dpu_program_t** out) {
  const Dpus dpus = dpus_of(set);
  const Program program = program_of(owner_of(set), std::move(bytes), name);
  const Turn turn(ranks_of(set));
  for (dpu_t* dpu : dpus) load(*dpu, program);
  if (out) *out = program.get();
  return DPU_OK;
}

}  // namespace

extern "C" {

dpu_error_t dpu_load(dpu_set_t dpu_set, const char* path, dpu_program_t** program) {
  return guarded([&] {
    ranks_of(dpu_set);
    return load_set(dpu_set, read_file(path), path, program);
  });
}

dpu_error_t dpu_load_from_memory(dpu_set_t dpu_set, uint8_t* buffer, size_t size,
                                 dpu_program_t** program) {
  return guarded([&] {
    std::string bytes(reinterpret_cast<const char*>(buffer), buffer ? size : 0);
    return load_set(dpu_set, std::move(bytes), "program in memory", program);
  });
}

dpu_error_t dpu_load_from_incbin(dpu_set_t dpu_set, dpu_incbin_t* incbin, dpu_program_t** program) {
  return guarded([&] {
    std::string bytes(reinterpret_cast<const char*>(incbin->buffer), incbin->size);
    return load_set(dpu_set, std::move(bytes), incbin->path, program);
  });
}

dpu_error_t dpu_get_symbol(dpu_program_t* program, const char* name, dpu_symbol_t* symbol) {
  return guarded([&] {
    if (!program) return DPU_ERR_NO_PROGRAM_LOADED;
    const Symbol* found = program->find(name);
    if (!found || !found->visible) return DPU_ERR_UNKNOWN_SYMBOL;
    *symbol = {found->address, found->size};
    return DPU_OK;
  });
}

dpu_program_t* dpu_get_program(dpu_t* dpu) { return dpu->program.get(); }

}  // extern "C"
