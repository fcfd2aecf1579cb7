// Integers to float32 and double, rounded to nearest even: __floatsisf __floatunsisf (r1) -> r1,
// __floatdisf __floatundisf (d0) -> r1, __floatsidf __floatunsidf (r1) -> d0, __floatdidf
// __floatundidf (d0) -> d0. The magnitude is shifted until its leading bit is at the top; the
// significand with that bit plus (exponent - 1) in the exponent field packs the result.
    .section .text.__floatsisf
    .globl __floatsisf
    .globl __floatunsisf
__floatsisf:
    and r4, r1, 0x80000000
    asr r2, r1, 31
    xor r1, r1, r2
    sub r1, r1, r2
    jump .Lsf_from_32
__floatunsisf:
    move r4, 0
.Lsf_from_32:
    clz r2, r1, max, .Lsf_zero
    lsl r1, r1, r2
    sub r2, 157, r2
    and r3, r1, 255
    lsr r1, r1, 8
    lsl_add r1, r1, r2, 23
    sub r2, r3, 128, gtu
    sub r3, r3, 128, z
    and r3, r3, r1
    add r1, r1, r2
    add r1, r1, r3
    or r1, r1, r4
.Lsf_zero:
    jump r23

    .section .text.__floatdisf
    .globl __floatdisf
    .globl __floatundisf
__floatdisf:
    and r4, r0, 0x80000000
    asr r2, r0, 31
    xor r1, r1, r2
    xor r0, r0, r2
    sub r1, r1, r2
    subc r0, r0, r2
    jump .Lsf_from_64
__floatundisf:
    move r4, 0
.Lsf_from_64:
    clz r2, r0, max, .Lsf_low_word
    lslx r3, r1, r2
    lsl r1, r1, r2
    lsl r0, r0, r2
    or r0, r0, r3
.Lsf_leading:
    sub r2, 189, r2
    move r1, r1, nz
    and r3, r0, 255
    lsl_add r3, r1, r3, 1
    lsr r1, r0, 8
    lsl_add r1, r1, r2, 23
    sub r2, r3, 256, gtu
    sub r3, r3, 256, z
    and r3, r3, r1
    add r1, r1, r2
    add r1, r1, r3
    or r1, r1, r4
    jump r23
.Lsf_low_word:
    clz r3, r1, max, .Lsf_zero_64
    lsl r0, r1, r3
    move r1, 0
    add r2, r3, 32, true, .Lsf_leading
.Lsf_zero_64:
    jump r23

    .section .text.__floatsidf
    .globl __floatsidf
    .globl __floatunsidf
__floatsidf:
    and r4, r1, 0x80000000
    asr r2, r1, 31
    xor r1, r1, r2
    sub r1, r1, r2
    jump .Ldf_from_32
__floatunsidf:
    move r4, 0
.Ldf_from_32:
    clz r2, r1, max, .Ldf_zero
    lsl r1, r1, r2
    sub r2, 1053, r2
    lsr r0, r1, 11
    lsl r1, r1, 21
    lsl_add r0, r0, r2, 20
    or r0, r0, r4
    jump r23
.Ldf_zero:
    move r0, 0
    jump r23

    .section .text.__floatdidf
    .globl __floatdidf
    .globl __floatundidf
__floatdidf:
    and r4, r0, 0x80000000
    asr r2, r0, 31
    xor r1, r1, r2
    xor r0, r0, r2
    sub r1, r1, r2
    subc r0, r0, r2
    jump .Ldf_from_64
__floatundidf:
    move r4, 0
.Ldf_from_64:
    clz r2, r0, max, .Ldf_low_word
    lslx r3, r1, r2
    lsl r1, r1, r2
    lsl r0, r0, r2
    or r0, r0, r3
.Ldf_leading:
    sub r2, 1085, r2
    and r3, r1, 0x7ff
    lsr r1, r1, 11
    lsl r5, r0, 21
    or r1, r1, r5
    lsr r0, r0, 11
    lsl_add r0, r0, r2, 20
    sub r2, r3, 0x400, gtu
    sub r3, r3, 0x400, z
    and r3, r3, r1
    or r2, r2, r3
    add r1, r1, r2
    addc r0, r0, 0
    or r0, r0, r4
    jump r23
.Ldf_low_word:
    clz r3, r1, max, .Ldf_zero_64
    lsl r0, r1, r3
    move r1, 0
    add r2, r3, 32, true, .Ldf_leading
.Ldf_zero_64:
    jump r23
