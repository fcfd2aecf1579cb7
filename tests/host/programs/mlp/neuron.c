#include "layer.h"

int32_t neuron(const int32_t *weights, const int32_t *inputs, uint32_t count) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += weights[i] * inputs[i];
    sum >>= SHIFT;
    return sum > 0 ? sum : 0;
}
