/* What host and DPUs agree on: blocks of a table of scores, with a row above and a column before. */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define DPU_BINARY "./bin/dpu_code"
#define BLOCK 16
#define WIDTH (BLOCK + 2) /* one more than needed: rows of 8 bytes */
#define GAP 10

struct block {
    int32_t score[BLOCK + 1][WIDTH];
    int32_t match[BLOCK][BLOCK];
};

#define MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
