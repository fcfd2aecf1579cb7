// dpu.h: memory, but for scatter and gather.
#include "include/dpu/dpu.h"
#include "memory.h"
#include "transfers.h"

using namespace upmem::host;

namespace {

Transfer same_bytes(const dpu_set_t& set, const dpu_symbol_t& symbol, uint32_t offset,
                    const void* src, size_t length) {
  Transfer transfer{check_place(symbol, offset, length), Way::TO_DPUS, true, {}};
  for (dpu_t* dpu : dpus_of(set)) transfer.pieces.push_back({dpu, const_cast<void*>(src)});
  return transfer;
}

dpu_error_t broadcast(const dpu_set_t& set, const dpu_symbol_t& symbol, uint32_t offset,
                      const void* src, size_t length, uint32_t flags, JobKind kind) {
  if (flags & DPU_XFER_PARALLEL && symbol.address >= upmem::kMramBase)
    return DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER;
  return perform(set, same_bytes(set, symbol, offset, src, length), flags & DPU_XFER_ASYNC, kind);
}

dpu_error_t fetch(const dpu_set_t& set, const dpu_symbol_t& symbol, uint32_t offset, void* dst,
                  size_t length) {
  Transfer transfer{check_place(symbol, offset, length), Way::FROM_DPUS, false, {}};
  transfer.pieces.push_back({&single_dpu(set), dst});
  return perform(set, std::move(transfer), false, JobKind::COPY);
}

dpu_error_t push(const dpu_set_t& set, dpu_xfer_t xfer, const dpu_symbol_t& symbol, uint32_t offset,
                 size_t length, uint32_t flags) {
  if (xfer != DPU_XFER_TO_DPU && xfer != DPU_XFER_FROM_DPU) return DPU_ERR_INVALID_MEMORY_TRANSFER;
  if (flags & DPU_XFER_PARALLEL && symbol.address >= upmem::kMramBase)
    return DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER;
  const Way way = xfer == DPU_XFER_TO_DPU ? Way::TO_DPUS : Way::FROM_DPUS;
  Transfer transfer{check_place(symbol, offset, length), way, false, {}};
  for (dpu_t* dpu : dpus_of(set)) {
    if (dpu->buffer) transfer.pieces.push_back({dpu, dpu->buffer});
    if (!(flags & DPU_XFER_NO_RESET)) dpu->buffer = nullptr;
  }
  return perform(set, std::move(transfer), flags & DPU_XFER_ASYNC, JobKind::TRANSFER);
}

}  // namespace

extern "C" {

dpu_error_t dpu_copy_to(dpu_set_t dpu_set, const char* symbol_name, uint32_t symbol_offset,
                        const void* src, size_t length) {
  return guarded([&] {
    const dpu_symbol_t symbol = find_symbol(dpus_of(dpu_set), symbol_name);
    return broadcast(dpu_set, symbol, symbol_offset, src, length, DPU_XFER_DEFAULT, JobKind::COPY);
  });
}

dpu_error_t dpu_copy_to_symbol(dpu_set_t dpu_set, dpu_symbol_t symbol, uint32_t symbol_offset,
                               const void* src, size_t length) {
  return guarded([&] {
    return broadcast(dpu_set, symbol, symbol_offset, src, length, DPU_XFER_DEFAULT, JobKind::COPY);
  });
}

dpu_error_t dpu_copy_from(dpu_set_t dpu_set, const char* symbol_name, uint32_t symbol_offset,
                          void* dst, size_t length) {
  return guarded([&] {
    const dpu_symbol_t symbol = find_symbol({&single_dpu(dpu_set)}, symbol_name);
    return fetch(dpu_set, symbol, symbol_offset, dst, length);
  });
}

dpu_error_t dpu_copy_from_symbol(dpu_set_t dpu_set, dpu_symbol_t symbol, uint32_t symbol_offset,
                                 void* dst, size_t length) {
  return guarded([&] { return fetch(dpu_set, symbol, symbol_offset, dst, length); });
}

dpu_error_t dpu_prepare_xfer(dpu_set_t dpu_set, void* buffer) {
  return guarded([&] {
    for (dpu_t* dpu : dpus_of(dpu_set)) dpu->buffer = buffer;
    return DPU_OK;
  });
}

dpu_error_t dpu_push_xfer(dpu_set_t dpu_set, dpu_xfer_t xfer, const char* symbol_name,
                          uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags) {
  return guarded([&] {
    const dpu_symbol_t symbol = find_symbol(dpus_of(dpu_set), symbol_name);
    return push(dpu_set, xfer, symbol, symbol_offset, length, flags);
  });
}

dpu_error_t dpu_push_xfer_symbol(dpu_set_t dpu_set, dpu_xfer_t xfer, dpu_symbol_t symbol,
                                 uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags) {
  return guarded([&] { return push(dpu_set, xfer, symbol, symbol_offset, length, flags); });
}

dpu_error_t dpu_broadcast_to(dpu_set_t dpu_set, const char* symbol_name, uint32_t symbol_offset,
                             const void* src, size_t length, dpu_xfer_flags_t flags) {
  return guarded([&] {
    const dpu_symbol_t symbol = find_symbol(dpus_of(dpu_set), symbol_name);
    return broadcast(dpu_set, symbol, symbol_offset, src, length, flags, JobKind::BROADCAST);
  });
}

dpu_error_t dpu_broadcast_to_symbol(dpu_set_t dpu_set, dpu_symbol_t symbol, uint32_t symbol_offset,
                                    const void* src, size_t length, dpu_xfer_flags_t flags) {
  return guarded([&] {
    return broadcast(dpu_set, symbol, symbol_offset, src, length, flags, JobKind::BROADCAST);
  });
}

}  // extern "C"
