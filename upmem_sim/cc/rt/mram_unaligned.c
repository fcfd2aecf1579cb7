/* Writes to MRAM at any address. Each 8-byte word of MRAM has one of 2048 virtual locks (a bit in
 * WRAM), all guarded by one hardware bit. */
#include <atomic_bit.h>
#include <defs.h>
#include <mram_unaligned.h>
#include <string.h>

#define LOCKS (1u << __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK)

extern uint64_t __sw_cache_buffer[];
static ATOMIC_BIT_INIT(mram_unaligned);
static uint32_t held[LOCKS / 32];

static void lock(uintptr_t address) {
    uint32_t id = (address >> 3) % LOCKS, bit = 1u << (id % 32), taken;
    do {
        ATOMIC_BIT_ACQUIRE(mram_unaligned);
        taken = held[id / 32] & bit;
        held[id / 32] |= bit;
        ATOMIC_BIT_RELEASE(mram_unaligned);
    } while (taken);
}

static void unlock(uintptr_t address) {
    uint32_t id = (address >> 3) % LOCKS;
    ATOMIC_BIT_ACQUIRE(mram_unaligned);
    held[id / 32] &= ~(1u << (id % 32));
    ATOMIC_BIT_RELEASE(mram_unaligned);
}

void *__mram_unaligned_begin(const __mram_ptr void *address) {
    uintptr_t place = (uintptr_t)address;
    uint64_t *cell = &__sw_cache_buffer[me()];
    lock(place);
    mram_read((const __mram_ptr void *)(place & ~7u), cell, 8);
    return (unsigned char *)cell + (place & 7);
}

void __mram_unaligned_end(const __mram_ptr void *address) {
    uintptr_t place = (uintptr_t)address;
    mram_write(&__sw_cache_buffer[me()], (__mram_ptr void *)(place & ~7u), 8);
    unlock(place);
}

static void change(uintptr_t to, const unsigned char *from, unsigned int n) {
    unsigned char *bytes = __mram_unaligned_begin((const __mram_ptr void *)to);
    for (unsigned int i = 0; i < n; i++) bytes[i] = from[i];
    __mram_unaligned_end((const __mram_ptr void *)to);
}

void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned int n) {
    uintptr_t to = (uintptr_t)dest;
    const unsigned char *source = from;
    if (((to ^ (uintptr_t)from) & 7) != 0) __asm__ volatile("fault 8");
    unsigned int head = -to & 7;
    if (head > n) head = n;
    if (head != 0) change(to, source, head);
    to += head, source += head, n -= head;
    for (unsigned int piece; (piece = n < 2048 ? n & ~7u : 2048) != 0;
         to += piece, source += piece, n -= piece)
        mram_write(source, (__mram_ptr void *)to, piece);
    if (n != 0) change(to, source, n);
}
