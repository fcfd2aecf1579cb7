#include <dpu.h>
#include <dpu_log.h>

#include "selection.h"

#define NR_DPUS 2

int main(void) {
    struct dpu_set_t set, dpu;
    static int64_t input[CAPACITY], output[CAPACITY];
    uint32_t i, wrong = 0;

    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load(set, "task", NULL));
    DPU_FOREACH(set, dpu, i) {
        uint32_t count = 1000 + 777 * i;
        for (uint32_t k = 0; k < count; k++) input[k] = (int64_t)k * k * (i + 1) + k / 3;
        DPU_ASSERT(dpu_copy_to(dpu, "input", 0, input, sizeof input));
        DPU_ASSERT(dpu_copy_to(dpu, "nr_input", 0, &count, sizeof count));
    }
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu, i) {
        uint32_t count = 1000 + 777 * i, kept, expected = 0;
        DPU_ASSERT(dpu_copy_from(dpu, "nr_output", 0, &kept, sizeof kept));
        DPU_ASSERT(dpu_copy_from(dpu, "output", 0, output, kept * sizeof output[0]));
        for (uint32_t k = 0; k < count; k++) {
            int64_t number = (int64_t)k * k * (i + 1) + k / 3;
            if (number % 3 != 0) wrong += output[expected++] != number;
        }
        wrong += kept != expected;
        DPU_ASSERT(dpu_log_read(dpu, stdout));
    }
    DPU_ASSERT(dpu_free(set));
    printf("selection: %u wrong\n", wrong);
    return wrong != 0;
}
