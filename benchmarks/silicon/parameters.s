// What the host sets before a launch of the loops beside this file.
    .section .data
    .globl rounds
    .globl bytes
    .balign 4
rounds:
    .word 1
bytes:
    .word 8
    .section .bss
    .globl buffers
    .balign 8
buffers:
    .zero 49152
