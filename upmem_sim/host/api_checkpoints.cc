// dpu_checkpoint.h.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "board.h"
#include "include/dpu/dpu.h"

using namespace upmem::host;

namespace {

constexpr size_t kPage = 4096;
constexpr std::string_view kMagic = "upmem_sim context 1\n";

// Memories as their pages that aren't zero, each behind its number.
struct Saved {
  uint32_t flags = 0;
  std::string program;  // the bytes of its file
  std::string atomic, wram, mram;
};

Saved& saved_in(const dpu_context_t* context) {
  if (!context->saved) throw Failure{DPU_ERR_INVALID_BUFFER_SIZE, ""};
  return *static_cast<Saved*>(context->saved);
}

std::string pages_of(const uint8_t* memory, size_t bytes) {
  static const uint8_t zeros[kPage]{};
  std::string out;
  for (uint32_t page = 0; page * kPage < bytes; ++page) {
    const uint8_t* first = memory + page * kPage;
    if (!std::memcmp(first, zeros, kPage)) continue;
    out.append(reinterpret_cast<const char*>(&page), sizeof page);
    out.append(reinterpret_cast<const char*>(first), kPage);
  }
  return out;
}

void put_pages(const std::string& pages, uint8_t* memory, size_t bytes) {
  size_t at = 0;
  for (uint32_t page = 0; page * kPage < bytes; ++page) {
    uint32_t next = ~0u;
    if (at < pages.size()) std::memcpy(&next, &pages[at], sizeof next);
    uint8_t* first = memory + page * kPage;
    if (next == page) {
      std::memcpy(first, &pages[at + sizeof next], kPage);
      at += sizeof next + kPage;
    } else if (std::any_of(first, first + kPage, [](uint8_t byte) { return byte != 0; })) {
      std::memset(first, 0, kPage);
    }
  }
}

Saved save(const dpu_t& dpu, uint32_t flags) {
  const upmem::Machine& m = *dpu.machine;
  Saved out;
  out.flags = flags;
  if (flags & DPU_CHECKPOINT_IRAM) {
    if (!dpu.program) throw Failure{DPU_ERR_NO_PROGRAM_LOADED, ""};
    if (dpu.program->code != m.code)
      throw Failure{DPU_ERR_INTERNAL, "a DPU that loaded instructions itself can't be saved"};
    out.program = dpu.program->file;
  }
  if (flags & DPU_CHECKPOINT_INTERNAL) out.atomic.assign(m.atomic.begin(), m.atomic.end());
  if (flags & DPU_CHECKPOINT_WRAM) out.wram = pages_of(m.wram, m.params.wram_bytes);
  if (flags & DPU_CHECKPOINT_MRAM) out.mram = pages_of(m.mram, m.params.mram_bytes);
  return out;
}

void restore(dpu_t& dpu, uint32_t flags, const Saved& saved) {
  upmem::Machine& m = *dpu.machine;
  if (flags & ~saved.flags) throw Failure{DPU_ERR_INVALID_BUFFER_SIZE, ""};
  if (flags & DPU_CHECKPOINT_IRAM) {
    put_program(dpu, program_of(*dpu.rank->owner, saved.program, "saved program"));
    dpu.fault.clear();
  }
  if (flags & DPU_CHECKPOINT_INTERNAL)
    std::copy(saved.atomic.begin(), saved.atomic.end(), m.atomic.begin());
  if (flags & DPU_CHECKPOINT_WRAM) put_pages(saved.wram, m.wram, m.params.wram_bytes);
  if (flags & DPU_CHECKPOINT_MRAM) put_pages(saved.mram, m.mram, m.params.mram_bytes);
}

std::string text_of(const Saved& saved) {
  std::string out(kMagic);
  out.append(reinterpret_cast<const char*>(&saved.flags), sizeof saved.flags);
  for (const std::string* part : {&saved.program, &saved.atomic, &saved.wram, &saved.mram}) {
    const uint64_t bytes = part->size();
    out.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    out += *part;
  }
  return out;
}

// Takes so many bytes off the front.
std::string_view take(std::string_view& text, uint64_t bytes) {
  if (bytes > text.size()) throw Failure{DPU_ERR_INVALID_BUFFER_SIZE, ""};
  const std::string_view out = text.substr(0, bytes);
  text.remove_prefix(bytes);
  return out;
}

bool are_pages(const std::string& pages, size_t bytes) {
  if (pages.size() % (sizeof(uint32_t) + kPage)) return false;
  int64_t before = -1;
  for (size_t at = 0; at < pages.size(); at += sizeof(uint32_t) + kPage) {
    uint32_t page;
    std::memcpy(&page, &pages[at], sizeof page);
    if (page <= before || page * kPage >= bytes) return false;
    before = page;
  }
  return true;
}

Saved read(std::string_view text) {
  Saved out;
  if (take(text, kMagic.size()) != kMagic) throw Failure{DPU_ERR_INVALID_BUFFER_SIZE, ""};
  std::memcpy(&out.flags, take(text, sizeof out.flags).data(), sizeof out.flags);
  for (std::string* part : {&out.program, &out.atomic, &out.wram, &out.mram}) {
    uint64_t bytes;
    std::memcpy(&bytes, take(text, sizeof bytes).data(), sizeof bytes);
    *part = take(text, bytes);
  }
  const upmem::Params chip = chip_params();
  if (out.atomic.size() > upmem::kAtomicBits || !are_pages(out.wram, chip.wram_bytes) ||
      !are_pages(out.mram, chip.mram_bytes) || !text.empty())
    throw Failure{DPU_ERR_INVALID_BUFFER_SIZE, ""};
  return out;
}

void keep(Saved saved, dpu_context_t* context) {
  context->info = static_cast<dpu_checkpoint_flags_t>(saved.flags);
  context->saved = new Saved(std::move(saved));
}

}  // namespace

