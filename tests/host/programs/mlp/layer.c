/* One layer: this DPU's neurons. Weights of all layers stay in MRAM. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>

#include "layer.h"

struct layer {
    uint32_t weights; /* index of the first in `all_weights` */
    uint32_t inputs;
    uint32_t neurons;
    uint32_t pad;
};

__host struct layer layer;
__host int32_t inputs[MAX_NEURONS];
__host int32_t outputs[MAX_NEURONS];
__mram_noinit int32_t all_weights[4 * MAX_NEURONS * MAX_NEURONS];

BARRIER_INIT(begin, NR_TASKLETS);

int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&begin);
    uint32_t bytes = layer.inputs * sizeof(int32_t);
    int32_t *weights = mem_alloc(bytes);
    for (uint32_t k = me(); k < layer.neurons; k += NR_TASKLETS) {
        mram_read(&all_weights[layer.weights + k * layer.inputs], weights, bytes);
        outputs[k] = neuron(weights, inputs, layer.inputs);
    }
    return 0;
}
