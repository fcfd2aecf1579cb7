/* A sparse matrix times a vector; rows dealt to DPUs, each fed by copies of its own sizes. */
#include <assert.h>
#include <dpu.h>
#include <dpu_log.h>
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "common.h"

struct heap {
    uint32_t used;
};

static uint32_t take(struct heap *heap, uint32_t bytes) {
    const uint32_t place = heap->used;
    heap->used += ROUND_UP_8(bytes);
    return place;
}

static void copy_to(struct dpu_set_t dpu, uint32_t place, const void *data, uint32_t bytes) {
    DPU_ASSERT(dpu_copy_to(dpu, DPU_MRAM_HEAP_POINTER_NAME, place, data, ROUND_UP_8(bytes)));
}

int main(int argc, char **argv) {
    uint32_t rows = 1001, dpus, i, wrong = 0;
    for (int option; (option = getopt(argc, argv, "n:")) != -1;)
        if (option == 'n') rows = (uint32_t)atoi(optarg);

    struct dpu_set_t set, dpu;
    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(set, &dpus));

    uint32_t *starts = calloc(rows + 3, sizeof *starts);
    for (i = 0; i < rows; i++) starts[i + 1] = starts[i] + i % 7;
    struct nonzero *a = calloc(starts[rows] + 1, sizeof *a);
    for (i = 0; i < starts[rows]; i++)
        a[i] = (struct nonzero){i * 37 % rows, (float)(i % 11) / 4};
    float *x = calloc(rows + 2, sizeof *x), *y = calloc(rows + 2 * NR_DPUS + 2, sizeof *y);
    for (i = 0; i < rows; i++) x[i] = (float)(i % 13) - 3;

    const uint32_t share = (rows / dpus + 2) / 2 * 2;
    struct parameters all[dpus];
    DPU_FOREACH(set, dpu, i) {
        struct heap heap = {0};
        struct parameters *p = &all[i];
        const uint32_t place = take(&heap, sizeof *p), first = i * share;
        memset(p, 0, sizeof *p);
        if (first < rows) {
            p->rows = rows - first < share ? rows - first : share;
            p->first = starts[first];
            const uint32_t count = starts[first + p->rows] - p->first;
            p->starts = take(&heap, (p->rows + 1) * sizeof *starts);
            p->nonzeros = take(&heap, count * sizeof *a);
            p->in = take(&heap, rows * sizeof *x);
            p->out = take(&heap, p->rows * sizeof *y);
            copy_to(dpu, p->starts, &starts[first], (p->rows + 1) * sizeof *starts);
            if (count) copy_to(dpu, p->nonzeros, &a[p->first], count * sizeof *a);
            copy_to(dpu, p->in, x, rows * sizeof *x);
        }
        copy_to(dpu, place, p, sizeof *p);
    }
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu, i) {
        if (all[i].rows)
            DPU_ASSERT(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, all[i].out, &y[i * share],
                                     ROUND_UP_8(all[i].rows * sizeof *y)));
    }
    for (i = 0; i < rows; i++) {
        float sum = 0;
        for (uint32_t k = starts[i]; k < starts[i + 1]; k++) sum += a[k].value * x[a[k].column];
        wrong += !(sum - y[i] < 1e-3f && y[i] - sum < 1e-3f);
    }
    printf("spmv: %u wrong of %u\n", wrong, rows);
    return wrong != 0;
}
