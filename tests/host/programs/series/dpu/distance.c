#include "ts.h"

uint64_t distance_of(const int32_t *a, const int32_t *b, uint32_t n, uint64_t limit) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n && sum < limit; i++) {
        const int64_t difference = (int64_t)a[i] - b[i];
        sum += (uint64_t)(difference * difference);
    }
    return sum;
}
