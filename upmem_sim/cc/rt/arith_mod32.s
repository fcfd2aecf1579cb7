// 32-bit remainder: __umodsi3, __modsi3 (dividend r1, divisor r0) -> remainder r1.
// As arith_div32.s, with the other half of the div_step pair as result; the sign is the dividend's.
    .section .text.__umodsi3
    .globl __umodsi3
__umodsi3:
    clz r4, r0, max, .L__umodsi3_zero
    clz r5, r1
    sub r4, r5, r4, gtu, .L__umodsi3_small
    move.u d2, r1
    jump r4, .Lumod_last
    div_step d2, r0, d2, 31
    div_step d2, r0, d2, 30
    div_step d2, r0, d2, 29
    div_step d2, r0, d2, 28
    div_step d2, r0, d2, 27
    div_step d2, r0, d2, 26
    div_step d2, r0, d2, 25
    div_step d2, r0, d2, 24
    div_step d2, r0, d2, 23
    div_step d2, r0, d2, 22
    div_step d2, r0, d2, 21
    div_step d2, r0, d2, 20
    div_step d2, r0, d2, 19
    div_step d2, r0, d2, 18
    div_step d2, r0, d2, 17
    div_step d2, r0, d2, 16
    div_step d2, r0, d2, 15
    div_step d2, r0, d2, 14
    div_step d2, r0, d2, 13
    div_step d2, r0, d2, 12
    div_step d2, r0, d2, 11
    div_step d2, r0, d2, 10
    div_step d2, r0, d2, 9
    div_step d2, r0, d2, 8
    div_step d2, r0, d2, 7
    div_step d2, r0, d2, 6
    div_step d2, r0, d2, 5
    div_step d2, r0, d2, 4
    div_step d2, r0, d2, 3
    div_step d2, r0, d2, 2
    div_step d2, r0, d2, 1
.Lumod_last:
    div_step d2, r0, d2, 0
    move r1, r3
    jump r23
.L__umodsi3_small:
    jump r23
.L__umodsi3_zero:
    fault 2
    .section .text.__modsi3
    .globl __modsi3
__modsi3:
    move r6, r23
    move r7, r1
    clo zero, r1, z, .L__modsi3_dividend
    neg r1, r1
.L__modsi3_dividend:
    clo zero, r0, z, .L__modsi3_divisor
    neg r0, r0
.L__modsi3_divisor:
    call r23, __umodsi3
    clo zero, r7, nz, .L__modsi3_negative
    jump r6
.L__modsi3_negative:
    neg r1, r1
    jump r6
