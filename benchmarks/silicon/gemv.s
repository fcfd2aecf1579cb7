// Dot product of int32 rows with a vector of ones: 14 instructions a multiply-accumulate, 7 of them
// the multiply by a factor of 1 bit; 18 around it in each round of `bytes` bytes an array.
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
    move r20, id4
    add r20, r20, buffers + 40960
round:
    add r4, r14, 0x08000000
    move r5, -1
    lsr_add r5, r5, r13, 3
    lsl_add r6, r15, r5, 24
    ldma r6, r4, 0
    add r4, r14, 0x09000000
    lsl_add r6, r16, r5, 24
    ldma r6, r4, 0
    move r17, r15
    move r18, r16
    lsr r19, r13, 2
    move r21, 0
element:
    lw r1, r17, 0
    lw r0, r18, 0
    call r23, __mulsi3
    add r21, r21, r1
    add r17, r17, 4
    add r18, r18, 4
    add r19, r19, -1, nz, element
    lw r1, r20, 0
    add r21, r21, r1
    sw r20, 0, r21
    move r1, 0
    add r14, r14, r13
    add r12, r12, -1, nz, round
    jump r22
