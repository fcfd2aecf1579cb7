// __mem_alloc_aligned(r1 = bytes, r0 = alignment - 1) -> r1, from the same heap as mem_alloc.
    .section .text.__mem_alloc_aligned
    .globl __mem_alloc_aligned
__mem_alloc_aligned:
    move r2, __mem_lock
    add r1, r1, 7, c, .Lfull
    and r1, r1, -8
    xor r4, r0, -1
    move r5, __sys_heap_pointer_end
    acquire r2, 0, nz, .
    lw r3, zero, __sys_heap_pointer
    add r3, r3, r0
    and r3, r3, r4
    add r1, r1, r3, c, .Lfull
    jgtu r1, r5, .Lfull
    sw zero, __sys_heap_pointer, r1
    move r1, r3
    release r2, 0, nz, .Lout
.Lout:
    jump r23
.Lfull:
    fault 1
