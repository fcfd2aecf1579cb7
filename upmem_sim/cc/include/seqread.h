/* Sequential reading of MRAM through a cache in WRAM (UPMEM SDK manual, "MRAM access"). Define
 * SEQREAD_CACHE_SIZE as 32, 64, 128, 256, 512 or 1024 before including. */
#ifndef UPMEM_SEQREAD_H
#define UPMEM_SEQREAD_H
#include <alloc.h>
#include <macro_utils.h>
#include <mram.h>
#include <stdint.h>

#ifndef SEQREAD_CACHE_SIZE
#define SEQREAD_CACHE_SIZE 256
#endif
_Static_assert(SEQREAD_CACHE_SIZE == 32 || SEQREAD_CACHE_SIZE == 64 || SEQREAD_CACHE_SIZE == 128 ||
                   SEQREAD_CACHE_SIZE == 256 || SEQREAD_CACHE_SIZE == 512 ||
                   SEQREAD_CACHE_SIZE == 1024,
               "SEQREAD_CACHE_SIZE: one of 32, 64, 128, 256, 512, 1024");

typedef uintptr_t seqreader_buffer_t;
typedef struct {
    seqreader_buffer_t wram_cache;
    uintptr_t mram_addr; /* of the first byte in the cache */
} seqreader_t;

#define __SEQREAD(name) __CONCAT(seqread, __CONCAT(SEQREAD_CACHE_SIZE, name))
#define seqread_alloc __SEQREAD(_alloc)
#define seqread_init __SEQREAD(_init)
#define seqread_get __SEQREAD(_get)
#define seqread_seek __SEQREAD(_seek)
#define seqread_tell __SEQREAD(_tell)

/* `size` bytes from the heap at a multiple of `mask` + 1. */
void *__mem_alloc_aligned(unsigned int size, unsigned int mask);

/* Twice the page, aligned to the page, so that an object may cross into the second half. */
static inline __attribute__((unused)) seqreader_buffer_t seqread_alloc(void) {
    return (seqreader_buffer_t)__mem_alloc_aligned(2 * SEQREAD_CACHE_SIZE, SEQREAD_CACHE_SIZE - 1);
}

static inline __attribute__((unused)) void *seqread_seek(__mram_ptr void *mram_addr,
                                                         seqreader_t *reader) {
    uintptr_t target = (uintptr_t)mram_addr, page = target & ~(SEQREAD_CACHE_SIZE - 1u);
    if (page != reader->mram_addr) {
        mram_read((__mram_ptr void const *)page, (void *)reader->wram_cache, (2 * SEQREAD_CACHE_SIZE));
        reader->mram_addr = page;
    }
    return (void *)(reader->wram_cache + (target & (SEQREAD_CACHE_SIZE - 1u)));
}

static inline __attribute__((unused)) void *seqread_init(seqreader_buffer_t cache,
                                                         __mram_ptr void *mram_addr,
                                                         seqreader_t *reader) {
    reader->wram_cache = cache;
    reader->mram_addr = ((uintptr_t)mram_addr & ~(SEQREAD_CACHE_SIZE - 1u)) + 1; /* no page: it must be read */
    return seqread_seek(mram_addr, reader);
}

/* `ptr` moved on by `inc` bytes (fewer than the page); the next page is read when it leaves. */
static inline __attribute__((always_inline, unused)) void *seqread_get(void *ptr, uint32_t inc,
                                                                       seqreader_t *reader) {
    uintptr_t next = (uintptr_t)ptr + inc;
    if (__builtin_expect((next ^ (uintptr_t)ptr) >= SEQREAD_CACHE_SIZE, 0)) {
        uintptr_t page = reader->mram_addr + SEQREAD_CACHE_SIZE;
        reader->mram_addr = page;
        mram_read((__mram_ptr void const *)page, (void *)reader->wram_cache, (2 * SEQREAD_CACHE_SIZE));
        next -= SEQREAD_CACHE_SIZE; /* the objects of the second half are now in the first */
    }
    return (void *)next;
}

static inline __attribute__((unused)) __mram_ptr void *seqread_tell(void *ptr,
                                                                    seqreader_t *reader) {
    return (__mram_ptr void *)(reader->mram_addr + ((uintptr_t)ptr & (SEQREAD_CACHE_SIZE - 1u)));
}
#endif
