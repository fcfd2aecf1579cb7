// Square roots, rounded to nearest even: sqrtf (r1) -> r1, sqrt (d0) -> d0.
// Digit by digit: two bits of the operand give one bit of the root; 25 (54) root bits, the last one
// for rounding, and the remainder tells whether the root is exact. Negative operands give NaN.
    .section .text.sqrtf
    .globl sqrtf
sqrtf:
    lsr r2, r1, 23
    add r3, r2, -1
    jgeu r3, 254, .Lsf_special
    and r1, r1, 0x7fffff
    or r1, r1, 0x800000
// r2 = exponent field, r1 = significand with bit 23 set; the exponent is made even
.Lsf_root:
    and r3, r2, 1
    xor r3, r3, 1
    lsl r1, r1, r3
    sub r2, r2, r3
    lsl r1, r1, 7
    move r4, 0
    move r5, 0
    move r6, 25
// r1 operand bits to come, r4 remainder, r5 root
.Lsf_bit:
    lsr r7, r1, 30
    lsl_add r4, r7, r4, 2
    lsl r1, r1, 2
    lsl r7, r5, 2
    add r7, r7, 1
    lsl r5, r5, 1
    jltu r4, r7, .Lsf_next
    sub r4, r4, r7
    add r5, r5, 1
.Lsf_next:
    add r6, r6, -1, nz, .Lsf_bit
// a root of 25 bits is never half way between two results: its last bit alone rounds
    and r7, r5, 1
    lsr r1, r5, 1
    add r2, r2, -127
    asr r2, r2, 1
    add r2, r2, 126
    lsl_add r1, r1, r2, 23
    add r1, r1, r7
    jump r23
.Lsf_special:
    lsl zero, r1, 1, z, .Lsf_itself
    jeq r2, 255, .Lsf_large
    jgtu r2, 255, .Lsf_nan
    clz r3, r1
    add r3, r3, -8
    lsl r1, r1, r3
    sub r2, 1, r3, true, .Lsf_root
.Lsf_large:
    lsl zero, r1, 9, nz, .Lsf_nan
.Lsf_itself:
    jump r23
.Lsf_nan:
    move r1, 0x7fc00000
    jump r23

    .section .text.sqrt
    .globl sqrt
sqrt:
    lsr r2, r0, 20
    add r3, r2, -1
    move r4, 2046
    jgeu r3, r4, .Ldf_special
    and r0, r0, 0xfffff
    or r0, r0, 0x100000
// r2 = exponent field, d0 = significand with bit 52 set; the exponent is made even
.Ldf_root:
    and r3, r2, 1
    xor r3, r3, 1
    sub r2, r2, r3
    add r3, r3, 10
    lslx r4, r1, r3
    lsl r1, r1, r3
    lsl r0, r0, r3
    or r0, r0, r4
    move.u d4, zero
    move.u d6, zero
    move r10, 54
// d0 operand bits to come, d4 remainder, d6 root
.Ldf_bit:
    lsr r8, r5, 30
    lsl_add r4, r8, r4, 2
    lsr r8, r0, 30
    lsl_add r5, r8, r5, 2
    lsr r8, r1, 30
    lsl_add r0, r8, r0, 2
    lsl r1, r1, 2
    lsr r8, r7, 30
    lsl_add r8, r8, r6, 2
    lsl r9, r7, 2
    add r9, r9, 1
    lsr r3, r7, 31
    lsl_add r6, r3, r6, 1
    lsl r7, r7, 1
    sub r11, r5, r9
    subc r12, r4, r8, ltu, .Ldf_next
    move r5, r11
    move r4, r12
    add r7, r7, 1
.Ldf_next:
    add r10, r10, -1, nz, .Ldf_bit
    and r3, r7, 1
    lsr r1, r7, 1
    lsl r4, r6, 31
    or r1, r1, r4
    lsr r0, r6, 1
    add r2, r2, -1023
    asr r2, r2, 1
    add r2, r2, 1022
    lsl_add r0, r0, r2, 20
    add r1, r1, r3
    addc r0, r0, 0
    jump r23
.Ldf_special:
    lsl r3, r0, 1
    or zero, r3, r1, z, .Ldf_itself
    move r4, 2047
    jeq r2, r4, .Ldf_large
    jgtu r2, r4, .Ldf_nan
    clz r3, r0, nmax, .Ldf_bits
    clz r3, r1
    add r3, r3, 32
.Ldf_bits:
    add r3, r3, -11
    sub r2, 1, r3
    jgeu r3, 32, .Ldf_far
    lslx r4, r1, r3
    lsl r1, r1, r3
    lsl r0, r0, r3
    or r0, r0, r4, true, .Ldf_root
.Ldf_far:
    lsl r0, r1, r3
    move r1, 0, true, .Ldf_root
.Ldf_large:
    and r3, r0, 0xfffff
    or zero, r3, r1, nz, .Ldf_nan
.Ldf_itself:
    jump r23
.Ldf_nan:
    move r0, 0x7ff80000
    move r1, 0
    jump r23
