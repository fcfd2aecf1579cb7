// c = a + b, int32: the loop that UPMEM's compiler makes of c[i] = a[i] + b[i] with a run-time
// length (index form, 9 instructions an element), 16 instructions around it in each round of
// `bytes` bytes an array.
    .text
    .globl main
main:
    lw r12, zero, rounds
    lw r13, zero, bytes
    lsl r14, id, 20             // off: 1 MB of each array for each tasklet
    move r1, id
    move r0, r13
    lsl_add r0, r0, r0, 1       // 3 buffers
    move r22, r23
    call r23, __mulsi3
    add r15, r1, buffers        // a
    add r16, r15, r13           // b
    add r17, r16, r13           // c
    lsr r18, r13, 2             // n
round:
    add r4, r14, 0x08000000
    move r5, -1
    lsr_add r5, r5, r13, 3
    lsl_add r6, r15, r5, 24
    ldma r6, r4, 0
    add r4, r14, 0x09000000
    lsl_add r6, r16, r5, 24
    ldma r6, r4, 0
    move r0, 0
element:
    lsl_add r1, r15, r0, 2
    lw r2, r1, 0
    lsl_add r1, r16, r0, 2
    lw r3, r1, 0
    add r2, r2, r3
    lsl_add r1, r17, r0, 2
    sw r1, 0, r2
    add r0, r0, 1
    jneq r0, r18, element
    add r4, r14, 0x0a000000
    move r5, -1
    lsr_add r5, r5, r13, 3
    lsl_add r6, r17, r5, 24
    sdma r6, r4, 0
    add r14, r14, r13
    add r12, r12, -1, nz, round
    jump r22
