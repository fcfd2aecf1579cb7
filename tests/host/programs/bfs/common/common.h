/* What host and DPUs agree on: a graph in rows of edges, and sets of nodes as bits. */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define DPU_BINARY "./bin/dpu_code"
#define ROUND_UP_8(n) (((n) + 7) / 8 * 8)

/* Each DPU owns `count` nodes from `first` on. Places are offsets in the heap. */
struct dpu_params {
    uint32_t nodes;
    uint32_t first;
    uint32_t count;
    uint32_t level;
    uint32_t rows;     /* uint32_t[count + 1]: where each node's edges begin */
    uint32_t edges;    /* uint32_t[] */
    uint32_t frontier; /* uint64_t[(nodes + 63) / 64]: all nodes of this level */
    uint32_t next;     /* the same: those that this DPU reaches */
};

#endif