extern "C" {

dpu_error_t dpu_checkpoint_save(dpu_set_t set, dpu_checkpoint_flags_t flags,
                                dpu_context_t* context) {
  return guarded([&] {
    const dpu_t& dpu = single_dpu(set);
    const Turn turn({dpu.rank});
    keep(save(dpu, flags & DPU_CHECKPOINT_ALL), context);
    return DPU_OK;
  });
}

dpu_error_t dpu_checkpoint_restore(dpu_set_t set, dpu_checkpoint_flags_t flags,
                                   dpu_context_t* context) {
  return guarded([&] {
    dpu_t& dpu = single_dpu(set);
    const Turn turn({dpu.rank});
    restore(dpu, flags & DPU_CHECKPOINT_ALL, saved_in(context));
    return DPU_OK;
  });
}

size_t dpu_checkpoint_get_serialized_context_size(dpu_context_t* context) {
  return context->saved ? text_of(*static_cast<Saved*>(context->saved)).size() : 0;
}

dpu_error_t dpu_checkpoint_serialize(dpu_context_t* context, uint8_t** buffer, size_t* size) {
  return guarded([&] {
    const std::string text = text_of(saved_in(context));
    if (*buffer && *size < text.size()) return DPU_ERR_INVALID_BUFFER_SIZE;
    if (!*buffer) *buffer = static_cast<uint8_t*>(std::malloc(text.size()));
    if (!*buffer) return DPU_ERR_SYSTEM;
    std::memcpy(*buffer, text.data(), text.size());
    *size = text.size();
    return DPU_OK;
  });
}

dpu_error_t dpu_checkpoint_deserialize(uint8_t* buffer, size_t size, dpu_context_t* context) {
  return guarded([&] {
    keep(read({reinterpret_cast<const char*>(buffer), size}), context);
    return DPU_OK;
  });
}

dpu_error_t dpu_checkpoint_free(dpu_context_t* context) {
  delete static_cast<Saved*>(context->saved);
  context->saved = nullptr;
  context->info = DPU_CHECKPOINT_NONE;
  return DPU_OK;
}

}  // extern "C"
