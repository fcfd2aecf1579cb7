/* memcpy, memmove and memset with MRAM on either side; the letters name the memories of target and
 * source (w WRAM, m MRAM). Aligned copies go by DMA, others byte by byte through the cell. */
#include <mram.h>
#include <stdint.h>

uint8_t __upmem_mram_load8(uint32_t address);
void __upmem_mram_store8(uint32_t address, uint8_t value);
uint64_t __upmem_mram_load64(uint32_t address);
void __upmem_mram_store64(uint32_t address, uint64_t value);

static inline uint32_t piece(uint32_t size) { return size < 2048 ? size & ~7u : 2048; }

void __upmem_memcpy_wm(uint32_t to, uint32_t from, uint32_t size) {
    if (((to | from) & 7) == 0) {
        for (uint32_t n; (n = piece(size)) != 0; to += n, from += n, size -= n)
            mram_read((__mram_ptr const void *)from, (void *)to, n);
    }
    for (; size != 0; size--) *(uint8_t *)to++ = __upmem_mram_load8(from++);
}

void __upmem_memcpy_mw(uint32_t to, uint32_t from, uint32_t size) {
    if (((to | from) & 7) == 0) {
        for (uint32_t n; (n = piece(size)) != 0; to += n, from += n, size -= n)
            mram_write((const void *)from, (__mram_ptr void *)to, n);
    }
    for (; size != 0; size--) __upmem_mram_store8(to++, *(uint8_t *)from++);
}

void __upmem_memmove_mm(uint32_t to, uint32_t from, uint32_t size) {
    if (to == from) return;
    if (to - from < size) { /* `to` begins inside `from`: backwards */
        while (size != 0) {
            size--;
            __upmem_mram_store8(to + size, __upmem_mram_load8(from + size));
        }
        return;
    }
    if (((to | from) & 7) == 0) {
        for (; size >= 8; size -= 8, to += 8, from += 8)
            __upmem_mram_store64(to, __upmem_mram_load64(from));
    }
    for (; size != 0; size--) __upmem_mram_store8(to++, __upmem_mram_load8(from++));
}

void __upmem_memcpy_mm(uint32_t to, uint32_t from, uint32_t size) {
    __upmem_memmove_mm(to, from, size);
}
void __upmem_memmove_wm(uint32_t to, uint32_t from, uint32_t size) {
    __upmem_memcpy_wm(to, from, size);
}
void __upmem_memmove_mw(uint32_t to, uint32_t from, uint32_t size) {
    __upmem_memcpy_mw(to, from, size);
}

void __upmem_memset_m(uint32_t to, uint32_t byte, uint32_t size) {
    byte &= 0xFF;
    uint32_t word = byte | byte << 8;
    word |= word << 16;
    uint64_t pair = ((uint64_t)word << 32) | word;
    for (; size != 0 && (to & 7) != 0; size--) __upmem_mram_store8(to++, (uint8_t)byte);
    for (; size >= 8; size -= 8, to += 8) __upmem_mram_store64(to, pair);
    for (; size != 0; size--) __upmem_mram_store8(to++, (uint8_t)byte);
}
