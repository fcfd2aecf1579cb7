// double: __adddf3 __subdf3 (d0, d2) -> d0. IEEE-754, round to nearest even, subnormals exact.
// As arith_float_add.s in pairs of words: one straight line, 91 instructions (a double add loop on
// silicon takes 91 to 105 with the loop around it: PrIM, figure 4). NaN results are the quiet NaN
// 0x7ff8000000000000.
    .section .text.__adddf3
    .globl __adddf3
__adddf3:
    move r13, 0x7fffffff
    and r4, r0, r13
    and r5, r2, r13
    move r12, 0x7ff00000
    jgeu r4, r12, .Lspecial
    jgeu r5, r12, .Lspecial
    or zero, r4, r1, z, .Lspecial
    or zero, r5, r3, z, .Lspecial
// larger magnitude into d0; r7: bit 31 set if the signs differ
    sub zero, r1, r3
    subc r6, r4, r5, ltu
    neg r6, r6
    xor r7, r0, r2
    and r8, r7, r6
    xor r0, r0, r8
    xor r2, r2, r8
    xor r8, r1, r3
    and r8, r8, r6
    xor r1, r1, r8
    xor r3, r3, r8
// r6 sign; r4:r1 and r5:r3 significands; r8, r9 exponents (field - 1, or 0 if subnormal)
    and r6, r0, 0x80000000
    and r4, r0, r13
    and r5, r2, r13
    lsr r8, r4, 20
    lsr r9, r5, 20
    and r4, r4, 0xfffff
    and r5, r5, 0xfffff
    move r10, r8, nz
    move r11, r9, nz
    lsl_add r4, r4, r10, 20
    lsl_add r5, r5, r11, 20
    sub r8, r8, r10
    sub r9, r9, r11
// three more bits for rounding: guard, round, sticky
    lsr r10, r1, 29
    lsl_add r4, r10, r4, 3
    lsl r1, r1, 3
    lsr r10, r3, 29
    lsl_add r5, r10, r5, 3
    lsl r3, r3, 3
    sub r9, r8, r9
    jgtu r9, 31, .Lfar
    lsrx r10, r3, r9
    lsr r3, r3, r9
    lsrx r11, r5, r9
    or r3, r3, r11
    lsr r5, r5, r9
    move r10, r10, nz
    or r3, r3, r10
.Laligned:
    asr r7, r7, 31
    xor r3, r3, r7
    xor r5, r5, r7
    sub r3, r3, r7
    subc r5, r5, r7
    add r1, r1, r3
    addc r4, r4, r5
    or zero, r4, r1, z, .Lzero
// one bit down after a carry
    lsr r9, r4, 24
    and r10, r1, r9
    lsr r1, r1, r9
    lsrx r11, r4, r9
    or r1, r1, r11
    lsr r4, r4, r9
    or r1, r1, r10
    add r8, r8, r9
// up by the leading zeros, at most by the exponent
    clz r9, r4, nmax, .Lleading
    clz r9, r1
    add r9, r9, 32
.Lleading:
    add r9, r9, -8
    sub r9, r9, r8
    asr r10, r9, 31
    and r9, r9, r10
    add r9, r9, r8
    sub r8, r8, r9
    jgtu r9, 31, .Lfar_up
    lslx r10, r1, r9
    lsl r4, r4, r9
    or r4, r4, r10
    lsl r1, r1, r9
.Lnormal:
    move r10, 2046
    jgeu r8, r10, .Linfinite
// round to nearest even, pack
    and r9, r1, 7
    lsr r1, r1, 3
    lsl r10, r4, 29
    or r1, r1, r10
    lsr r4, r4, 3
    lsl_add r4, r4, r8, 20
    sub r10, r9, 4, gtu
    sub r9, r9, 4, z
    and r9, r9, r1
    or r9, r9, r10
    add r1, r1, r9
    addc r4, r4, 0
    or r0, r4, r6
    jump r23
.Lfar:
    jgtu r9, 63, .Lsticky_only
    lsrx r10, r5, r9
    or r10, r10, r3
    lsr r3, r5, r9
    move r5, 0
    move r10, r10, nz
    or r3, r3, r10, true, .Laligned
.Lsticky_only:
    move r5, 0
    move r3, 1, true, .Laligned
.Lfar_up:
    lsl r4, r1, r9
    move r1, 0, true, .Lnormal
.Lzero:
    move r0, 0
    move r1, 0
    jump r23
.Linfinite:
    or r0, r6, 0x7ff00000
    move r1, 0
    jump r23
// r4, r5 = magnitudes (high words), one operand zero, infinite or NaN; r12 = infinity
.Lspecial:
    sub zero, r1, 1
    subc zero, r4, r12, geu, .Lnan
    sub zero, r3, 1
    subc zero, r5, r12, geu, .Lnan
    jeq r4, r12, .Lfirst_infinite
    jeq r5, r12, .Lsecond
    or zero, r4, r1, nz, .Lfirst
    or zero, r5, r3, nz, .Lsecond
    and r0, r0, r2
    jump r23
.Lfirst_infinite:
    jneq r5, r12, .Lfirst
    xor r7, r0, r2, mi, .Lnan
.Lfirst:
    jump r23
.Lsecond:
    movd d0, d2
    jump r23
.Lnan:
    move r0, 0x7ff80000
    move r1, 0
    jump r23

    .section .text.__subdf3
    .globl __subdf3
__subdf3:
    add r22, r22, -8
    sd r22, 0, d22
    xor r2, r2, 0x80000000
    call r23, __adddf3
    ld d22, r22, 0
    add r22, r22, 8
    jump r23
