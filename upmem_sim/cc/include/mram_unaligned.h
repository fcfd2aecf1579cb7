/* MRAM access at any address (UPMEM SDK manual, "MRAM access"). */
#ifndef UPMEM_MRAM_UNALIGNED_H
#define UPMEM_MRAM_UNALIGNED_H
#include <attributes.h>
#include <mram.h>
#include <stdint.h>

#define __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK 11

/* Reads the 8-aligned span around `from` .. `from + n` into `buffer` (8-aligned, n + 16 bytes are
 * enough, span at most 2048); where the first wanted byte lies in it. */
static inline __attribute__((unused)) void *mram_read_unaligned(const __mram_ptr void *from,
                                                                void *buffer, unsigned int n) {
    uintptr_t start = (uintptr_t)from & ~7u, end = ((uintptr_t)from + n + 7) & ~7u;
    mram_read((const __mram_ptr void *)start, buffer, end - start);
    return (unsigned char *)buffer + ((uintptr_t)from & 7);
}

/* Writes n bytes; both addresses must agree modulo 8 (fault 8). Ends of less than 8 bytes are
 * changed under a lock of their own, so other tasklets may write their neighbours. */
void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned int n);

/* Locks the 8 bytes around an address and reads them; a pointer to the byte in WRAM. */
void *__mram_unaligned_begin(const __mram_ptr void *address);
/* Writes them back and unlocks. */
void __mram_unaligned_end(const __mram_ptr void *address);

#define mram_write_int_atomic(dest, value)                                  \
    do {                                                                    \
        __mram_ptr void *__dest = (__mram_ptr void *)(dest);                \
        *(int *)__mram_unaligned_begin(__dest) = (value);                   \
        __mram_unaligned_end(__dest);                                       \
    } while (0)
#define mram_write_byte_atomic(dest, value)                                 \
    do {                                                                    \
        __mram_ptr void *__dest = (__mram_ptr void *)(dest);                \
        *(uint8_t *)__mram_unaligned_begin(__dest) = (uint8_t)(value);      \
        __mram_unaligned_end(__dest);                                       \
    } while (0)
#define mram_update_int_atomic(dest, function, args)                        \
    do {                                                                    \
        __mram_ptr void *__dest = (__mram_ptr void *)(dest);                \
        function((int *)__mram_unaligned_begin(__dest), args);              \
        __mram_unaligned_end(__dest);                                       \
    } while (0)
#define mram_update_byte_atomic(dest, function, args)                       \
    do {                                                                    \
        __mram_ptr void *__dest = (__mram_ptr void *)(dest);                \
        function((uint8_t *)__mram_unaligned_begin(__dest), args);          \
        __mram_unaligned_end(__dest);                                       \
    } while (0)
#endif
