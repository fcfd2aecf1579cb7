// double: __divdf3 (d0 / d2) -> d0. IEEE-754, round to nearest even, subnormals exact.
// Newton-Raphson on the reciprocal of the divisor: three rounds in 32 bits, one in 64, then quotient
// and remainder, together fifteen 64-bit multiplications through __muldi3 (128 instructions each). A
// bitwise loop would need about 700; the vendor's library takes 2180 (PrIM, figure 4).
// Operands are normalised and the result shifted for subnormals whether they need it or not.
// NaN results are 0x7ff8000000000000.
//
// Error: the 32-bit reciprocal (start and rounds as in arith_float_div.s, divisor cut to 32 bits) is
// within 2^-28.2, the 64-bit round leaves its square, 2^-56.4, and truncations of a few 2^-63. Less 2 it
// is never too large, the 54-bit quotient is right or one too small, and the remainder says.
    .section .text.__divdf3
    .globl __divdf3
__divdf3:
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
    or r8, r2, r3
    or zero, r8, r6, z, .Lby_zero
    or r8, r0, r1
    or zero, r8, r5, z, .Lzero
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
// r4 sign, r5 and r6 exponents, d0 and d2 significands with bit 52 set
.Ldivide:
    add r22, r22, -56
    sd r22, 48, d22
    sd r22, 40, d20
    sd r22, 32, d18
    sd r22, 24, d16
    sd r22, 16, d14
    move r14, r4
    sub r15, r5, r6
    add r15, r15, 1023
    movd d18, d2
// d16 into divisor <= dividend < 2 divisor
    sub zero, r1, r3
    subc r4, r0, r2, ltu
    sub r15, r15, r4
    lslx r5, r1, r4
    lsl r17, r1, r4
    lsl r16, r0, r4
    or r16, r16, r5
// r20 = divisor with 31 fraction bits, r21 = its reciprocal with 32
    lsr r20, r19, 21
    lsl_add r20, r20, r18, 11
    move r21, 0x7504f333
    sub r21, r21, r20
    move.u d0, r21
    move.u d2, r20
    call r23, __muldi3
    neg r3, r0
    move r2, 0
    move.u d0, r21
    call r23, __muldi3
    lsr r1, r1, 31
    lsl_add r21, r1, r0, 1
    move.u d0, r21
    move.u d2, r20
    call r23, __muldi3
    neg r3, r0
    move r2, 0
    move.u d0, r21
    call r23, __muldi3
    lsr r1, r1, 31
    lsl_add r21, r1, r0, 1
    move.u d0, r21
    move.u d2, r20
    call r23, __muldi3
    neg r3, r0
    move r2, 0
    move.u d0, r21
    call r23, __muldi3
    lsr r1, r1, 31
    lsl_add r21, r1, r0, 1
// below the exact value; wraps back where the reciprocal of 1 had become 2^32
    add r21, r21, -2
// d0 = 2 - reciprocal x divisor, 63 fraction bits
    move.u d0, r21
    move.u d2, r20
    call r23, __muldi3
    sd r22, 0, d0
    move.u d0, r21
    lsl r3, r19, 11
    move r2, 0
    call r23, __muldi3
    ld d2, r22, 0
    add r3, r3, r0
    addc r2, r2, 0
    sub r1, 0, r3
    subc r0, 0, r2
    sd r22, 0, d0
// d20 = reciprocal with 63 fraction bits, below the exact value
    move.u d2, r0
    move.u d0, r21
    call r23, __muldi3
    sd r22, 8, d0
    move.u d0, r21
    lw r3, r22, 0
    move r2, 0
    call r23, __muldi3
    ld d20, r22, 8
    add r21, r21, r0
    addc r20, r20, 0
    add r21, r21, -2
    addc r20, r20, -1
// low word of the dividend for the remainder; d16 = 4 dividend
    lsl r4, r17, 21
    sw r22, 0, r4
    lsr r4, r17, 30
    lsl_add r16, r4, r16, 2
    lsl r17, r17, 2
