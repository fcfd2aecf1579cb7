/* Virtual mutexes: one bit of WRAM each, guarded by a few hardware bits (UPMEM SDK manual,
 * "Synchronization"). */
#ifndef UPMEM_VMUTEX_H
#define UPMEM_VMUTEX_H
#include <atomic_bit.h>
#include <mutex.h>
#include <stdint.h>

struct vmutex {
    uint8_t *vm;
    uint8_t *hw_mutexes;
    uint8_t hw_mutexes_mask;
};

/* NB_VMUTEXES a multiple of 8, NB_MUTEXES a power of two. */
#define VMUTEX_INIT(NAME, NB_VMUTEXES, NB_MUTEXES)                                      \
    _Static_assert((NB_VMUTEXES) > 0 && (NB_VMUTEXES) % 8 == 0,                         \
                   "vmutex: a multiple of 8 only");                                     \
    _Static_assert((NB_MUTEXES) > 0 && ((NB_MUTEXES) & ((NB_MUTEXES) - 1)) == 0,        \
                   "vmutex: a power of two of hardware bits only");                     \
    uint8_t __CONCAT(__vmutex_, NAME)[(NB_VMUTEXES) / 8];                               \
    uint8_t __atomic_bit __CONCAT(__vmutex_bits_, NAME)[NB_MUTEXES];                    \
    struct vmutex NAME = {__CONCAT(__vmutex_, NAME), __CONCAT(__vmutex_bits_, NAME),    \
                          (NB_MUTEXES) - 1}

static inline __attribute__((unused)) void vmutex_lock(struct vmutex *mutex, uint16_t id) {
    uint16_t place = id >> 3;
    uint8_t bit = (uint8_t)(1 << (id & 7)), *byte = mutex->vm + place, held;
    uint8_t *guard = mutex->hw_mutexes + (place & mutex->hw_mutexes_mask);
    do {
        mutex_lock(guard);
        held = *byte & bit;
        *byte |= bit;
        mutex_unlock(guard);
    } while (held);
}
static inline __attribute__((unused)) void vmutex_unlock(struct vmutex *mutex, uint16_t id) {
    uint16_t place = id >> 3;
    uint8_t *guard = mutex->hw_mutexes + (place & mutex->hw_mutexes_mask);
    mutex_lock(guard);
    mutex->vm[place] &= (uint8_t)~(1 << (id & 7));
    mutex_unlock(guard);
}
#endif
