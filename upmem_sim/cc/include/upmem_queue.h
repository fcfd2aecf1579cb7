/* Initial value of barriers and semaphores: {0xFF, counter, counter, number of the bit}. Written in
 * assembly, because C cannot put one byte of an address into an initialiser. */
#ifndef UPMEM_QUEUE_H
#define UPMEM_QUEUE_H
#include <macro_utils.h>
#define __UPMEM_QUEUE_OBJECT(name, counter, bit)                                      \
    __asm__(".section .data." __STR(name) ",\"aw\",@progbits\n"                       \
            ".globl " __STR(name) "\n.p2align 2\n" __STR(name) ":\n"                  \
            ".byte 0xFF, (" __STR(counter) ") & 0xFF, (" __STR(counter) ") & 0xFF, "  \
            __STR(ATOMIC_BIT_GET(bit)) "\n.size " __STR(name) ", 4\n.text")
#endif
