/* memcpy, memmove, memset, memcmp, memchr: words where the addresses allow it. */
#include <stddef.h>
#include <stdint.h>

#define WORD_MASK 7

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *d = to;
    const unsigned char *s = from;
    if ((((uintptr_t)d | (uintptr_t)s) & WORD_MASK) == 0) {
        for (; size >= 8; size -= 8, d += 8, s += 8) *(uint64_t *)d = *(const uint64_t *)s;
    } else if ((((uintptr_t)d | (uintptr_t)s) & 3) == 0) {
        for (; size >= 4; size -= 4, d += 4, s += 4) *(uint32_t *)d = *(const uint32_t *)s;
    }
    for (; size != 0; size--) *d++ = *s++;
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *d = to;
    const unsigned char *s = from;
    if (d == s) return to;
    if ((uintptr_t)d - (uintptr_t)s >= size) { /* the front of `to` lies outside `from` */
        if ((((uintptr_t)d | (uintptr_t)s) & WORD_MASK) == 0)
            for (; size >= 8; size -= 8, d += 8, s += 8) *(uint64_t *)d = *(const uint64_t *)s;
        for (; size != 0; size--) *d++ = *s++;
        return to;
    }
    d += size;
    s += size;
    for (; size != 0; size--) *--d = *--s;
    return to;
}

void *memset(void *to, int byte, size_t size) {
    unsigned char *d = to;
    uint32_t word = (unsigned char)byte;
    word |= word << 8;
    word |= word << 16;
    uint64_t pair = ((uint64_t)word << 32) | word;
    for (; size != 0 && ((uintptr_t)d & WORD_MASK) != 0; size--) *d++ = (unsigned char)byte;
    for (; size >= 8; size -= 8, d += 8) *(uint64_t *)d = pair;
    for (; size != 0; size--) *d++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *left, const void *right, size_t size) {
    const unsigned char *a = left, *b = right;
    for (; size != 0; size--, a++, b++)
        if (*a != *b) return *a < *b ? -1 : 1;
    return 0;
}

void *memchr(const void *area, int byte, size_t size) {
    const unsigned char *p = area;
    for (; size != 0; size--, p++)
        if (*p == (unsigned char)byte) return (void *)p;
    return NULL;
}
