// Sum of two int32 arrays: pointer form, 7 instructions an element, 13 around it in each round of
// `bytes` bytes an array.
    .text
    .globl main
main:
    lw r12, zero, rounds
    lw r13, zero, bytes
    lsl r14, id, 20
    move r1, id
    lsl r0, r13, 1
    move r22, r23
    call r23, __mulsi3
    add r15, r1, buffers
    add r16, r15, r13
    move r9, 0
    move r10, 0
round:
    add r4, r14, 0x08000000
    move r5, -1
    lsr_add r5, r5, r13, 3
    lsl_add r6, r15, r5, 24
    ldma r6, r4, 0
    add r4, r14, 0x09000000
    lsl_add r6, r16, r5, 24
    ldma r6, r4, 0
    move r0, r15
    move r1, r16
    lsr r2, r13, 2
element:
    lw r3, r0, 0
    add r9, r9, r3
    lw r3, r1, 0
    add r10, r10, r3
    add r0, r0, 4
    add r1, r1, 4
    add r2, r2, -1, nz, element
    add r14, r14, r13
    add r12, r12, -1, nz, round
    jump r22