// quotient = upper half of d16 x d20, sums kept in the frame
    move.u d0, r17
    move.u d2, r21
    call r23, __muldi3
    move.u d4, r0
    sd r22, 8, d4
    move.u d0, r17
    move.u d2, r20
    call r23, __muldi3
    ld d4, r22, 8
    add r5, r5, r1
    addc r4, r4, r0
    sd r22, 8, d4
    move.u d0, r16
    move.u d2, r21
    call r23, __muldi3
    ld d4, r22, 8
    add r5, r5, r1
    addc r4, r4, r0
    addc r5, zero, 0
    sd r22, 8, d4
    move.u d0, r16
    move.u d2, r20
    call r23, __muldi3
    ld d4, r22, 8
    add r1, r1, r4
    addc r0, r0, r5
// d16 = quotient, d2 = remainder, below two divisors
    movd d16, d0
    movd d2, d18
    call r23, __muldi3
    lw r4, r22, 0
    sub r3, 0, r1
    subc r2, r4, r0
    sub zero, r3, r19
    subc r6, r2, r18, geu
    add r17, r17, r6
    addc r16, r16, 0
    neg r6, r6
    and r4, r18, r6
    and r5, r19, r6
    sub r3, r3, r5
    subc r2, r2, r4
    or r2, r2, r3, nz
// d0 = 53 bits of significand, round, sticky
    lsr r4, r17, 31
    lsl_add r0, r4, r16, 1
    lsl_add r1, r2, r17, 1
    move r4, 2047
    jges r15, r4, .Linfinite
// down by 1 - exponent if that is positive, else by 0; what falls out stays visible in bit 0 of r1
    sub r4, 1, r15
    asr r5, r4, 31
    andn r4, r5, r4
    add r15, r15, r4
    add r15, r15, -1
    jgtu r4, 31, .Lfar_down
.Ldown:
    lsrx r2, r1, r4
    lsr r1, r1, r4
    lsrx r3, r0, r4
    or r1, r1, r3
    lsr r0, r0, r4
    move r2, r2, nz
    or r1, r1, r2
    and r2, r1, 3
    lsr r1, r1, 2
    lsl r3, r0, 30
    or r1, r1, r3
    lsr r0, r0, 2
    lsl_add r0, r0, r15, 20
    sub r3, r2, 2, gtu
    sub r2, r2, 2, z
    and r2, r2, r1
    or r2, r2, r3
    add r1, r1, r2
    addc r0, r0, 0
    or r0, r0, r14
.Lreturn:
    ld d14, r22, 16
    ld d16, r22, 24
    ld d18, r22, 32
    ld d20, r22, 40
    ld d22, r22, 48
    add r22, r22, 56
    jump r23
.Linfinite:
    or r0, r14, 0x7ff00000
    move r1, 0, true, .Lreturn
.Lfar_down:
    jgtu r4, 63, .Ltiny
    move r2, r1, nz
    or r1, r0, r2
    move r0, 0, true, .Ldown
.Ltiny:
    move r0, r14
    move r1, 0, true, .Lreturn
.Lfirst_far:
    lsl r0, r1, r8
    move r1, 0, true, .Lfirst_ready
.Lsecond_far:
    lsl r2, r3, r8
    move r3, 0, true, .Ldivide
.Lby_zero:
    or r8, r0, r1
    or zero, r8, r5, z, .Lnan
.Linfinity:
    or r0, r4, 0x7ff00000
    move r1, 0
    jump r23
.Lzero:
    move r0, r4
    move r1, 0
    jump r23
// an exponent of 2047
.Lfirst_large:
    or zero, r0, r1, nz, .Lnan
    jneq r6, r7, .Linfinity
.Lnan:
    move r0, 0x7ff80000
    move r1, 0
    jump r23
.Lsecond_large:
    or zero, r2, r3, nz, .Lnan
    move r0, r4
    move r1, 0
    jump r23
