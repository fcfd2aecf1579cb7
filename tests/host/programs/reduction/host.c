#include <dpu.h>

#define ELEMENTS 5000

static uint64_t numbers[NR_DPUS][ELEMENTS];

int main(void) {
    struct dpu_set_t set, dpu;
    uint64_t expected = 0, sum = 0;
    uint32_t count = ELEMENTS, i;
    dpu_error_t status;

    for (uint32_t d = 0; d < NR_DPUS; d++)
        for (uint32_t k = 0; k < ELEMENTS; k++)
            expected += numbers[d][k] = (uint64_t)(d + 1) * k * 1000003u;

    DPU_CHECK(dpu_alloc(NR_DPUS, "backend=simulator", &set), return 2);
    DPU_CHECK(dpu_load(set, DPU_BINARY, NULL), goto failed);
    DPU_CHECK(dpu_copy_to(set, "nr_elements", 0, &count, sizeof count), goto failed);
    DPU_FOREACH(set, dpu, i) {
        DPU_CHECK(dpu_copy_to(dpu, "input", 0, numbers[i], sizeof numbers[i]), goto failed);
    }
    /* The second launch finds what the first has left. */
    for (int launch = 0; launch < 2; launch++) {
        DPU_CHECK(dpu_launch(set, DPU_SYNCHRONOUS), goto failed);
        sum = 0;
        DPU_FOREACH(set, dpu) {
            uint64_t one;
            uint32_t cycles;
            DPU_CHECK(dpu_copy_from(dpu, "result", 0, &one, sizeof one), goto failed);
            DPU_CHECK(dpu_copy_from(dpu, "cycles", 0, &cycles, sizeof cycles), goto failed);
            sum += one;
            if (cycles < ELEMENTS || cycles > 100 * ELEMENTS) goto failed;
        }
        if (sum != expected) goto failed;
    }
    status = dpu_free(set);
    printf("reduction: %lu\n", (unsigned long)sum);
    return status == DPU_OK ? 0 : 1;
failed:
    printf("reduction: FAILED %lu, not %lu\n", (unsigned long)sum, (unsigned long)expected);
    dpu_free(set);
    return 1;
}
