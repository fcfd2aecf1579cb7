// mem_alloc(r1 = bytes) -> r1: the heap pointer moves up in steps of 8 bytes; fault 1 when it would
// pass the end of WRAM. mem_reset() -> r1 takes it back to the start.
    .section .text.mem_alloc
    .globl mem_alloc
mem_alloc:
    move r2, __mem_lock
    acquire r2, 0, nz, .
    add r1, r1, 7, c, .Lfull
    and r1, r1, -8
    lw r3, zero, __sys_heap_pointer
    move r4, __sys_heap_pointer_end
    add r1, r1, r3, c, .Lfull
    jgtu r1, r4, .Lfull
    sw zero, __sys_heap_pointer, r1
    move r1, r3
    release r2, 0, nz, .Lout
.Lout:
    jump r23
.Lfull:
    fault 1

    .section .text.mem_reset
    .globl mem_reset
mem_reset:
    move r1, __sys_heap_pointer_reset
    sw zero, __sys_heap_pointer, r1
    jump r23

    .section .data.__sys_heap_pointer
    .globl __sys_heap_pointer
    .p2align 2
__sys_heap_pointer:
    .word __sys_heap_pointer_reset
    .size __sys_heap_pointer, 4

    .section .atomic
    .globl __mem_lock
__mem_lock:
    .byte 0
