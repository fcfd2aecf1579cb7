#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define BLOCK_BYTES 512
#define BLOCK (BLOCK_BYTES / (uint32_t)sizeof(int32_t))

typedef struct {
    uint32_t elements;  /* of this DPU */
    uint32_t capacity;  /* bytes of one operand in MRAM */
} dpu_arguments_t;

#endif
