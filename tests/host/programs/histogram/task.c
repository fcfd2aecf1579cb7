/* Bins of 12-bit pixels: a histogram in WRAM that the tasklets share under mutexes. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <mutex_pool.h>
#include <seqread.h>
#include <stdint.h>

#define BINS 256

__mram_noinit uint16_t pixels[1 << 15];
__host uint32_t nr_pixels;
__host uint32_t histogram[BINS];
__host uint32_t largest;

MUTEX_INIT(largest_lock);
MUTEX_POOL_INIT(bins_lock, 8);
BARRIER_INIT(cleared, NR_TASKLETS);

int main() {
    for (uint32_t bin = me(); bin < BINS; bin += NR_TASKLETS) histogram[bin] = 0;
    if (me() == 0) {
        mem_reset();
        largest = 0;
    }
    barrier_wait(&cleared);

    uint32_t share = ((nr_pixels + NR_TASKLETS - 1) / NR_TASKLETS + 3) & ~3u;
    uint32_t first = me() * share;
    uint32_t end = first + share < nr_pixels ? first + share : nr_pixels;
    uint32_t top = 0;
    seqreader_t reader;
    uint16_t *pixel = seqread_init(seqread_alloc(), &pixels[first], &reader);
    for (uint32_t i = first; i < end; i++) {
        uint32_t bin = *pixel >> 4;
        if (*pixel > top) top = *pixel;
        mutex_pool_lock(&bins_lock, bin);
        histogram[bin]++;
        mutex_pool_unlock(&bins_lock, bin);
        pixel = seqread_get(pixel, sizeof *pixel, &reader);
    }
    mutex_lock(largest_lock);
    if (top > largest) largest = top;
    mutex_unlock(largest_lock);
    return 0;
}
