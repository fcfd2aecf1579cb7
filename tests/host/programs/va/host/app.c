#include <assert.h>
#include <dpu.h>
#include <dpu_log.h>
#include <string.h>

#include "../common.h"

#ifndef DPU_BINARY
#define DPU_BINARY "./bin/dpu_code"
#endif

int main(int argc, char **argv) {
    uint32_t total = argc > 1 ? (uint32_t)atoi(argv[1]) : 10007;
    struct dpu_set_t dpu_set, dpu;
    uint32_t nr_of_dpus, i = 0;

    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &dpu_set));
    DPU_ASSERT(dpu_load(dpu_set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(dpu_set, &nr_of_dpus));
    assert(nr_of_dpus == NR_DPUS);

    /* Equal pieces of an even number of elements: transfers have one length, a multiple of 8. */
    uint32_t piece = (total + nr_of_dpus - 1) / nr_of_dpus;
    piece = (piece + 1) & ~1u;
    size_t bytes = piece * sizeof(int32_t);
    int32_t *a = calloc(nr_of_dpus, bytes), *b = calloc(nr_of_dpus, bytes);
    int32_t *c = calloc(nr_of_dpus, bytes);
    dpu_arguments_t *arguments = calloc(nr_of_dpus, sizeof *arguments);
    for (uint32_t k = 0; k < total; k++) {
        a[k] = (int32_t)(k * 2654435761u);
        b[k] = (int32_t)(k ^ 0x55aa55aau);
    }

    DPU_FOREACH(dpu_set, dpu, i) {
        uint32_t first = i * piece;
        uint32_t mine = first >= total ? 0 : total - first < piece ? total - first : piece;
        arguments[i] = (dpu_arguments_t){mine, (uint32_t)bytes};
        DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[i]));
    }
    DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0,
                             sizeof arguments[0], DPU_XFER_DEFAULT));
    DPU_FOREACH(dpu_set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, a + i * piece));
    DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, bytes,
                             DPU_XFER_DEFAULT));
    DPU_FOREACH(dpu_set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, b + i * piece));
    DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                             (uint32_t)bytes, bytes, DPU_XFER_DEFAULT));

    DPU_ASSERT(dpu_launch(dpu_set, DPU_SYNCHRONOUS));

    DPU_FOREACH(dpu_set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, c + i * piece));
    DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                             (uint32_t)bytes, bytes, DPU_XFER_DEFAULT));

    uint32_t wrong = 0;
    for (uint32_t k = 0; k < total; k++) wrong += c[k] != (int32_t)((uint32_t)a[k] + (uint32_t)b[k]);
    printf(wrong ? "va: %u wrong\n" : "va: Outputs are equal\n", wrong);
    free(a);
    free(b);
    free(c);
    free(arguments);
    DPU_ASSERT(dpu_free(dpu_set));
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
