// double: __muldf3 (d0, d2) -> d0. IEEE-754, round to nearest even, subnormals exact.
// The significands are multiplied as four 32 x 32 products, each through the 64-bit __muldi3 of 128
// instructions, as in the vendor's library (PrIM, figure 4: 652 instructions an operation).
// Operands are normalised and the result shifted for subnormals whether they need it or not.
// NaN results are 0x7ff8000000000000.
    .section .text.__muldf3
    .globl __muldf3
__muldf3:
    xor r4, r0, r2
    and r4, r4, 0x80000000
    lsr r5, r0, 20
    and r5, r5, 0x7ff
    lsr r6, r2, 20
    and r6, r6, 0x7ff
    and r0, r0, 0xfffff
    and r2, r2, 0xfffff
    move r7, 2047
    jeq r5, r7, .Lfirst_large
    jeq r6, r7, .Lsecond_large
    or r8, r0, r1
    or zero, r8, r5, z, .Lzero
    or r8, r2, r3
    or zero, r8, r6, z, .Lzero
// hidden bits and exponents (less one), then up by the leading zeros, none if normal
    move r8, r5, nz
    lsl_add r0, r0, r8, 20
    sub r5, r5, r8
    move r8, r6, nz
    lsl_add r2, r2, r8, 20
    sub r6, r6, r8
    clz r8, r0, nmax, .Lfirst_bits
    clz r8, r1
    add r8, r8, 32
.Lfirst_bits:
    add r8, r8, -11
    sub r5, r5, r8
    jgeu r8, 32, .Lfirst_far
    lslx r9, r1, r8
    lsl r0, r0, r8
    or r0, r0, r9
    lsl r1, r1, r8
.Lfirst_ready:
    clz r8, r2, nmax, .Lsecond_bits
    clz r8, r3
    add r8, r8, 32
.Lsecond_bits:
    add r8, r8, -11
    sub r6, r6, r8
    jgeu r8, 32, .Lsecond_far
    lslx r9, r3, r8
    lsl r2, r2, r8
    or r2, r2, r9
    lsl r3, r3, r8
// r4 sign, r5 and r6 exponents less one, d0 and d2 significands with bit 52 set
.Lmultiply:
    add r22, r22, -56
    sd r22, 48, d22
    sd r22, 40, d18
    sd r22, 32, d16
    sd r22, 24, d14
    move r14, r4
    add r15, r5, r6
    add r15, r15, -1021
    movd d16, d0
// d18 = second significand with its leading bit at 63
    lsr r18, r3, 21
    lsl_add r18, r18, r2, 11
    lsl r19, r3, 11
    move.u d0, r17
    move.u d2, r19
    call r23, __muldi3
    sd r22, 16, d0
    move.u d0, r17
    move.u d2, r18
    call r23, __muldi3
    sd r22, 8, d0
    move.u d0, r16
    move.u d2, r19
    call r23, __muldi3
    sd r22, 0, d0
    move.u d0, r16
    move.u d2, r18
    call r23, __muldi3
    ld d2, r22, 16
    ld d4, r22, 8
    ld d6, r22, 0
    add r2, r2, r5
    addc r4, r4, 0
    add r2, r2, r7
    addc r6, r6, 0
    add r1, r1, r4
    addc r0, r0, 0
    add r1, r1, r6
    addc r0, r0, 0
// product, most significant word first: r0 r1 r2 r3, leading bit 19 or 20 of r0
    move r3, r3, nz
    or r2, r2, r3
    lsr r4, r0, 20
    add r15, r15, r4
    xor r4, r4, 1
    lslx r5, r1, r4
    lsl r0, r0, r4
    or r0, r0, r5
    lslx r5, r2, r4
    lsl r1, r1, r4
    or r1, r1, r5
    lsl r2, r2, r4
    move r4, 2047
    jges r15, r4, .Linfinite
// down by 1 - exponent if that is positive, else by 0; what falls out stays visible in bit 0 of r2
    sub r4, 1, r15
    asr r5, r4, 31
    andn r4, r5, r4
    add r15, r15, r4
    add r15, r15, -1
    jgtu r4, 31, .Lfar_down
.Ldown:
    lsrx r5, r2, r4
    lsr r2, r2, r4
    lsrx r6, r1, r4
    or r2, r2, r6
    lsr r1, r1, r4
    lsrx r6, r0, r4
    or r1, r1, r6
    lsr r0, r0, r4
    move r5, r5, nz
    or r2, r2, r5
// d0 rounded by the word r2 below it; r15 exponent less one
    lsl_add r0, r0, r15, 20
    sub r3, mneg, r2, ltu
    sub r2, mneg, r2, z
    and r2, r2, r1
    or r2, r2, r3
    add r1, r1, r2
    addc r0, r0, 0
    or r0, r0, r14
.Lreturn:
    ld d14, r22, 24
    ld d16, r22, 32
    ld d18, r22, 40
    ld d22, r22, 48
    add r22, r22, 56
    jump r23
.Linfinite:
    or r0, r14, 0x7ff00000
    move r1, 0, true, .Lreturn
.Lfar_down:
    jgtu r4, 63, .Ltiny
    move r5, r2, nz
    or r2, r1, r5
    move r1, r0
    move r0, 0, true, .Ldown
.Ltiny:
    move r0, r14
    move r1, 0, true, .Lreturn
.Lfirst_far:
    lsl r0, r1, r8
    move r1, 0, true, .Lfirst_ready
.Lsecond_far:
    lsl r2, r3, r8
    move r3, 0, true, .Lmultiply
.Lzero:
    move r0, r4
    move r1, 0
    jump r23
// an exponent of 2047
.Lfirst_large:
    or zero, r0, r1, nz, .Lnan
    jeq r6, r7, .Linfinity_times_large
    or r8, r2, r3
    or zero, r8, r6, z, .Lnan
.Linfinity:
    or r0, r4, 0x7ff00000
    move r1, 0
    jump r23
.Linfinity_times_large:
    or zero, r2, r3, z, .Linfinity
.Lnan:
    move r0, 0x7ff80000
    move r1, 0
    jump r23
.Lsecond_large:
    or zero, r2, r3, nz, .Lnan
    or r8, r0, r1
    or zero, r8, r5, nz, .Linfinity
    jump .Lnan
