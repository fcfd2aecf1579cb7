// float32: __addsf3 __subsf3 (r1, r0) -> r1. IEEE-754, round to nearest even, subnormals exact.
// One straight line for all finite non-zero operands (63 instructions): the larger magnitude is
// swapped to the front, signs are applied, and the sum is normalised both ways with masks instead of
// jumps. Jumps would save about 15 of them, but the vendor's library takes 64 whatever the values
// (PrIM, figure 4), and programs inherit their cost from it. NaN results are 0x7fc00000.
//
// Exponents are kept as "field - 1 if normal, 0 if subnormal" beside the 24-bit significand with its
// hidden bit; adding (exponent << 23) to the significand then packs both kinds.
    .section .text.__addsf3
    .globl __addsf3
__addsf3:
    move r13, 0x7fffffff
    and r2, r1, r13
    and r3, r0, r13
    move r12, 0x7f7fffff
    add r4, r2, -1
    jgeu r4, r12, .Lspecial
    add r4, r3, -1
    jgeu r4, r12, .Lspecial
// larger magnitude into r1; r5: bit 31 set if the signs differ
    sub r4, r2, r3, ltu
    neg r4, r4
    xor r5, r1, r0
    and r6, r5, r4
    xor r1, r1, r6
    xor r0, r0, r6
// r6 sign; r2, r3 significands; r7, r8 exponents
    and r6, r1, 0x80000000
    and r2, r1, r13
    and r3, r0, r13
    lsr r7, r2, 23
    lsr r8, r3, 23
    and r2, r2, 0x7fffff
    and r3, r3, 0x7fffff
    move r9, r7, nz
    move r10, r8, nz
    lsl_add r2, r2, r9, 23
    lsl_add r3, r3, r10, 23
    sub r7, r7, r9
    sub r8, r8, r10
// three more bits for rounding: guard, round, sticky
    lsl r2, r2, 3
    lsl r3, r3, 3
    sub r8, r7, r8
    jgtu r8, 31, .Lfar
    lsrx r9, r3, r8
    lsr r3, r3, r8
    move r9, r9, nz
    or r3, r3, r9
.Laligned:
    asr r5, r5, 31
    xor r3, r3, r5
    sub r3, r3, r5
    add r2, r2, r3, z, .Lzero
// one bit down after a carry
    lsr r9, r2, 27
    and r10, r2, r9
    lsr r2, r2, r9
    or r2, r2, r10
    add r7, r7, r9
// up by the leading zeros, at most by the exponent
    clz r9, r2
    add r9, r9, -5
    sub r9, r9, r7
    asr r10, r9, 31
    and r9, r9, r10
    add r9, r9, r7
    lsl r2, r2, r9
    sub r7, r7, r9
    jgeu r7, 254, .Linfinite
// round to nearest even, pack
    and r9, r2, 7
    lsr r2, r2, 3
    lsl_add r2, r2, r7, 23
    sub r10, r9, 4, gtu
    sub r9, r9, 4, z
    and r9, r9, r2
    add r2, r2, r10
    add r2, r2, r9
    or r1, r2, r6
    jump r23
.Lfar:
    move r3, 1, true, .Laligned
.Lzero:
    move r1, 0
    jump r23
.Linfinite:
    or r1, r6, 0x7f800000
    jump r23
// r2, r3 = magnitudes, one of them zero, infinite or NaN
.Lspecial:
    move r4, 0x7f800000
    jgtu r2, r4, .Lnan
    jgtu r3, r4, .Lnan
    jeq r2, r4, .Lfirst_infinite
    jeq r3, r4, .Lsecond
    jneq r2, 0, .Lfirst
    jneq r3, 0, .Lsecond
    and r1, r1, r0
    jump r23
.Lfirst_infinite:
    xor r5, r1, r0
    jeq mneg, r5, .Lnan
.Lfirst:
    jump r23
.Lsecond:
    move r1, r0
    jump r23
.Lnan:
    move r1, 0x7fc00000
    jump r23

    .section .text.__subsf3
    .globl __subsf3
__subsf3:
    sd r22, -8, d22
    xor r0, r0, 0x80000000
    call r23, __addsf3
    ld d22, r22, -8
    jump r23
