/* What host and DPUs agree on. */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define FEATURES 8
#define CENTRES 5
#define TASK 16 /* points that a tasklet takes at a time */
#define MOST 1024 /* points of a DPU, at most */

struct parameters {
    uint32_t points, padded;
};

#endif
