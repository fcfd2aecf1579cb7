/* __atomic_* and __sync_* of the compiler: all under one atomic bit. */
#include <atomic_bit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static ATOMIC_BIT_INIT(atomics);

#define GUARDED(statement)            \
    ATOMIC_BIT_ACQUIRE(atomics);      \
    statement;                        \
    ATOMIC_BIT_RELEASE(atomics)

#define UPDATE(name, type, size, expression)                                   \
    type __atomic_##name##_##size(volatile void *p, type v, int order) {       \
        (void)order;                                                           \
        GUARDED(type old = *(volatile type *)p; *(volatile type *)p = expression); \
        return old;                                                            \
    }

#define ALL(type, size)                                                            \
    type __atomic_load_##size(const volatile void *p, int order) {                 \
        (void)order;                                                               \
        GUARDED(type value = *(const volatile type *)p);                           \
        return value;                                                              \
    }                                                                              \
    void __atomic_store_##size(volatile void *p, type v, int order) {              \
        (void)order;                                                               \
        GUARDED(*(volatile type *)p = v);                                          \
    }                                                                              \
    bool __atomic_compare_exchange_##size(volatile void *p, void *expected, type v, \
                                          int success, int failure) {              \
        (void)success;                                                             \
        (void)failure;                                                             \
        type *wanted = expected;                                                   \
        GUARDED(type old = *(volatile type *)p;                                    \
                bool same = old == *wanted;                                        \
                if (same) *(volatile type *)p = v;                                 \
                else *wanted = old);                                               \
        return same;                                                               \
    }                                                                              \
    UPDATE(exchange, type, size, v)                                                \
    UPDATE(fetch_add, type, size, (type)(old + v))                                 \
    UPDATE(fetch_sub, type, size, (type)(old - v))                                 \
    UPDATE(fetch_and, type, size, (type)(old & v))                                 \
    UPDATE(fetch_or, type, size, (type)(old | v))                                  \
    UPDATE(fetch_xor, type, size, (type)(old ^ v))                                 \
    UPDATE(fetch_nand, type, size, (type)~(old & v))

ALL(uint8_t, 1)
ALL(uint16_t, 2)
ALL(uint32_t, 4)
ALL(uint64_t, 8)

/* Of any size, as the compiler calls them where it does not trust the alignment. */
void load_any(size_t, const void *, void *, int) __asm__("__atomic_load");
void store_any(size_t, void *, const void *, int) __asm__("__atomic_store");
void exchange_any(size_t, void *, const void *, void *, int) __asm__("__atomic_exchange");
bool replace_any(size_t, void *, void *, const void *, int,
                 int) __asm__("__atomic_compare_exchange");

void load_any(size_t size, const void *from, void *to, int order) {
    (void)order;
    GUARDED(memcpy(to, from, size));
}

void store_any(size_t size, void *to, const void *from, int order) {
    (void)order;
    GUARDED(memcpy(to, from, size));
}

void exchange_any(size_t size, void *p, const void *value, void *old, int order) {
    (void)order;
    GUARDED(memcpy(old, p, size); memcpy(p, value, size));
}

bool replace_any(size_t size, void *p, void *expected, const void *value, int success, int failure) {
    (void)success;
    (void)failure;
    GUARDED(bool same = memcmp(p, expected, size) == 0;
            if (same) memcpy(p, value, size);
            else memcpy(expected, p, size));
    return same;
}
