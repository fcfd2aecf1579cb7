#include <dpu.h>

#include "layer.h"

#define NR_DPUS 4
#define LAYERS 3
#define PER_DPU(neurons) ((neurons) / NR_DPUS)

struct layer {
    uint32_t weights, inputs, neurons, pad;
};

static const uint32_t sizes[LAYERS + 1] = {48, 64, 32, 16};
static int32_t weights[LAYERS][MAX_NEURONS * MAX_NEURONS];

static void on_host(const int32_t *first, int32_t *out) {
    int32_t now[MAX_NEURONS], next[MAX_NEURONS];
    for (uint32_t k = 0; k < sizes[0]; k++) now[k] = first[k];
    for (uint32_t l = 0; l < LAYERS; l++) {
        for (uint32_t k = 0; k < sizes[l + 1]; k++)
            next[k] = neuron(&weights[l][k * sizes[l]], now, sizes[l]);
        for (uint32_t k = 0; k < sizes[l + 1]; k++) now[k] = next[k];
    }
    for (uint32_t k = 0; k < sizes[LAYERS]; k++) out[k] = now[k];
}

static uint32_t load_weights(struct dpu_set_t set, struct layer *layers) {
    struct dpu_set_t dpu;
    uint32_t i, at = 0;
    for (uint32_t l = 0; l < LAYERS; l++) {
        uint32_t neurons = PER_DPU(sizes[l + 1]), count = neurons * sizes[l];
        layers[l] = (struct layer){at, sizes[l], neurons, 0};
        DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, &weights[l][i * count]));
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "all_weights", at * 4, count * 4,
                                 DPU_XFER_DEFAULT));
        at += count;
    }
    return at;
}

int main(void) {
    struct dpu_set_t set, dpu;
    struct layer layers[LAYERS];
    uint32_t i, wrong = 0;
    for (uint32_t l = 0; l < LAYERS; l++)
        for (uint32_t k = 0; k < MAX_NEURONS * MAX_NEURONS; k++)
            weights[l][k] = (int32_t)(k * 31 + l * 7) % 19 - 8;

    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load(set, "build/layer", NULL));
    load_weights(set, layers);
    for (int sample = 0; sample < 3; sample++) {
        int32_t values[MAX_NEURONS], first[MAX_NEURONS], expected[MAX_NEURONS];
        for (uint32_t k = 0; k < sizes[0]; k++)
            values[k] = first[k] = (int32_t)(k * (sample + 3)) % 11;
        for (uint32_t l = 0; l < LAYERS; l++) {
            DPU_ASSERT(dpu_broadcast_to(set, "layer", 0, &layers[l], sizeof layers[l],
                                        DPU_XFER_DEFAULT));
            DPU_ASSERT(dpu_broadcast_to(set, "inputs", 0, values, sizes[l] * 4, DPU_XFER_DEFAULT));
            DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
            DPU_FOREACH(set, dpu, i)
                DPU_ASSERT(dpu_prepare_xfer(dpu, &values[i * layers[l].neurons]));
            DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "outputs", 0, layers[l].neurons * 4,
                                     DPU_XFER_DEFAULT));
        }
        on_host(first, expected);
        for (uint32_t k = 0; k < sizes[LAYERS]; k++) wrong += values[k] != expected[k];
        if (sample) wrong += expected[0] == 0 && expected[1] == 0 && expected[2] == 0;
    }
    DPU_ASSERT(dpu_free(set));
    printf("mlp: %u wrong\n", wrong);
    return wrong != 0;
}
