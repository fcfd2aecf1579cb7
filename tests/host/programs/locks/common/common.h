/* What host and DPUs agree on. */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define DPU_BINARY "./bin/dpu_code"
#define BLOCK 1024 /* bytes */
#define VALUES 4096
#define TABLES 2
#define BINS 512

struct arguments {
    uint32_t bytes;
    uint32_t room; /* bytes before the result */
};

#endif
