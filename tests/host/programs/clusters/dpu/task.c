/* One step of k-means: the nearest centre of each point, and sums for the next centres. */
#include <alloc.h>
#include <assert.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdbool.h>
#include <string.h>

#include "common.h"

__host struct parameters parameters;
__host int16_t centres[CENTRES][FEATURES];
__host uint32_t sizes[CENTRES + 1];
__mram_noinit int64_t sums_mram[CENTRES][FEATURES];
__mram_noinit int16_t points[MOST][FEATURES];
__mram_noinit uint8_t nearest[MOST];
__dma_aligned int64_t sums[CENTRES][FEATURES];
static uint32_t next_task;
MUTEX_INIT(tasks);
MUTEX_INIT(adding);
BARRIER_INIT(everybody, NR_TASKLETS);

static bool take(uint32_t *first) {
    mutex_lock(tasks);
    *first = next_task;
    next_task += TASK;
    mutex_unlock(tasks);
    return *first < parameters.padded;
}

static uint8_t centre_of(const int16_t *point) {
    uint32_t least = UINT32_MAX;
    uint8_t best = 0;
    for (uint8_t c = 0; c < CENTRES; c++) {
        uint32_t distance = 0;
        for (int f = 0; f < FEATURES; f++) {
            const int32_t apart = point[f] - centres[c][f];
            distance += apart * apart;
        }
        if (distance < least) {
            least = distance;
            best = c;
        }
    }
    return best;
}

int main() {
    if (me() == 0) {
        next_task = 0;
        memset(sizes, 0, sizeof sizes);
        memset(sums, 0, sizeof sums);
        mem_reset();
    }
    barrier_wait(&everybody);
    int16_t(*some)[FEATURES] = mem_alloc(TASK * sizeof *some);
    uint8_t *found = mem_alloc(TASK);
    assert(parameters.padded <= MOST);
    for (uint32_t first; take(&first);) {
        mram_read(&points[first], some, TASK * sizeof *some);
        for (uint32_t i = 0; i < TASK; i++) {
            found[i] = centre_of(some[i]);
            if (first + i >= parameters.points) continue;
            mutex_lock(adding);
            sizes[found[i]]++;
            for (int f = 0; f < FEATURES; f++) sums[found[i]][f] += some[i][f];
            mutex_unlock(adding);
        }
        mram_write(found, &nearest[first], TASK);
    }
    barrier_wait(&everybody);
    if (me() == 0) mram_write(sums, sums_mram, sizeof sums);
    return 0;
}
