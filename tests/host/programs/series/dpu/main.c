#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mram_unaligned.h>
#include <stdbool.h>

#include "ts.h"

__host ts_args args;
__host __dma_aligned int32_t query[QUERY];
__host ts_result best;
__mram_noinit int32_t series[SLICE + QUERY];

static ts_result found[NR_TASKLETS];
static __dma_aligned uint8_t buffers[NR_TASKLETS][QUERY * sizeof(int32_t) + 16];

int main(void) {
    const sysname_t id = me();
    ts_result mine = {UINT64_MAX, 0, id};
    for (uint32_t at = id + args.excluded; at + QUERY <= args.length; at += NR_TASKLETS) {
        const int32_t *window =
            mram_read_unaligned(&series[at], buffers[id], QUERY * sizeof(int32_t));
        const uint64_t distance = distance_of(window, query, QUERY, mine.distance);
        if (distance < mine.distance) {
            mine.distance = distance;
            mine.place = at;
        }
    }
    found[id] = mine;
    if (id != 0) {
        handshake_notify();
        return 0;
    }
    for (sysname_t other = 1; other < NR_TASKLETS; other++) {
        handshake_wait_for(other);
        const bool nearer = found[other].distance < mine.distance
                            || (found[other].distance == mine.distance
                                && found[other].place < mine.place);
        mine = nearer ? found[other] : mine;
    }
    best = mine;
    return 0;
}
