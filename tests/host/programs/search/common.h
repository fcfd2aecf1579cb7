/* Sorted keys on every DPU; each looks for its own part of the queries. */
#pragma once
#include <stdint.h>

#ifdef UINT64
typedef int64_t key;
#else
typedef int32_t key;
#endif

#define BLOCK_SIZE (1 << BL)

enum kernels { SEARCH, nr_kernels };

typedef struct {
    uint64_t input_size;
    uint64_t slice_per_dpu;
    enum kernels kernel;
} dpu_arguments_t;

typedef struct {
    key found;
} dpu_results_t;
