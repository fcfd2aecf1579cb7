// 32-bit division: __udivsi3, __divsi3 (dividend r1, divisor r0) -> quotient r1.
// One div_step for each quotient bit N = clz(divisor) - clz(dividend) + 1, entered by a computed
// jump; unsigned N + 7 instructions, signed 7 more, 5 if the dividend is the smaller one: the
// counts implied by the throughput published for the vendor's routines (PrIM, figure 4).
// Division by zero is fault 2, as in the vendor's run time; INT_MIN / -1 wraps to INT_MIN.
    .section .text.__udivsi3
    .globl __udivsi3
__udivsi3:
    clz r4, r0, max, .L__udivsi3_zero
    clz r5, r1
    sub r4, r5, r4, gtu, .L__udivsi3_small
    move.u d2, r1
    jump r4, .Ludiv_last
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
.Ludiv_last:
    div_step d2, r0, d2, 0
    move r1, r2
    jump r23
.L__udivsi3_small:
    move r1, zero
    jump r23
.L__udivsi3_zero:
    fault 2
    .section .text.__divsi3
    .globl __divsi3
__divsi3:
    move r6, r23
    xor r7, r1, r0
    clo zero, r1, z, .L__divsi3_dividend
    neg r1, r1
.L__divsi3_dividend:
    clo zero, r0, z, .L__divsi3_divisor
    neg r0, r0
.L__divsi3_divisor:
    call r23, __udivsi3
    clo zero, r7, nz, .L__divsi3_negative
    jump r6
.L__divsi3_negative:
    neg r1, r1
    jump r6
