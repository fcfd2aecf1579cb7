/* Mutual exclusion by a hardware bit; waiting tasklets spin (UPMEM SDK manual,
 * "Synchronization"). */
#ifndef UPMEM_MUTEX_H
#define UPMEM_MUTEX_H
#include <atomic_bit.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t *mutex_id_t;

#define MUTEX_GET(name) name
#define MUTEX_INIT(name)                     \
    ATOMIC_BIT_INIT(__CONCAT(mutex_, name)); \
    const mutex_id_t MUTEX_GET(name) = &ATOMIC_BIT_GET(__CONCAT(mutex_, name))

static inline __attribute__((always_inline, unused)) void mutex_lock(mutex_id_t mutex) {
    __upmem_acquire(mutex);
}
static inline __attribute__((always_inline, unused)) bool mutex_trylock(mutex_id_t mutex) {
    unsigned int failed;
    __asm__ volatile("move %0, 0\n\tacquire %1, 0, z, .+2\n\tmove %0, 1"
                     : "=&r"(failed)
                     : "r"(mutex)
                     : "memory");
    return failed == 0;
}
static inline __attribute__((always_inline, unused)) void mutex_unlock(mutex_id_t mutex) {
    __upmem_release(mutex);
}
#endif
