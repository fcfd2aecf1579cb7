// float32: __mulsf3 (r1, r0) -> r1. IEEE-754, round to nearest even, subnormals exact.
// The 24-bit significands really go through a 64-bit __muldi3 of 128 instructions, as in the vendor's
// library (PrIM, figure 4: 176 instructions an operation), although four 8-bit columns would do in 20.
// No short cut for powers of two. NaN results are 0x7fc00000.
    .section .text.__mulsf3
    .globl __mulsf3
__mulsf3:
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
.Lmultiply:
    add r5, r2, r3
    add r5, r5, -127
    add r22, r22, -16
    sd r22, 8, d22
    sd r22, 0, d4
    lsl r3, r0, 8
    move r0, 0
    move r2, 0
    call r23, __muldi3
    ld d4, r22, 0
    ld d22, r22, 8
    add r22, r22, 16
// r0:r1 = product, leading bit 22 or 23 of r0: bring it to 23
    lsr r2, r0, 23
    add r5, r5, r2
    xor r2, r2, 1
    lslx r3, r1, r2
    lsl r1, r1, r2
    lsl r0, r0, r2
    or r0, r0, r3
    jges r5, 255, .Linfinite
    jles r5, 0, .Lsubnormal
    and r0, r0, 0x7fffff
    lsl_add r0, r0, r5, 23
.Lround:
    sub r2, mneg, r1, ltu
    sub r3, mneg, r1, z
    and r3, r3, r0
    add r0, r0, r2
    add r0, r0, r3
    or r1, r0, r4
    jump r23
.Linfinite:
    or r1, r4, 0x7f800000
    jump r23
// down by 1 - exponent, what falls out stays visible in bit 0 of r1
.Lsubnormal:
    sub r5, 1, r5
    jgeu r5, 32, .Ltiny
    lsrx r2, r1, r5
    lsr r1, r1, r5
    lsrx r3, r0, r5
    or r1, r1, r3
    lsr r0, r0, r5
    move r2, r2, nz
    or r1, r1, r2, true, .Lround
.Ltiny:
    move r1, r4
    jump r23
// an exponent of 0 or 255
.Lspecial:
    jeq r2, 255, .Lfirst_large
    jeq r3, 255, .Lsecond_large
    jneq r2, 0, .Lfirst_normal
    clz r5, r1, max, .Lzero
    add r5, r5, -8
    lsl r1, r1, r5
    sub r2, 1, r5
    jump .Lfirst_ready
.Lfirst_normal:
    or r1, r1, 0x800000
.Lfirst_ready:
    jneq r3, 0, .Lsecond_normal
    clz r5, r0, max, .Lzero
    add r5, r5, -8
    lsl r0, r0, r5
    sub r3, 1, r5, true, .Lmultiply
.Lsecond_normal:
    or r0, r0, 0x800000
    jump .Lmultiply
.Lzero:
    move r1, r4
    jump r23
.Lfirst_large:
    jneq r1, 0, .Lnan
    jneq r3, 255, .Linfinity_times_second
    jneq r0, 0, .Lnan
    or r1, r4, 0x7f800000
    jump r23
.Linfinity_times_second:
    or zero, r3, r0, z, .Lnan
    or r1, r4, 0x7f800000
    jump r23
.Lsecond_large:
    jneq r0, 0, .Lnan
    or zero, r2, r1, z, .Lnan
    or r1, r4, 0x7f800000
    jump r23
.Lnan:
    move r1, 0x7fc00000
    jump r23
