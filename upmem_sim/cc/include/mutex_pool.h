/* Many locks on a few hardware bits (UPMEM SDK manual, "Synchronization"). */
#ifndef UPMEM_MUTEX_POOL_H
#define UPMEM_MUTEX_POOL_H
#include <atomic_bit.h>
#include <mutex.h>
#include <stdint.h>

struct mutex_pool {
    uint8_t *hw_mutexes;
    uint8_t hw_mutexes_mask;
};

/* N hardware bits, a power of two. */
#define MUTEX_POOL_INIT(NAME, N)                                                      \
    _Static_assert((N) > 0 && ((N) & ((N) - 1)) == 0, "mutex pool: power of two only"); \
    uint8_t __atomic_bit __CONCAT(__mutex_pool_, NAME)[N];                            \
    struct mutex_pool NAME = {__CONCAT(__mutex_pool_, NAME), (N) - 1}

static inline __attribute__((unused)) void mutex_pool_lock(struct mutex_pool *pool, uint16_t id) {
    mutex_lock(pool->hw_mutexes + (id & pool->hw_mutexes_mask));
}
static inline __attribute__((unused)) void mutex_pool_unlock(struct mutex_pool *pool,
                                                             uint16_t id) {
    mutex_unlock(pool->hw_mutexes + (id & pool->hw_mutexes_mask));
}
#endif
