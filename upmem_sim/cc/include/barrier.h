/* Barriers: tasklets sleep until as many as the counter says have arrived (UPMEM SDK manual,
 * "Synchronization"). */
#ifndef UPMEM_BARRIER_H
#define UPMEM_BARRIER_H
#include <atomic_bit.h>
#include <stdint.h>
#include <upmem_queue.h>

typedef struct barrier_t {
    uint8_t wait_queue;    /* last tasklet in the queue, 0xFF if there is none */
    uint8_t count;         /* arrivals still to come */
    uint8_t initial_count;
    uint8_t lock;          /* low byte of the address of its atomic bit */
} barrier_t;

#define BARRIER_INIT(name, counter)                                         \
    _Static_assert((counter) >= -127 && (counter) <= 127,                   \
                   "barrier " #name ": the counter must lie in -127 to 127"); \
    ATOMIC_BIT_INIT(__CONCAT(barrier_, name));                              \
    __UPMEM_QUEUE_OBJECT(name, counter, __CONCAT(barrier_, name));          \
    extern barrier_t name

void barrier_wait(barrier_t *barrier);
#endif
