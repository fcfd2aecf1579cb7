// float32 and double to integers, towards zero: __fixsfsi __fixunssfsi (r1) -> r1, __fixsfdi
// __fixunssfdi (r1) -> d0, __fixdfsi __fixunsdfsi (d0) -> r1, __fixdfdi __fixunsdfdi (d0) -> d0.
// Out of range values saturate (C leaves them undefined): NaN by its sign, negatives to 0 if unsigned.
// The significand is put with its leading bit at the top, then shifted down by what is left.
    .section .text.__fixsfsi
    .globl __fixsfsi
__fixsfsi:
    move r4, r1
    lsr r2, r1, 23
    and r2, r2, 255
    jltu r2, 127, .L__fixsfsi_zero
    jgeu r2, 158, .L__fixsfsi_large
    sub r2, 158, r2
    lsl r1, r1, 8
    or r1, r1, 0x80000000
    lsr r1, r1, r2
    asr r4, r4, 31
    xor r1, r1, r4
    sub r1, r1, r4
    jump r23
.L__fixsfsi_zero:
    move r1, 0
    jump r23
.L__fixsfsi_large:
    asr r4, r4, 31
    xor r1, r4, 0x7fffffff
    jump r23

    .section .text.__fixunssfsi
    .globl __fixunssfsi
__fixunssfsi:
    jlts r1, 0, .L__fixunssfsi_zero
    lsr r2, r1, 23
    and r2, r2, 255
    jltu r2, 127, .L__fixunssfsi_zero
    jgeu r2, 159, .L__fixunssfsi_large
    sub r2, 158, r2
    lsl r1, r1, 8
    or r1, r1, 0x80000000
    lsr r1, r1, r2
    jump r23
.L__fixunssfsi_zero:
    move r1, 0
    jump r23
.L__fixunssfsi_large:
    move r1, -1
    jump r23

    .section .text.__fixsfdi
    .globl __fixsfdi
__fixsfdi:
    move r4, r1
    lsr r2, r1, 23
    and r2, r2, 255
    jltu r2, 127, .L__fixsfdi_zero
    jgeu r2, 190, .L__fixsfdi_large
    sub r2, 190, r2
    lsl r0, r1, 8
    or r0, r0, 0x80000000
    jgeu r2, 32, .L__fixsfdi_low
    lsrx r1, r0, r2
    lsr r0, r0, r2
.L__fixsfdi_sign:
    asr r4, r4, 31
    xor r0, r0, r4
    xor r1, r1, r4
    sub r1, r1, r4
    subc r0, r0, r4
    jump r23
.L__fixsfdi_low:
    lsr r1, r0, r2
    move r0, 0, true, .L__fixsfdi_sign
.L__fixsfdi_zero:
    move r0, 0
    move r1, 0
    jump r23
.L__fixsfdi_large:
    asr r4, r4, 31
    xor r0, r4, 0x7fffffff
    xor r1, r4, -1
    jump r23

    .section .text.__fixunssfdi
    .globl __fixunssfdi
__fixunssfdi:
    jlts r1, 0, .L__fixunssfdi_zero
    lsr r2, r1, 23
    and r2, r2, 255
    jltu r2, 127, .L__fixunssfdi_zero
    jgeu r2, 191, .L__fixunssfdi_large
    sub r2, 190, r2
    lsl r0, r1, 8
    or r0, r0, 0x80000000
    jgeu r2, 32, .L__fixunssfdi_low
    lsrx r1, r0, r2
    lsr r0, r0, r2
.L__fixunssfdi_sign:
    jump r23
.L__fixunssfdi_low:
    lsr r1, r0, r2
    move r0, 0, true, .L__fixunssfdi_sign
.L__fixunssfdi_zero:
    move r0, 0
    move r1, 0
    jump r23
.L__fixunssfdi_large:
    move r0, -1
    move r1, -1
    jump r23

    .section .text.__fixdfsi
    .globl __fixdfsi
