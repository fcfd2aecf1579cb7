/* DMA between MRAM and WRAM (UPMEM SDK manual, "MRAM access"). */
#ifndef UPMEM_MRAM_H
#define UPMEM_MRAM_H
#include <attributes.h>

extern __mram_ptr unsigned char __sys_used_mram_end[];
/* First byte of MRAM that no variable occupies. */
#define DPU_MRAM_HEAP_POINTER ((__mram_ptr void *)(__sys_used_mram_end))

void __upmem_bad_dma_size(void); /* never defined: a call of it is a compile-time error */

#define __UPMEM_CHECK_DMA(bytes)                                                   \
    if (__builtin_constant_p(bytes) && ((bytes) == 0 || (bytes) > 2048 || (bytes) % 8 != 0)) \
        __upmem_bad_dma_size()

/* One instruction for a constant size: n8 is bytes / 8 - 1. */
#define __UPMEM_DMA_CONSTANT(op, wram, mram, bytes) \
    __asm__ volatile(op " %0, %1, %2" : : "r"(wram), "r"(mram), "n"((bytes) / 8 - 1) : "memory")

/* Four for a size known at run time, which goes to the upper byte of the WRAM address. */
#define __UPMEM_DMA_VARIABLE(op, wram, mram, bytes)                             \
    do {                                                                        \
        unsigned int __address;                                                 \
        __asm__ volatile("lsr %0, %3, 3\n\tadd %0, %0, -1\n\t"                  \
                         "lsl_add %0, %1, %0, 24\n\t" op " %0, %2, 0"           \
                         : "=&r"(__address)                                     \
                         : "r"(wram), "r"(mram), "r"(bytes)                     \
                         : "memory");                                           \
    } while (0)

#ifdef __OPTIMIZE__
#define __UPMEM_DMA(op, wram, mram, bytes)                                      \
    do {                                                                        \
        __UPMEM_CHECK_DMA(bytes);                                               \
        if (__builtin_constant_p(bytes))                                        \
            __UPMEM_DMA_CONSTANT(op, wram, mram, bytes);                        \
        else                                                                    \
            __UPMEM_DMA_VARIABLE(op, wram, mram, bytes);                        \
    } while (0)
#else
#define __UPMEM_DMA(op, wram, mram, bytes) __UPMEM_DMA_VARIABLE(op, wram, mram, bytes)
#endif

#define __builtin_dpu_ldma(wram, mram, bytes) __UPMEM_DMA("ldma", wram, mram, bytes)
#define __builtin_dpu_sdma(wram, mram, bytes) __UPMEM_DMA("sdma", wram, mram, bytes)

/* Copies MRAM to WRAM and returns when it is there. Both addresses are multiples of 8; the size is
 * a multiple of 8 from 8 to 2048 bytes. */
static inline __attribute__((always_inline, unused)) void mram_read(
    const __mram_ptr void *from, void *to, unsigned int nb_of_bytes) {
    __builtin_dpu_ldma(to, from, nb_of_bytes);
}

/* Copies WRAM to MRAM; the same rules. */
static inline __attribute__((always_inline, unused)) void mram_write(
    const void *from, __mram_ptr void *to, unsigned int nb_of_bytes) {
    __builtin_dpu_sdma(from, to, nb_of_bytes);
}
#endif
