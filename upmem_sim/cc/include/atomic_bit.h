/* Hardware lock bits (UPMEM SDK manual, "Synchronization"). The address of the variable stands for
 * the number of the bit; it is no memory. */
#ifndef UPMEM_ATOMIC_BIT_H
#define UPMEM_ATOMIC_BIT_H
#include <attributes.h>
#include <macro_utils.h>
#include <stdint.h>

extern uint8_t __atomic_start_addr[];

#define __ATOMIC_BIT_NAME(name) __CONCAT(__atomic_bit_, name)
#define ATOMIC_BIT_GET(name) __ATOMIC_BIT_NAME(name)
#define ATOMIC_BIT_INDEX(name) ((unsigned int)(&ATOMIC_BIT_GET(name) - __atomic_start_addr))
#define ATOMIC_BIT_INIT(name) uint8_t __atomic_bit ATOMIC_BIT_GET(name)
#define ATOMIC_BIT_EXTERN(name) extern ATOMIC_BIT_INIT(name)

/* One register holds the number from the acquire to the release, as in the vendor's code: a constant
 * would be made anew before each. */
static inline __attribute__((always_inline, unused)) const uint8_t *__upmem_bit(const uint8_t *bit) {
    __asm__("" : "+r"(bit));
    return bit;
}
static inline __attribute__((always_inline, unused)) void __upmem_acquire(const uint8_t *bit) {
    __asm__ volatile("acquire %0, 0, nz, ." : : "r"(__upmem_bit(bit)) : "memory");
}
static inline __attribute__((always_inline, unused)) void __upmem_release(const uint8_t *bit) {
    __asm__ volatile("release %0, 0, nz, .+1" : : "r"(__upmem_bit(bit)) : "memory");
}
#define ATOMIC_BIT_ACQUIRE(name) __upmem_acquire(&ATOMIC_BIT_GET(name))
#define ATOMIC_BIT_RELEASE(name) __upmem_release(&ATOMIC_BIT_GET(name))
#endif
