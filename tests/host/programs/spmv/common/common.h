/* What host and DPUs agree on: a matrix in rows of nonzeros. */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define DPU_BINARY "./bin/dpu_code"
#define ROUND_UP_8(n) (((n) + 7) / 8 * 8)

struct nonzero {
    uint32_t column;
    float value;
};

/* The first thing in the heap. The others are addresses as DPUs see them: the heap begins at 0. */
struct parameters {
    uint32_t rows;
    uint32_t first; /* nonzero of the whole matrix that this DPU's begin with */
    uint32_t starts, nonzeros, in, out;
};

#endif
