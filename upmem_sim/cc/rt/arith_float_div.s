// float32: __divsf3 (r1 / r0) -> r1. IEEE-754, round to nearest even, subnormals exact.
// Newton-Raphson on the reciprocal of the divisor: three rounds of two 64-bit multiplications, one
// more for the quotient and a 32-bit one for the remainder, each through __muldi3 (128 instructions)
// and __mulsi3. A bitwise div_step loop would need about 150; the vendor's library takes 1022 (PrIM,
// figure 4), which is seven 64-bit multiplications. NaN results are 0x7fc00000.
//
// Error: the linear start 3/4 + 1/sqrt(2) - b/2 is within 0.0858 of 1/b for b in [1, 2), three rounds
// leave 0.0858^8 = 2^-28.3; truncations add at most 2 and take at most 1 unit of 2^-32. Less 2 the
// reciprocal is never too large, the 25-bit quotient is right or one too small, and the remainder says.
    .section .text.__divsf3
    .globl __divsf3
__divsf3:
    xor r4, r1, r0
    and r4, r4, 0x80000000
    lsr r2, r1, 23
    and r2, r2, 255
    lsr r3, r0, 23
    and r3, r3, 255
    and r1, r1, 0x7fffff
    and r0, r0, 0x7fffff
    add r5, r2, -1
    jgeu r5, 254, .Lspecial
    add r5, r3, -1
    jgeu r5, 254, .Lspecial
    or r1, r1, 0x800000
    or r0, r0, 0x800000
// r4 sign, r2 and r3 exponents, r1 and r0 significands with bit 23 set
.Ldivide:
    add r22, r22, -32
    sd r22, 24, d22
    sd r22, 16, d14
    sd r22, 8, d16
    sd r22, 0, d18
    move r14, r4
    sub r15, r2, r3
    add r15, r15, 127
    move r16, r1
    move r17, r0
// r16 into divisor <= dividend < 2 divisor
    sub r4, r16, r17, ltu
    lsl r16, r16, r4
    sub r15, r15, r4
// r18 = divisor with 31 fraction bits, r19 = its reciprocal with 32
    lsl r18, r17, 8
    move r19, 0x7504f333
    sub r19, r19, r18
    move.u d0, r19
    move.u d2, r18
    call r23, __muldi3
    neg r3, r0
    move r2, 0
    move.u d0, r19
    call r23, __muldi3
    lsr r1, r1, 31
    lsl_add r19, r1, r0, 1
    move.u d0, r19
    move.u d2, r18
    call r23, __muldi3
    neg r3, r0
    move r2, 0
    move.u d0, r19
    call r23, __muldi3
    lsr r1, r1, 31
    lsl_add r19, r1, r0, 1
    move.u d0, r19
    move.u d2, r18
    call r23, __muldi3
    neg r3, r0
    move r2, 0
    move.u d0, r19
    call r23, __muldi3
    lsr r1, r1, 31
    lsl_add r19, r1, r0, 1
// below the exact value; wraps back where the reciprocal of 1 had become 2^32
    add r19, r19, -2
    move.u d0, r19
    lsl r3, r16, 1
    move r2, 0
    call r23, __muldi3
    move r18, r0
    move r1, r17
    call r23, __mulsi3
// r2 = remainder, below two divisors
    lsl r2, r16, 24
    sub r2, r2, r1
    sub r3, r2, r17, geu
    add r18, r18, r3
    neg r3, r3
    and r3, r3, r17
    sub r2, r2, r3
    move r2, r2, nz
// r0 = 24 bits of significand, round, sticky
    lsl_add r0, r2, r18, 1
    jges r15, 255, .Linfinite
    jles r15, 0, .Lsubnormal
    add r15, r15, -1
.Lround:
    and r2, r0, 3
    lsr r0, r0, 2
    lsl_add r0, r0, r15, 23
    sub r3, r2, 2, gtu
    sub r2, r2, 2, z
    and r2, r2, r0
    add r0, r0, r3
    add r0, r0, r2
    or r1, r0, r14
.Lreturn:
    ld d18, r22, 0
    ld d16, r22, 8
    ld d14, r22, 16
    ld d22, r22, 24
    add r22, r22, 32
    jump r23
.Linfinite:
    or r1, r14, 0x7f800000
    jump .Lreturn
.Lsubnormal:
    sub r4, 1, r15
    move r15, 0
    jgeu r4, 32, .Ltiny
    lsrx r2, r0, r4
    lsr r0, r0, r4
    move r2, r2, nz
    or r0, r0, r2, true, .Lround
.Ltiny:
    move r1, r14, true, .Lreturn
// an exponent of 0 or 255
.Lspecial:
    jeq r2, 255, .Lfirst_large
    jeq r3, 255, .Lsecond_large
    jneq r3, 0, .Lsecond_normal
    clz r5, r0, max, .Lby_zero
    add r5, r5, -8
    lsl r0, r0, r5
    sub r3, 1, r5, true, .Lsecond_ready
.Lsecond_normal:
    or r0, r0, 0x800000
.Lsecond_ready:
    jneq r2, 0, .Lfirst_normal
    clz r5, r1, max, .Lzero
    add r5, r5, -8
    lsl r1, r1, r5
    sub r2, 1, r5, true, .Ldivide
.Lfirst_normal:
    or r1, r1, 0x800000
    jump .Ldivide
.Lby_zero:
    or zero, r2, r1, z, .Lnan
.Linfinity:
    or r1, r4, 0x7f800000
    jump r23
.Lfirst_large:
    jneq r1, 0, .Lnan
    jneq r3, 255, .Linfinity
.Lnan:
    move r1, 0x7fc00000
    jump r23
.Lsecond_large:
    jneq r0, 0, .Lnan
.Lzero:
    move r1, r4
    jump r23
