/* Places of variables and the usual attributes (UPMEM SDK manual, "Memory management"). */
#ifndef UPMEM_ATTRIBUTES_H
#define UPMEM_ATTRIBUTES_H
#define __used __attribute__((used))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __aligned(bytes) __attribute__((aligned(bytes)))
#define __section(name) __attribute__((section(name)))
#define __NO_RETURN __attribute__((noreturn))
#define DEPRECATED __attribute__((deprecated))

#define __dma_aligned __aligned(8)
#define __host __aligned(8) __used __section(".dpu_host")
#define __keep __used __section(".data.__sys_keep")
#define __lower_data(name) __used __section(".data.immediate_memory." name)
#define __atomic_bit __used __section(".atomic")

/* Pointers into MRAM are a type of their own: they cannot be mixed with pointers into WRAM. */
#define __mram_ptr __attribute__((address_space(255)))
#define __mram __mram_ptr __section(".mram") __dma_aligned __used
#define __mram_noinit __mram_ptr __section(".mram.noinit") __dma_aligned __used
#define __mram_keep __mram_ptr __section(".mram.keep") __dma_aligned __used
#define __mram_noinit_keep __mram_ptr __section(".mram.noinit.keep") __dma_aligned __used
#endif
