#include <dpu.h>

#define NR_DPUS 3
#define ELEMENTS 1024

DPU_INCBIN(scan_program, "scan.bin");

struct arguments {
    uint32_t kernel;
    uint32_t elements;
    int64_t before;
};

static int64_t numbers[NR_DPUS][ELEMENTS], results[NR_DPUS][ELEMENTS];
static struct arguments arguments[NR_DPUS];

static void run(struct dpu_set_t set) {
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[i]));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "arguments", 0, sizeof arguments[0],
                             DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
}

int main(void) {
    struct dpu_set_t set, dpu;
    uint32_t i;
    int64_t totals[NR_DPUS], sum = 0;
    for (uint32_t k = 0; k < NR_DPUS * ELEMENTS; k++)
        numbers[0][k] = (int64_t)k * 0x10000001 - 77777;

    DPU_ASSERT(dpu_alloc_ranks(1, "", &set));
    DPU_ASSERT(dpu_free(set));
    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load_from_incbin(set, &scan_program, NULL));
    DPU_FOREACH(set, dpu, i) {
        arguments[i] = (struct arguments){0, ELEMENTS, 0};
        DPU_ASSERT(dpu_prepare_xfer(dpu, numbers[i]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "data", 0, sizeof numbers[0],
                             DPU_XFER_DEFAULT));
    run(set);
    DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, &totals[i]));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "total", 0, sizeof(int64_t),
                             DPU_XFER_DEFAULT));
    for (i = 0; i < NR_DPUS; i++) {
        arguments[i] = (struct arguments){1, ELEMENTS, sum};
        sum += totals[i];
    }
    run(set);
    DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, results[i]));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "data", 0, sizeof results[0],
                             DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_free(set));

    uint32_t wrong = 0;
    int64_t expected = 0;
    for (uint32_t k = 0; k < NR_DPUS * ELEMENTS; k++) {
        expected += numbers[k / ELEMENTS][k % ELEMENTS];
        wrong += results[k / ELEMENTS][k % ELEMENTS] != expected;
    }
    printf("scan: %u wrong of %d\n", wrong, NR_DPUS * ELEMENTS);
    return wrong != 0;
}
