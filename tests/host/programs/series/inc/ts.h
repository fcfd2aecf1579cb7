/* A time series is cut among DPUs with overlap; each finds the place nearest to a query. */
#ifndef TS_H
#define TS_H

#include <stdint.h>

enum { QUERY = 64, SLICE = 1024 };

typedef struct {
    uint32_t length;
    uint32_t excluded; /* no match within this distance of the beginning */
} ts_args;

typedef struct {
    uint64_t distance;
    uint32_t place;
    uint32_t tasklet;
} ts_result;

uint64_t distance_of(const int32_t *a, const int32_t *b, uint32_t n, uint64_t limit);

#endif
