/* Variables in MRAM used directly: the compiler turns each load and store into a call of these.
 * Each goes through the tasklet's 8-byte cell in WRAM by DMA. A store of less than 8 bytes reads,
 * changes and writes the 8 bytes around it, so tasklets must not write neighbours at once. */
#include <defs.h>
#include <mram.h>
#include <stdint.h>

extern uint64_t __sw_cache_buffer[];

#define CELL ((unsigned char *)&__sw_cache_buffer[me()])

static inline uint32_t fetch(uint32_t address) {
    mram_read((__mram_ptr const void *)(address & ~7u), CELL, 8);
    return address & 7;
}

static inline void flush(uint32_t address) {
    mram_write(CELL, (__mram_ptr void *)(address & ~7u), 8);
}

uint8_t __upmem_mram_load8(uint32_t address) { return CELL[fetch(address)]; }
uint16_t __upmem_mram_load16(uint32_t address) { return *(uint16_t *)(CELL + fetch(address)); }
uint32_t __upmem_mram_load32(uint32_t address) { return *(uint32_t *)(CELL + fetch(address)); }
uint64_t __upmem_mram_load64(uint32_t address) {
    fetch(address);
    return *(uint64_t *)CELL;
}

void __upmem_mram_store8(uint32_t address, uint8_t value) {
    CELL[fetch(address)] = value;
    flush(address);
}
void __upmem_mram_store16(uint32_t address, uint16_t value) {
    *(uint16_t *)(CELL + fetch(address)) = value;
    flush(address);
}
void __upmem_mram_store32(uint32_t address, uint32_t value) {
    *(uint32_t *)(CELL + fetch(address)) = value;
    flush(address);
}
void __upmem_mram_store64(uint32_t address, uint64_t value) {
    *(uint64_t *)CELL = value;
    flush(address);
}

/* Packed members may lie across two cells. */
static uint64_t load_bytes(uint32_t address, uint32_t size) {
    uint64_t value = 0;
    for (uint32_t i = size; i != 0; i--)
        value = value << 8 | __upmem_mram_load8(address + i - 1);
    return value;
}
static void store_bytes(uint32_t address, uint64_t value, uint32_t size) {
    for (uint32_t i = 0; i != size; i++, value >>= 8)
        __upmem_mram_store8(address + i, (uint8_t)value);
}
uint16_t __upmem_mram_load16u(uint32_t address) { return (uint16_t)load_bytes(address, 2); }
uint32_t __upmem_mram_load32u(uint32_t address) { return (uint32_t)load_bytes(address, 4); }
uint64_t __upmem_mram_load64u(uint32_t address) { return load_bytes(address, 8); }
void __upmem_mram_store16u(uint32_t address, uint16_t value) { store_bytes(address, value, 2); }
void __upmem_mram_store32u(uint32_t address, uint32_t value) { store_bytes(address, value, 4); }
void __upmem_mram_store64u(uint32_t address, uint64_t value) { store_bytes(address, value, 8); }
