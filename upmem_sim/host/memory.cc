#include "memory.h"

#include <cstring>

#include "pool.h"

namespace upmem::host {
namespace {

constexpr size_t kParallelBytes = 8u << 20;  // worth the pool

void copy_piece(const Piece& piece, const Place& place, Way way) {
  uint8_t* memory = at(*piece.dpu, place);
  if (way == Way::TO_DPUS)
    std::memcpy(memory, piece.host, place.bytes);
  else
    std::memcpy(piece.host, memory, place.bytes);
}

}  // namespace

Place check_place(dpu_symbol_t symbol, uint32_t offset, size_t length) {
  if (length > symbol.size || offset > symbol.size - length)
    throw Failure{DPU_ERR_INVALID_SYMBOL_ACCESS, ""};
  const uint64_t address = uint64_t{symbol.address} + offset;
  if (address & kIramBase) throw Failure{DPU_ERR_INVALID_IRAM_ACCESS, ""};
  const Params chip = chip_params();
  const bool mram = (address & kMramBase) != 0;
  const uint64_t start = mram ? address - kMramBase : address;
  const uint32_t unit = mram ? 8 : 4;
  if (start % unit || length % unit || start + length > (mram ? chip.mram_bytes : chip.wram_bytes))
    throw Failure{mram ? DPU_ERR_INVALID_MRAM_ACCESS : DPU_ERR_INVALID_WRAM_ACCESS, ""};
  return {mram, static_cast<uint32_t>(start), length};
}

dpu_symbol_t find_symbol(const Dpus& dpus, const char* name) {
  const dpu_program_t* program = dpus[0]->program.get();
  for (const dpu_t* dpu : dpus) {
    if (!dpu->program) throw Failure{DPU_ERR_NO_PROGRAM_LOADED, ""};
    if (dpu->program.get() != program) throw Failure{DPU_ERR_DIFFERENT_DPU_PROGRAMS, ""};
  }
  const Symbol* symbol = name ? program->find(name) : nullptr;
  if (!symbol || !symbol->visible) throw Failure{DPU_ERR_UNKNOWN_SYMBOL, ""};
  return {symbol->address, symbol->size};
}

uint8_t* at(dpu_t& dpu, const Place& place) {
  return (place.mram ? dpu.machine->mram : dpu.machine->wram) + place.address;
}

void copy(const std::vector<Piece>& pieces, const Place& place, Way way) {
  if (!place.bytes) return;
  if (pieces.size() * place.bytes < kParallelBytes) {
    for (const Piece& piece : pieces) copy_piece(piece, place, way);
    return;
  }
  run_parallel(pieces.size(), [&](size_t i) { copy_piece(pieces[i], place, way); });
}

Sending sending_of(const Place& place, Way way, bool broadcast) {
  return {place.mram, way == Way::TO_DPUS, broadcast, static_cast<double>(place.bytes)};
}

}  // namespace upmem::host
