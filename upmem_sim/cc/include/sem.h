/* Counting semaphores (UPMEM SDK manual, "Synchronization"). */
#ifndef UPMEM_SEM_H
#define UPMEM_SEM_H
#include <atomic_bit.h>
#include <stdint.h>
#include <upmem_queue.h>

typedef struct sem_t {
    uint8_t wait_queue;
    uint8_t count; /* negative (8-bit signed): that many tasklets wait */
    uint8_t initial_count;
    uint8_t lock;
} sem_t;

#define SEMAPHORE_INIT(name, counter)                                           \
    _Static_assert((counter) >= -127 && (counter) <= 127,                       \
                   "semaphore " #name ": the counter must lie in -127 to 127"); \
    ATOMIC_BIT_INIT(__CONCAT(semaphore_, name));                                \
    __UPMEM_QUEUE_OBJECT(name, counter, __CONCAT(semaphore_, name));            \
    extern sem_t name

void sem_take(sem_t *sem);
void sem_give(sem_t *sem);
#endif
