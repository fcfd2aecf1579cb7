// Back-to-back reads of `bytes` bytes each, `rounds` rounds of 8.
    .text
    .globl main
main:
    lw r12, zero, rounds
    lw r13, zero, bytes
    lsl r14, id, 20
    add r14, r14, 0x08000000
    lsl r15, id, 10
    add r15, r15, buffers
    move r5, -1
    lsr_add r5, r5, r13, 3
    lsl_add r15, r15, r5, 24
round:
    ldma r15, r14, 0
    ldma r15, r14, 0
    ldma r15, r14, 0
    ldma r15, r14, 0
    ldma r15, r14, 0
    ldma r15, r14, 0
    ldma r15, r14, 0
    ldma r15, r14, 0
    add r12, r12, -1, nz, round
    jump r23
