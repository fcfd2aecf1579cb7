extern "C" {
#include <dpu.h>
#include <dpu_log.h>
}

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

constexpr uint32_t kPixels = 4000, kBins = 256, kDpus = 4;

int main() {
  std::vector<std::vector<uint16_t>> pixels(kDpus, std::vector<uint16_t>(kPixels));
  std::vector<std::array<uint32_t, kBins>> bins(kDpus);
  uint32_t seed = 1, wrong = 0;
  for (auto &image : pixels)
    for (uint16_t &pixel : image) pixel = static_cast<uint16_t>((seed = seed * 1664525 + 1013904223) >> 20);

  dpu_set_t set, dpu;
  uint32_t i, nr_pixels = kPixels;
  dpu_program_t *program;
  dpu_symbol_t histogram, input;
  DPU_ASSERT(dpu_alloc(kDpus, nullptr, &set));
  DPU_ASSERT(dpu_load(set, "bin/task", &program));
  DPU_ASSERT(dpu_get_symbol(program, "histogram", &histogram));
  DPU_ASSERT(dpu_get_symbol(program, "pixels", &input));
  DPU_ASSERT(dpu_broadcast_to(set, "nr_pixels", 0, &nr_pixels, sizeof nr_pixels, DPU_XFER_DEFAULT));
  DPU_FOREACH (set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, pixels[i].data()));
  DPU_ASSERT(dpu_push_xfer_symbol(set, DPU_XFER_TO_DPU, input, 0, kPixels * 2, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH (set, dpu, i) {
    uint32_t largest;
    DPU_ASSERT(dpu_copy_from_symbol(dpu, histogram, 0, bins[i].data(), sizeof bins[i]));
    DPU_ASSERT(dpu_copy_from(dpu, "largest", 0, &largest, sizeof largest));
    wrong += largest != *std::max_element(pixels[i].begin(), pixels[i].end());
    std::array<uint32_t, kBins> expected{};
    for (uint16_t pixel : pixels[i]) ++expected[pixel >> 4];
    wrong += expected != bins[i];
  }
  DPU_ASSERT(dpu_free(set));
  std::printf("histogram: %u wrong\n", wrong);
  return wrong != 0;
}
