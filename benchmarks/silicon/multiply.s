// One 32-bit multiply a round, call included: `bytes` times a factor of 31 bits. 3 instructions
// beside the multiply.
    .text
    .globl main
main:
    lw r12, zero, rounds
    lw r13, zero, bytes
    move r14, 0x7fffffff
    move r22, r23
round:
    move r1, r14
    move r0, r13
    call r23, __mulsi3
    add r12, r12, -1, nz, round
    jump r22
