// float32 to double and back: __extendsfdf2 (r1) -> d0 (exact), __truncdfsf2 (d0) -> r1 (rounded to
// nearest even). NaN results are the quiet NaNs.
    .section .text.__extendsfdf2
    .globl __extendsfdf2
__extendsfdf2:
    and r4, r1, 0x80000000
    lsr r2, r1, 23
    and r2, r2, 255
    and r3, r1, 0x7fffff
    add r5, r2, -1
    jgeu r5, 254, .Lextend_special
.Lextend_pack:
    add r2, r2, 896
    lsr r0, r3, 3
    lsl r1, r3, 29
    lsl_add r0, r0, r2, 20
    or r0, r0, r4
    jump r23
.Lextend_special:
    jneq r2, 0, .Lextend_large
    clz r5, r3, max, .Lextend_zero
    add r5, r5, -8
    lsl r3, r3, r5
    and r3, r3, 0x7fffff
    sub r2, 1, r5, true, .Lextend_pack
.Lextend_zero:
    move r0, r4
    move r1, 0
    jump r23
.Lextend_large:
    move r1, 0
    jneq r3, 0, .Lextend_nan
    or r0, r4, 0x7ff00000
    jump r23
.Lextend_nan:
    move r0, 0x7ff80000
    jump r23

    .section .text.__truncdfsf2
    .globl __truncdfsf2
__truncdfsf2:
    and r4, r0, 0x80000000
    and r2, r0, 0x7fffffff
    move r5, 0x7ff00000
    sub r6, zero, r1
    subc zero, r5, r2, ltu, .Ltrunc_nan
// r3 = exponent, r2 = 24 bits of significand, r1 = the bits below
    lsr r3, r2, 20
    add r3, r3, -896
    and r2, r2, 0xfffff
    or r2, r2, 0x100000
    lsr r5, r1, 29
    lsl_add r2, r5, r2, 3
    lsl r1, r1, 3
    jges r3, 255, .Ltrunc_infinite
    jles r3, 0, .Ltrunc_subnormal
    add r3, r3, -1
.Ltrunc_round:
    lsl_add r2, r2, r3, 23
    sub r5, mneg, r1, ltu
    sub r6, mneg, r1, z
    and r6, r6, r2
    add r2, r2, r5
    add r2, r2, r6
    or r1, r2, r4
    jump r23
.Ltrunc_subnormal:
    sub r3, 1, r3
    jgtu r3, 31, .Ltrunc_tiny
    move r1, r1, nz
    lsrx r5, r2, r3
    or r1, r1, r5
    lsr r2, r2, r3
    move r3, 0, true, .Ltrunc_round
.Ltrunc_tiny:
    move r1, r4
    jump r23
.Ltrunc_infinite:
    or r1, r4, 0x7f800000
    jump r23
.Ltrunc_nan:
    move r1, 0x7fc00000
    jump r23
