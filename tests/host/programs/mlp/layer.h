#ifndef LAYER_H
#define LAYER_H

#include <stdint.h>

#define MAX_NEURONS 64
#define SHIFT 4

/* max(0, sum of weights x inputs >> SHIFT) */
int32_t neuron(const int32_t *weights, const int32_t *inputs, uint32_t count);

#endif