__fixdfsi:
    move r4, r0
    lsr r2, r0, 20
    and r2, r2, 0x7ff
    jltu r2, 1023, .L__fixdfsi_zero
    move r3, 1054
    jgeu r2, r3, .L__fixdfsi_large
    sub r2, 1054, r2
    lsr r3, r1, 21
    lsl_add r0, r3, r0, 11
    or r0, r0, 0x80000000
    lsr r1, r0, r2
    asr r4, r4, 31
    xor r1, r1, r4
    sub r1, r1, r4
    jump r23
.L__fixdfsi_zero:
    move r1, 0
    jump r23
.L__fixdfsi_large:
    asr r4, r4, 31
    xor r1, r4, 0x7fffffff
    jump r23

    .section .text.__fixunsdfsi
    .globl __fixunsdfsi
__fixunsdfsi:
    jlts r0, 0, .L__fixunsdfsi_zero
    lsr r2, r0, 20
    and r2, r2, 0x7ff
    jltu r2, 1023, .L__fixunsdfsi_zero
    move r3, 1055
    jgeu r2, r3, .L__fixunsdfsi_large
    sub r2, 1054, r2
    lsr r3, r1, 21
    lsl_add r0, r3, r0, 11
    or r0, r0, 0x80000000
    lsr r1, r0, r2
    jump r23
.L__fixunsdfsi_zero:
    move r1, 0
    jump r23
.L__fixunsdfsi_large:
    move r1, -1
    jump r23

    .section .text.__fixdfdi
    .globl __fixdfdi
__fixdfdi:
    move r4, r0
    lsr r2, r0, 20
    and r2, r2, 0x7ff
    jltu r2, 1023, .L__fixdfdi_zero
    move r3, 1086
    jgeu r2, r3, .L__fixdfdi_large
    sub r2, 1086, r2
    lsr r3, r1, 21
    lsl_add r0, r3, r0, 11
    or r0, r0, 0x80000000
    jgeu r2, 32, .L__fixdfdi_low
    lsl r1, r1, 11
    lsr r1, r1, r2
    lsrx r3, r0, r2
    or r1, r1, r3
    lsr r0, r0, r2
.L__fixdfdi_sign:
    asr r4, r4, 31
    xor r0, r0, r4
    xor r1, r1, r4
    sub r1, r1, r4
    subc r0, r0, r4
    jump r23
.L__fixdfdi_low:
    lsr r1, r0, r2
    move r0, 0, true, .L__fixdfdi_sign
.L__fixdfdi_zero:
    move r0, 0
    move r1, 0
    jump r23
.L__fixdfdi_large:
    asr r4, r4, 31
    xor r0, r4, 0x7fffffff
    xor r1, r4, -1
    jump r23

    .section .text.__fixunsdfdi
    .globl __fixunsdfdi
__fixunsdfdi:
    jlts r0, 0, .L__fixunsdfdi_zero
    lsr r2, r0, 20
    and r2, r2, 0x7ff
    jltu r2, 1023, .L__fixunsdfdi_zero
    move r3, 1087
    jgeu r2, r3, .L__fixunsdfdi_large
    sub r2, 1086, r2
    lsr r3, r1, 21
    lsl_add r0, r3, r0, 11
    or r0, r0, 0x80000000
    jgeu r2, 32, .L__fixunsdfdi_low
    lsl r1, r1, 11
    lsr r1, r1, r2
    lsrx r3, r0, r2
    or r1, r1, r3
    lsr r0, r0, r2
.L__fixunsdfdi_sign:
    jump r23
.L__fixunsdfdi_low:
    lsr r1, r0, r2
    move r0, 0, true, .L__fixunsdfdi_sign
.L__fixunsdfdi_zero:
    move r0, 0
    move r1, 0
    jump r23
.L__fixunsdfdi_large:
    move r0, -1
    move r1, -1
    jump r23
